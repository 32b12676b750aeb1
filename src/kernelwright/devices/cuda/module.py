"""A candidate's cubin on the device: its kernels, their limits, launches ready to be queued."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple

from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import LaunchSpec, ResolvedPlan
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import Buffer, CaseRequest
from kernelwright.devices.cuda.buffers import Guarded, lying_at
from kernelwright.devices.cuda.cubin import CubinError, read_cubin, readable, stack_bytes
from kernelwright.devices.cuda.driver import CudaError, Driver
from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.operations import CandidateFailed, LaunchRefused, Operation
from kernelwright.devices.cuda.parameters import Parameters, pack_scalar, pointer

_DEFAULT_SHARED: Final = 48 * 1024
_PORTABLE_CLUSTER: Final = 8
_MAX_PARAMETERS: Final = 4096
_MOST_CONSTANTS: Final = 256


class Constant(NamedTuple):
    """A ``__constant__`` variable, where it lies, and the fingerprint of what it holds."""

    name: str
    held: Guarded
    fingerprint: int


class Module:
    """Loads a cubin; raises CandidateFailed when it does not load."""

    def __init__(self, driver: Driver, facts: DeviceFacts, cubin: bytes) -> None:
        self.driver = driver
        self.facts = facts
        self.constants: tuple[Constant, ...] = ()
        self._stack_bytes = 0
        self._cubin = cubin
        self._functions: dict[str, Any] = {}
        self._checked: set[tuple[LaunchSpec, ...]] = set()
        result = driver.api.cuModuleLoadData(cubin)
        if result[0]:
            if CudaError(int(result[0]), "", "").sticky:
                driver.ok(result, "cuModuleLoadData")
            raise _unusable(f"the cubin does not load: {result[0].name}")
        self._module = result[1]

    def close(self) -> None:
        """Unload; nothing of it may still run."""
        self.driver.ok(self.driver.api.cuModuleUnload(self._module), "cuModuleUnload")

    def prepared(
        self, request: CaseRequest, buffers: Sequence[Buffer], pointers: Mapping[str, int]
    ) -> tuple[Operation, ...]:
        """A case's launches; shapes are the plan's concern. Raises CandidateFailed."""
        del buffers
        return self.launches(request.plan, pointers)

    def launches(self, plan: ResolvedPlan, pointers: Mapping[str, int]) -> tuple[Operation, ...]:
        """The plan's launches with buffers at these addresses. Raises CandidateFailed for what cannot be launched."""
        if plan.launches not in self._checked:
            for launch in plan.launches:
                self._check(launch)
            self._checked.add(plan.launches)
        return tuple(self._operation(launch, pointers) for launch in plan.launches)

    def look_inside(self, gpu: Gpu) -> None:
        """Find :attr:`constants`, as they are now, and how large stacks are.

        What the driver does not find by its name is left out.
        """
        try:
            names, self._stack_bytes = read_cubin(self._cubin).constants, stack_bytes(self._cubin)
        except CubinError:  # loaded all the same: then nobody can say what is in it
            return
        found: dict[str, Guarded] = {}
        for name in names[:_MOST_CONSTANTS]:
            error, address, nbytes = self.driver.api.cuModuleGetGlobal(self._module, name.encode())
            if not error and nbytes:
                found[readable(name)] = lying_at(int(address), int(nbytes))
        prints = gpu.fingerprints(list(found.values()))
        self.constants = tuple(Constant(*each, p) for each, p in zip(found.items(), prints, strict=True))

    def uses_shared(self, plan: ResolvedPlan) -> bool:
        """Whether any kernel of the plan can read shared memory."""
        return any(
            launch.dynamic_shared_bytes
            or self._attribute(self._function(launch.kernel), "SHARED_SIZE_BYTES")
            or launch.cluster != (1, 1, 1)
            for launch in plan.launches
        )

    def local_bytes(self, plan: ResolvedPlan) -> int:
        """Most local memory (stack, spilled registers) that a thread of the plan's kernels has."""
        kernels = {launch.kernel for launch in plan.launches}
        own = (self._attribute(self._function(k), "LOCAL_SIZE_BYTES") for k in kernels)
        return max((*own, self._stack_bytes))

    def refusal(self, error: LaunchRefused) -> CandidateFailed:
        """The driver's refusal with the numbers that explain it."""
        launch = error.launch
        function = self._function(launch.kernel)
        parts = [f"grid {list(launch.grid)}", f"block {list(launch.block)} = {prod(launch.block)} threads"]
        parts.append(f"{self._attribute(function, 'NUM_REGS')} registers a thread")
        shared = self._attribute(function, "SHARED_SIZE_BYTES")
        parts.append(f"{shared} + {launch.dynamic_shared_bytes} bytes of shared memory")
        if launch.cluster != (1, 1, 1):
            parts.append(f"cluster {list(launch.cluster)}")
        if launch.cooperative:
            parts.append(f"cooperative: at most {self._resident_blocks(function, launch)} blocks fit at once")
        reason = f"kernel {launch.kernel!r} cannot be launched: {error.name} ({', '.join(parts)})"
        return _unusable(reason)

    def _operation(self, launch: LaunchSpec, pointers: Mapping[str, int]) -> Operation:
        api, function = self.driver.api, self._function(launch.kernel)
        values = [self._value(launch, i, pointers) for i in range(len(launch.arguments))]
        held = Parameters(values)
        if launch.cluster == (1, 1, 1) and not launch.cooperative:
            sizes = (*launch.grid, *launch.block, launch.dynamic_shared_bytes)
            arguments = (function, *sizes, self.driver.stream, held.address, 0)
            return Operation(api.cuLaunchKernel, arguments, launch.kernel, held, launch)
        config = self._config(launch)
        return Operation(
            api.cuLaunchKernelEx, (config, function, held.address, 0), launch.kernel, (held, config), launch
        )

    def _value(self, launch: LaunchSpec, index: int, pointers: Mapping[str, int]) -> bytes:
        argument = launch.arguments[index]
        if argument.value is None:
            if argument.name not in pointers:
                raise _refused(launch, f"argument {index + 1} names no buffer of the case: {argument.name!r}")
            return pointer(pointers[argument.name])
        try:
            return pack_scalar(argument.dtype, argument.value)
        except ValueError as error:
            raise _refused(launch, f"argument {index + 1} ({argument.name}): {error}") from None

    def _config(self, launch: LaunchSpec) -> Any:
        api = self.driver.api
        config = api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
        config.sharedMemBytes = launch.dynamic_shared_bytes
        config.hStream = self.driver.stream
        attributes = []
        if launch.cluster != (1, 1, 1):
            cluster = api.CUlaunchAttribute()
            cluster.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            dims = cluster.value.clusterDim
            dims.x, dims.y, dims.z = launch.cluster
            attributes.append(cluster)
        if launch.cooperative:
            together = api.CUlaunchAttribute()
            together.id = api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            together.value.cooperative = 1
            attributes.append(together)
        config.attrs = attributes
        config.numAttrs = len(attributes)
        return config

    def _check(self, launch: LaunchSpec) -> None:
        function = self._function(launch.kernel)
        self._check_parameters(function, launch)
        threads, most = prod(launch.block), self._attribute(function, "MAX_THREADS_PER_BLOCK")
        if threads > most:
            registers = self._attribute(function, "NUM_REGS")
            raise _refused(
                launch,
                f"a block of {threads} threads; with {registers} registers a thread at most {most} fit",
            )
        static = self._attribute(function, "SHARED_SIZE_BYTES")
        shared = static + launch.dynamic_shared_bytes
        if shared > self.facts.max_shared_bytes:
            raise _refused(
                launch,
                f"{static} static + {launch.dynamic_shared_bytes} dynamic bytes of shared memory;"
                f" a block may have {self.facts.max_shared_bytes}",
            )
        if shared > _DEFAULT_SHARED:
            self._set(function, "MAX_DYNAMIC_SHARED_SIZE_BYTES", self.facts.max_shared_bytes - static, launch)
        self._check_cluster(function, launch)

    def _check_cluster(self, function: Any, launch: LaunchSpec) -> None:
        size = prod(launch.cluster)
        if not self.facts.arch.startswith(("sm_7", "sm_8")):
            required = [
                self._attribute(function, f"REQUIRED_CLUSTER_{a}") for a in ("WIDTH", "HEIGHT", "DEPTH")
            ]
            size = max(size, prod(max(1, dim) for dim in required))
        elif size > 1:
            raise _refused(launch, f"clusters need compute capability 9.0, the device is {self.facts.arch}")
        if size > _PORTABLE_CLUSTER:
            self._set(function, "NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1, launch)
        if launch.cluster != (1, 1, 1):
            found = self.driver.api.cuOccupancyMaxActiveClusters(function, self._config(launch))
            if found[0] or found[1] == 0:
                why = found[0].name if found[0] else "no such cluster fits on the device"
                raise _refused(
                    launch,
                    f"cluster {list(launch.cluster)} of {prod(launch.block)}-thread blocks with"
                    f" {launch.dynamic_shared_bytes} bytes of dynamic shared memory: {why}",
                )

    def _check_parameters(self, function: Any, launch: LaunchSpec) -> None:
        api = self.driver.api
        sizes: list[int] = []
        while len(sizes) < _MAX_PARAMETERS:
            result = api.cuFuncGetParamInfo(function, len(sizes))
            if result[0]:
                break
            sizes.append(int(result[2]))
        given = launch.arguments
        if len(given) != len(sizes):
            raise _refused(launch, f"the kernel has {len(sizes)} arguments, the plan gives {len(given)}")
        for index, (argument, size) in enumerate(zip(given, sizes, strict=True)):
            have = 8 if argument.is_buffer else len(self._value(launch, index, {}))
            if have != size:
                kind = f"a pointer to {argument.dtype}" if argument.is_buffer else argument.dtype
                raise _unusable(
                    f"kernel {launch.kernel!r} argument {index + 1} is {size} bytes,"
                    f" the plan gives {argument.name!r}: {kind} ({have})"
                )

    def _set(self, function: Any, name: str, value: int, launch: LaunchSpec) -> None:
        api = self.driver.api
        key = getattr(api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        error = api.cuFuncSetAttribute(function, key, value)[0]
        if error:
            raise _refused(launch, f"{name.lower()} = {value}: {error.name}")

    def _attribute(self, function: Any, name: str) -> int:
        api = self.driver.api
        key = getattr(api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(self.driver.ok(api.cuFuncGetAttribute(key, function), name))

    def _resident_blocks(self, function: Any, launch: LaunchSpec) -> int:
        found = self.driver.api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            function, prod(launch.block), launch.dynamic_shared_bytes
        )
        return int(self.driver.ok(found, "occupancy")) * self.facts.num_sms

    def _function(self, kernel: str) -> Any:
        if kernel not in self._functions:
            result = self.driver.api.cuModuleGetFunction(self._module, kernel.encode())
            if result[0]:
                raise _unusable(f"the cubin has no kernel {kernel!r}: {result[0].name}")
            self.driver.preload(result[1])
            self._functions[kernel] = result[1]
        return self._functions[kernel]


@contextmanager
def loaded(gpu: Gpu, artifact: str) -> Iterator[Module]:
    """The artifact loaded anew: module globals start as its author wrote them.

    Raises CandidateFailed when it does not load, HarnessError when it cannot be read.
    """
    try:
        cubin = Path(artifact).read_bytes()
    except OSError as error:
        raise HarnessError(f"the artifact cannot be read: {error}") from None
    started = time.perf_counter()
    module = Module(gpu.driver, gpu.facts, cubin)
    module.look_inside(gpu)
    gpu.spent["load"] += time.perf_counter() - started
    try:
        yield module
    finally:
        if not gpu.lost:
            module.close()


def _unusable(reason: str) -> CandidateFailed:
    return CandidateFailed(Status.LAUNCH_FAILED, reason, Check.LAUNCH_LIMITS)


def _refused(launch: LaunchSpec, why: str) -> CandidateFailed:
    return _unusable(f"kernel {launch.kernel!r} cannot be launched: {why}")
