"""What the values of a plan are called in exported code, and which of them are known before it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kernelwright.core.candidate import Candidate
from kernelwright.core.configuration import Value
from kernelwright.core.errors import ExpressionError, PlanError, UserError
from kernelwright.core.expressions import Expression, parse
from kernelwright.core.plan import DEVICE_NAMES
from kernelwright.leaderboard.abi import Abi
from kernelwright.leaderboard.export.text import Renames, words_of
from kernelwright.problems.spec import Argument

DEVICE_ATTRIBUTES: Final = {
    "num_sms": "cudaDevAttrMultiProcessorCount",
    "max_shared_bytes": "cudaDevAttrMaxSharedMemoryPerBlockOptin",
    "warp_size": "cudaDevAttrWarpSize",
}


@dataclass(frozen=True)
class Subject:
    """What is exported: a candidate, the problem's arguments, and how a board hands them over."""

    candidate: Candidate
    body: str
    arguments: tuple[Argument, ...]
    abi: Abi

    @cached_property
    def by_name(self) -> Mapping[str, Argument]:
        """The problem's arguments."""
        return {argument.name: argument for argument in self.arguments}

    @cached_property
    def arrays(self) -> tuple[Argument, ...]:
        """Arguments that are buffers, in order."""
        return tuple(argument for argument in self.arguments if argument.role != "scalar")

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """Sizes that the board's call gives: items that are no arguments but named by the plan or a shape, and axes."""
        given = [n for n in self.abi.items if n not in self.by_name and n in self._wanted]
        return tuple(dict.fromkeys([*self.abi.sizes, *given]))

    @cached_property
    def _wanted(self) -> frozenset[str]:
        plan = self.candidate.template.plan
        names = set(plan.size_names)
        names |= {name for launch in plan.launches for argument in launch.args for name in argument.names}
        names |= {name for argument in self.arrays for name in _shape_names(argument)}
        return frozenset(names)

    @cached_property
    def known(self) -> Mapping[str, Value]:
        """Values that the configuration decides: tunables, and named values without device facts."""
        configuration, plan = self.candidate.configuration, self.candidate.template.plan
        values: dict[str, Value] = {}
        for tunable in plan.tunables:
            if tunable.name not in configuration:
                raise PlanError(
                    f"the configuration lacks the tunable {tunable.name!r}", self.candidate.template.name
                )
            values[tunable.name] = int(configuration[tunable.name])
        for name, expression in plan.fixed_let:
            if expression.names <= values.keys():
                values[name] = whole(expression, values)
        return values

    @cached_property
    def of_device(self) -> tuple[tuple[str, Expression], ...]:
        """Named values that device facts decide."""
        return tuple(
            (name, value) for name, value in self.candidate.template.plan.fixed_let if name not in self.known
        )

    @cached_property
    def macro_names(self) -> frozenset[str]:
        """What the plan defines for the source."""
        fixed = {name for name, _ in self.candidate.template.plan.fixed_let}
        return frozenset(fixed | self.known.keys() | DEVICE_NAMES)

    @cached_property
    def renames(self) -> Renames:
        """New names for those with the banned word, the same everywhere."""
        plan = self.candidate.template.plan
        names = set(words_of(self.body)) | {name for name, _ in plan.let} | {s.name for s in plan.scratch}
        return Renames([*names, *self.macro_names, *self.by_name, *self.sizes, *self.abi.items])

    def value(self, name: str) -> str:
        """What a size or named value is called in C++."""
        return f"v_{self.renames[name]}"

    def buffer(self, name: str) -> str:
        """What an array or scratch buffer is called in C++."""
        return f"p_{self.renames[name]}"

    def check(self) -> None:
        """Raises UserError where names clash or the board does not give what the candidate needs."""
        plan, origin = self.candidate.template.plan, self.candidate.template.name
        own = [t.name for t in plan.tunables] + [n for n, _ in plan.let] + [s.name for s in plan.scratch]
        for name in own:
            if name in self.by_name or name in self.sizes:
                raise UserError(f"{origin}: {name!r} is a name of the problem: choose another in the plan")
        for argument in self.arrays:
            if argument.is_input and argument.name not in self.abi.items:
                raise UserError(
                    f"the board does not hand over the input {argument.name!r}: name it in the abi's items"
                )
        if self.abi.returns not in {a.name for a in self.arrays if a.is_output}:
            raise UserError(f"the abi returns {self.abi.returns!r}, which is no output of the problem")
        for size, axis in self.abi.sizes.items():
            if axis.argument not in self.by_name or axis.argument not in self.abi.items:
                raise UserError(
                    f"the size {size!r} is read off {axis.argument!r}, which the board does not give"
                )


def whole(expression: Expression, values: Mapping[str, Value]) -> int:
    """The expression's integer. Raises ExpressionError, also for a decimal number."""
    value = expression.evaluate(values)
    if isinstance(value, float):
        raise ExpressionError(f"gives {value}, an integer is needed", expression.text)
    return int(value)


def _shape_names(argument: Argument) -> frozenset[str]:
    return frozenset(name for text in argument.shape or () for name in parse(text).names)
