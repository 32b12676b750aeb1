"""A candidate's plan for one case on one device: every expression becomes a number, every limit is checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, PlanError
from kernelwright.core.expressions import Expression
from kernelwright.core.launch import COMPILER_OPTIONS, KernelArgument, LaunchSpec, ResolvedPlan, ScratchSpec
from kernelwright.core.plan import COMPILER_PREFIX, Launch
from kernelwright.core.plan_faults import placed, plan_fault

MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
MAX_CLUSTER = 16
"""Limits of all devices of compute capability 8.0 and later (CUDA C++ Programming Guide, table of
technical specifications); a cluster of more than 8 blocks is the non-portable size."""

Numbers = Mapping[str, int | float]


@dataclass(frozen=True)
class Signature:
    """What a plan's ``args`` may name: buffers with their dtype, scalars with dtype and value.

    Sizes need no entry: every size is an ``int32`` scalar.
    """

    buffers: Mapping[str, str]
    scalars: Mapping[str, tuple[str, int | float]]


def macros(candidate: Candidate, facts: DeviceFacts) -> dict[str, int]:
    """Preprocessor macros: device facts, tunables, and the named values that depend on nothing else."""
    values = _fixed_values(candidate, facts)
    return {name: int(value) for name, value in values.items()}


def compiler_options(candidate: Candidate) -> dict[str, bool | int]:
    """Compiler settings of the configuration, from the allow-list only."""
    options: dict[str, bool | int] = {}
    for name, value in candidate.configuration.items():
        option = name.removeprefix(COMPILER_PREFIX)
        if name != option and option in COMPILER_OPTIONS:
            options[option] = bool(value) if COMPILER_OPTIONS[option] is bool else int(value)
    return options


def resolve(
    candidate: Candidate, sizes: Mapping[str, int], facts: DeviceFacts, signature: Signature
) -> ResolvedPlan:
    """All launches of the candidate on a case.

    Raises PlanError (one line with the place and the key, to act on) when the plan cannot be launched.
    """
    return _Resolver(candidate, sizes, facts, signature).run()


def _fixed_values(candidate: Candidate, facts: DeviceFacts) -> dict[str, int | float]:
    values: dict[str, int | float] = dict(facts.plan_values())
    configuration = candidate.configuration
    for tunable in candidate.template.plan.tunables:
        if tunable.name not in configuration:
            raise PlanError(f"the configuration lacks the tunable {tunable.name!r}", candidate.template.name)
        values[tunable.name] = int(configuration[tunable.name])
    for name, expression in candidate.template.plan.fixed_let:
        with placed(candidate.template, f"let.{name}"):
            values[name] = _integer(expression, values)
    return values


def _integer(expression: Expression, values: Numbers) -> int:
    result = expression.evaluate(values)
    if isinstance(result, float):
        raise ExpressionError(f"gives {result}, an integer is needed", expression.text)
    return int(result)


class _Resolver:
    def __init__(
        self, candidate: Candidate, sizes: Mapping[str, int], facts: DeviceFacts, signature: Signature
    ) -> None:
        self.candidate = candidate
        self.sizes = sizes
        self.facts = facts
        self.signature = signature
        self.values: dict[str, int | float] = dict(_fixed_values(candidate, facts))
        for name, size in sizes.items():
            self.values.setdefault(name, size)

    def run(self) -> ResolvedPlan:
        plan = self.candidate.template.plan
        self._refuse_shadowing()
        for name, expression in plan.let:
            if name not in self.values:
                self.values[name] = self._integer(expression, f"let.{name}")
        scratch = []
        for buffer in plan.scratch:
            key = f"scratch.{buffer.name}"
            elements = prod(self._at_least(1, e, key, "shape") for e in buffer.shape)
            scratch.append(ScratchSpec(buffer.name, buffer.dtype, elements))
        if (total := 8 * sum(s.elements for s in scratch)) > self.facts.memory_bytes:
            message = f"needs about {total} bytes, the device has {self.facts.memory_bytes}"
            raise self._error(message, "scratch")
        launches = tuple(
            self._launch(launch, f"launch[{number}]")
            for number, launch in enumerate(plan.launches)
            if self._runs(launch, f"launch[{number}].when")
        )
        if not launches:
            raise self._error("no launch is left: every 'when' is false", "launch[0].when")
        return ResolvedPlan(launches, tuple(scratch), atomic_noise=plan.atomic_noise)

    def _runs(self, launch: Launch, key: str) -> bool:
        if launch.when is None:
            return True
        with placed(self.candidate.template, key):
            return bool(launch.when.evaluate(self.values))

    def _refuse_shadowing(self) -> None:
        plan = self.candidate.template.plan
        keys = {t.name: f"tune.{t.name}" for t in plan.tunables} | {n: f"let.{n}" for n, _ in plan.let}
        keys |= {s.name: f"scratch.{s.name}" for s in plan.scratch}
        taken = {*self.sizes, *self.signature.buffers, *self.signature.scalars}
        for name, key in keys.items():
            if name in taken:
                raise self._error(f"{name!r} is a name of the problem: choose another in the plan", key)

    def _error(self, message: str, key: str, needle: str = "") -> PlanError:
        return plan_fault(self.candidate.template, message, key, needle)

    def _integer(self, expression: Expression, key: str) -> int:
        with placed(self.candidate.template, key):
            return _integer(expression, self.values)

    def _at_least(self, least: int, expression: Expression, key: str, what: str = "") -> int:
        value = self._integer(expression, key)
        if value < least:
            message = f"{what} {expression.text!r} is {value}, at least {least} is needed".strip()
            raise self._error(message, key, expression.text)
        return value

    def _dims(
        self, expressions: tuple[Expression, ...], limits: tuple[int, int, int], key: str, what: str
    ) -> tuple[int, int, int]:
        dims = [self._at_least(1, expression, key, what) for expression in expressions]
        dims += [1] * (3 - len(dims))
        for axis, value, limit in zip("xyz", dims, limits, strict=True):
            if value > limit:
                raise self._error(f"{what}.{axis} is {value}, the limit is {limit}", key)
        return dims[0], dims[1], dims[2]

    def _launch(self, launch: Launch, path: str) -> LaunchSpec:
        kernel, facts = launch.kernel, self.facts
        grid = self._dims(launch.grid, MAX_GRID, f"{path}.grid", f"{kernel}: grid")
        block = self._dims(launch.block, MAX_BLOCK, f"{path}.block", f"{kernel}: block")
        if prod(block) > facts.max_threads_per_block:
            raise self._error(
                f"{kernel}: a block of {prod(block)} threads, the limit is {facts.max_threads_per_block}",
                f"{path}.block",
            )
        key = f"{path}.dynamic_shared_bytes"
        shared = self._at_least(0, launch.dynamic_shared_bytes, key, f"{kernel}:")
        if shared > facts.max_shared_bytes:
            raise self._error(
                f"{kernel}: {shared} bytes of dynamic shared memory, the limit is {facts.max_shared_bytes}",
                key,
            )
        cluster = (
            self._dims(launch.cluster, (MAX_CLUSTER,) * 3, f"{path}.cluster", f"{kernel}: cluster")
            if launch.cluster
            else (1, 1, 1)
        )
        if prod(cluster) > MAX_CLUSTER or any(g % c for g, c in zip(grid, cluster, strict=True)):
            message = f"{kernel}: the grid {grid} cannot be cut into clusters of {cluster}"
            raise self._error(message, f"{path}.cluster")
        return LaunchSpec(
            kernel=kernel,
            grid=grid,
            block=block,
            dynamic_shared_bytes=shared,
            arguments=tuple(self._argument(kernel, argument, f"{path}.args") for argument in launch.args),
            cluster=cluster,
            cooperative=launch.cooperative,
        )

    def _argument(self, kernel: str, argument: Expression, key: str) -> KernelArgument:
        name = argument.text.strip()
        if name in self.signature.buffers:
            return KernelArgument(name, self.signature.buffers[name])
        for scratch in self.candidate.template.plan.scratch:
            if scratch.name == name:
                return KernelArgument(name, scratch.dtype)
        if name in self.signature.scalars:
            dtype, value = self.signature.scalars[name]
            return KernelArgument(name, dtype, value)
        try:
            number = _integer(argument, self.values)
        except ExpressionError as error:
            known = ", ".join([*self.signature.buffers, *self.signature.scalars, *self.sizes])
            message = f"{kernel}: argument {error} (the problem has: {known})"
            raise self._error(message, key, argument.text) from None
        if not -(2**31) <= number < 2**31:
            message = f"{kernel}: argument {name!r} is {number}, which is no 32-bit integer"
            raise self._error(message, key, argument.text)
        return KernelArgument(name, "int32", number)
