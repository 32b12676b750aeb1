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

    Raises PlanError or ExpressionError (one line, for the model to act on) when the plan cannot be launched.
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
                self.values[name] = _integer(expression, self.values)
        scratch = []
        for buffer in plan.scratch:
            elements = prod(self._at_least(1, e, f"scratch {buffer.name}: shape") for e in buffer.shape)
            scratch.append(ScratchSpec(buffer.name, buffer.dtype, elements))
        if (total := 8 * sum(s.elements for s in scratch)) > self.facts.memory_bytes:
            raise self._error(f"scratch needs about {total} bytes, the device has {self.facts.memory_bytes}")
        active = [x for x in plan.launches if x.when is None or x.when.evaluate(self.values)]
        if not active:
            raise self._error("no launch is left: every 'when' is false for this case")
        launches = tuple(self._launch(launch) for launch in active)
        return ResolvedPlan(launches, tuple(scratch), atomic_noise=plan.atomic_noise)

    def _refuse_shadowing(self) -> None:
        plan = self.candidate.template.plan
        names = [t.name for t in plan.tunables] + [n for n, _ in plan.let] + [s.name for s in plan.scratch]
        taken = {*self.sizes, *self.signature.buffers, *self.signature.scalars}
        for name in names:
            if name in taken:
                raise self._error(f"{name!r} is a name of the problem: choose another in the plan")

    def _error(self, message: str) -> PlanError:
        return PlanError(message, self.candidate.template.name)

    def _at_least(self, least: int, expression: Expression, what: str) -> int:
        value = _integer(expression, self.values)
        if value < least:
            raise self._error(f"{what} {expression.text!r} is {value}, at least {least} is needed")
        return value

    def _dims(
        self, expressions: tuple[Expression, ...], limits: tuple[int, int, int], what: str
    ) -> tuple[int, int, int]:
        dims = [self._at_least(1, expression, what) for expression in expressions]
        dims += [1] * (3 - len(dims))
        for axis, value, limit in zip("xyz", dims, limits, strict=True):
            if value > limit:
                raise self._error(f"{what}.{axis} is {value}, the limit is {limit}")
        return dims[0], dims[1], dims[2]

    def _launch(self, launch: Launch) -> LaunchSpec:
        kernel, facts = launch.kernel, self.facts
        grid = self._dims(launch.grid, MAX_GRID, f"{kernel}: grid")
        block = self._dims(launch.block, MAX_BLOCK, f"{kernel}: block")
        if prod(block) > facts.max_threads_per_block:
            raise self._error(
                f"{kernel}: a block of {prod(block)} threads, the limit is {facts.max_threads_per_block}"
            )
        shared = self._at_least(0, launch.dynamic_shared_bytes, f"{kernel}: dynamic_shared_bytes")
        if shared > facts.max_shared_bytes:
            raise self._error(
                f"{kernel}: {shared} bytes of dynamic shared memory, the limit is {facts.max_shared_bytes}"
            )
        cluster = (
            self._dims(launch.cluster, (MAX_CLUSTER,) * 3, f"{kernel}: cluster")
            if launch.cluster
            else (1, 1, 1)
        )
        if prod(cluster) > MAX_CLUSTER or any(g % c for g, c in zip(grid, cluster, strict=True)):
            raise self._error(f"{kernel}: the grid {grid} cannot be cut into clusters of {cluster}")
        return LaunchSpec(
            kernel=kernel,
            grid=grid,
            block=block,
            dynamic_shared_bytes=shared,
            arguments=tuple(self._argument(kernel, argument) for argument in launch.args),
            cluster=cluster,
            cooperative=launch.cooperative,
        )

    def _argument(self, kernel: str, argument: Expression) -> KernelArgument:
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
            raise self._error(f"{kernel}: argument {error} (the problem has: {known})") from None
        if not -(2**31) <= number < 2**31:
            raise self._error(f"{kernel}: argument {name!r} is {number}, which is no 32-bit integer")
        return KernelArgument(name, "int32", number)
