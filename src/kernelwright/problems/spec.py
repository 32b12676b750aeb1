"""The format of ``problem.toml`` as pydantic models; docs/problems.md describes it for people."""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from kernelwright.core.errors import ExpressionError, UserError
from kernelwright.core.expressions import parse
from kernelwright.core.goal import Goal, parse_goal
from kernelwright.core.objective import ObjectiveName
from kernelwright.core.rules import MAX_SOURCE_BYTES
from kernelwright.problems.inputs import Distribution

Dtype = Literal["float16", "float32", "float64", "int32", "int64", "uint8"]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_HEADER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*\Z")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*\Z")


def _expression(text: str) -> str:
    try:
        parse(text)
    except ExpressionError as error:
        raise ValueError(str(error)) from None
    return text


def _integer_as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _identifier(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"{name!r} is not a name: use letters, digits and _, and start with no digit")
    return name


ExpressionText = Annotated[
    str, BeforeValidator(_integer_as_text, json_schema_input_type=int | str), AfterValidator(_expression)
]
"""An integer, or an expression over the case's sizes in quotes."""
Identifier = Annotated[str, AfterValidator(_identifier)]
Size = Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ToleranceSpec(_Model):
    """An output is right where ``|out - ref| <= atol + rms * RMS(ref) + rtol * |ref|``; all 0 is exact.

    ``rms`` makes a tolerance free of scale: errors of a long sum grow with the size of the outputs as a whole,
    not with the one output that happens to be near zero.
    """

    rtol: float = Field(0.0, ge=0, lt=1)
    atol: float = Field(0.0, ge=0)
    rms: float = Field(0.0, ge=0, lt=1)


class Argument(_Model):
    """One argument of the kernels. Arrays have a ``shape``, role ``scalar`` has a ``value``.

    Sizes need no entry: every size of the cases is an ``int32`` scalar.
    """

    name: Identifier
    dtype: Dtype
    role: Literal["in", "out", "inout", "scalar"]
    shape: tuple[ExpressionText, ...] | None = Field(None, min_length=1, max_length=8)
    value: float | int | None = None
    tolerance: ToleranceSpec | None = None

    @property
    def is_input(self) -> bool:
        """Filled before a run."""
        return self.role in {"in", "inout"}

    @property
    def is_output(self) -> bool:
        """Checked after a run."""
        return self.role in {"out", "inout"}


class CaseSpec(_Model):
    """One input size. ``id`` defaults to the sizes, as in ``M=128,N=128,K=128``."""

    sizes: dict[Identifier, Size] = Field(min_length=1)
    id: str = Field("", max_length=100)


class Work(_Model):
    """What a case has to move (bytes, each array once) and to compute (floating point operations)."""

    bytes: ExpressionText
    flops: ExpressionText = "0"


def _header(name: str) -> str:
    if not _HEADER.match(name) or ".." in name.split("/"):
        raise ValueError(f"{name!r} is no header: give a name as in #include <cuda_fp16.h>")
    return name


def _word(word: str) -> str:
    if not word.isascii() or not word.isprintable() or not word.strip():
        raise ValueError(f"{word!r} is no word: use one of C++ or PTX")
    return word.strip()


class Rules(_Model):
    """What a candidate may not do. Rules are data here; the harness holds them.

    The keys are the fields of :class:`~kernelwright.core.rules.CandidateRules`, but for the sizes of the cases.
    """

    no_tensor_cores: bool = False
    no_inline_ptx: bool = False
    no_launch_bounds: bool = False
    no_size_branches: bool = False
    deterministic: bool = False
    portable: bool = False
    max_registers: int | None = Field(default=None, ge=16, le=255, strict=True)
    max_source_bytes: int = Field(default=MAX_SOURCE_BYTES, ge=256, le=MAX_SOURCE_BYTES, strict=True)
    allowed_headers: tuple[Annotated[str, AfterValidator(_header)], ...] = Field(default=(), max_length=64)
    banned_words: tuple[Annotated[str, AfterValidator(_word)], ...] = Field(default=(), max_length=64)

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A rule that came later is left out where it is not in force: ids of problems are hashes of this."""
        values: dict[str, Any] = handler(self)
        return values if self.portable else {key: v for key, v in values.items() if key != "portable"}


class GoalTable(_Model):
    """A goal as a table: a speed-up over the baseline, a share of the roofline, or both."""

    speedup: float | None = Field(None, gt=1)
    roofline_fraction: float | None = Field(None, gt=0, le=1)


def _goal(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return parse_goal(value)
        except UserError as error:
            raise ValueError(str(error)) from None
    if isinstance(value, dict):
        table = GoalTable.model_validate(value)
        return Goal(roofline=table.roofline_fraction, speedup=table.speedup)
    return value


def _goal_as_data(goal: Goal) -> dict[str, float | None] | str:
    """The table where it says all: the ids of problems are made of this."""
    if goal.rank is not None or goal.time_ms is not None:
        return str(goal)
    return {"speedup": goal.speedup, "roofline_fraction": goal.roofline}


ProblemGoal = Annotated[
    Goal,
    BeforeValidator(_goal, json_schema_input_type=str | GoalTable),
    PlainSerializer(_goal_as_data),
]
"""What a campaign may aim at (``--goal problem``): a text as after ``--goal``, or a table."""


class TrialsSpec(_Model):
    """How a candidate is tried beyond the cases. Nothing said: every distribution, and sizes off the list.

    ``distributions`` replaces the default list for float inputs, ``exclude`` leaves some out by name; integer inputs
    and those in ``keep`` are always drawn as ``[inputs]`` says. ``other_sizes``: true derives sizes from the cases,
    a list names them, false allows candidates that are right for the listed sizes only (certificates have
    ``sizes off the list`` as not run then).
    """

    distributions: tuple[Distribution, ...] = ()
    exclude: tuple[str, ...] = ()
    keep: tuple[Identifier, ...] = ()
    other_sizes: bool | tuple[dict[Identifier, Size], ...] = True


class ProblemSpec(_Model):
    """A whole ``problem.toml``."""

    name: str
    title: str = Field(min_length=1, max_length=100)
    description: str = Field(min_length=1)
    arguments: tuple[Argument, ...] = Field(min_length=1, max_length=64)
    inputs: dict[str, Distribution | tuple[Distribution, ...]] = Field(default_factory=dict)
    cases: tuple[CaseSpec, ...] = Field(min_length=1)
    slow_cases: tuple[CaseSpec, ...] = ()
    tolerance: ToleranceSpec
    work: Work
    rules: Rules = Rules()
    trials: TrialsSpec = TrialsSpec()
    objective: ObjectiveName = ObjectiveName.SEED
    goal: ProblemGoal | None = None

    @field_validator("title", "description")
    @classmethod
    def _plain(cls, text: str) -> str:
        if any(not (character.isprintable() or character.isspace()) for character in text):
            raise ValueError("holds control characters: a terminal would obey them")
        return text

    @field_validator("name")
    @classmethod
    def _slug(cls, name: str) -> str:
        if not _SLUG.match(name):
            raise ValueError(f"{name!r} is no name: use lower-case letters, digits, _ and -")
        return name

    @property
    def size_names(self) -> tuple[str, ...]:
        """Names of the sizes, in the order of the first case."""
        return tuple(self.cases[0].sizes)

    @property
    def arrays(self) -> tuple[Argument, ...]:
        """Arguments that are buffers."""
        return tuple(a for a in self.arguments if a.role != "scalar")


def problem_schema() -> dict[str, Any]:
    """JSON schema of ``problem.toml``."""
    return ProblemSpec.model_json_schema(mode="validation")
