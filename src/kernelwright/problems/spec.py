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
    ValidationError,
    field_validator,
    model_serializer,
)

from kernelwright.core.errors import ExpressionError, UserError
from kernelwright.core.expressions import parse
from kernelwright.core.goal import Goal, parse_goal
from kernelwright.core.lexer import lex
from kernelwright.core.names import language_of
from kernelwright.core.objective import ObjectiveName
from kernelwright.core.rules import MAX_SOURCE_BYTES
from kernelwright.core.toml_words import Flag, Real, Whole, in_words, shown
from kernelwright.problems.inputs import Distribution

Dtype = Literal["float16", "float32", "float64", "int32", "int64", "uint8"]
MAX_NAME = 100
"""Characters of an argument's or a size's name."""
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
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"must be an integer or an expression in quotes, not {shown(value)}")  # noqa: TRY004
    return str(value)


def _identifier(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"{name!r} is not a name: use letters, digits and _, and start with no digit")
    if len(name) > MAX_NAME:
        raise ValueError(f"is a name of {len(name)} characters: use at most {MAX_NAME}")
    if language := language_of(name):
        raise ValueError(f"{name!r} is a word of {language}: choose another name")
    return name


def one_line_of_text(text: str) -> str:
    """A text that people see on a line of a terminal. Raises ValueError."""
    if not text.isprintable():
        raise ValueError("holds control characters or marks of direction: a terminal would obey them")
    if not text.strip():
        raise ValueError("holds blanks only: give a text that can be seen")
    return text


ExpressionText = Annotated[
    str, BeforeValidator(_integer_as_text, json_schema_input_type=int | str), AfterValidator(_expression)
]
"""An integer, or an expression over the case's sizes in quotes."""
Identifier = Annotated[str, AfterValidator(_identifier)]
Size = Annotated[Whole, Field(ge=1, le=2**31 - 1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ToleranceSpec(_Model):
    """An output is right where ``|out - ref| <= atol + rms * RMS(ref) + rtol * |ref|``; all 0 is exact.

    ``rms`` makes a tolerance free of scale: errors of a long sum grow with the size of the outputs as a whole,
    not with the one output that happens to be near zero.
    """

    rtol: Real = Field(0.0, ge=0, lt=1)
    atol: Real = Field(0.0, ge=0)
    rms: Real = Field(0.0, ge=0, lt=1)


class Argument(_Model):
    """One argument of the kernels. Arrays have a ``shape``, role ``scalar`` has a ``value``.

    Sizes need no entry: every size of the cases is an ``int32`` scalar.
    """

    name: Identifier
    dtype: Dtype
    role: Literal["in", "out", "inout", "scalar"]
    shape: tuple[ExpressionText, ...] | None = Field(None, min_length=1, max_length=8)
    value: Real | Whole | None = None
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

    @field_validator("id")
    @classmethod
    def _visible(cls, name: str) -> str:
        return one_line_of_text(name) if name else name


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
    read = lex(word)
    tokens = [token.text for token in read.tokens]
    if any(text in {'"', "'"} or text.endswith('"(') for text in tokens) or "".join(tokens) != "".join(
        word.split()
    ):
        raise ValueError(f"{word!r} cannot stand in code: a comment, a directive or half a string is no word")
    return word.strip()


class Rules(_Model):
    """What a candidate may not do. Rules are data here; the harness holds them.

    The keys are the fields of :class:`~kernelwright.core.rules.CandidateRules`, but for the sizes of the cases.
    """

    no_tensor_cores: Flag = False
    no_inline_ptx: Flag = False
    no_launch_bounds: Flag = False
    no_size_branches: Flag = False
    deterministic: Flag = False
    portable: Flag = False
    max_registers: Whole | None = Field(default=None, ge=16, le=255)
    max_source_bytes: Whole = Field(default=MAX_SOURCE_BYTES, ge=256, le=MAX_SOURCE_BYTES)
    allowed_headers: tuple[Annotated[str, AfterValidator(_header)], ...] = Field(default=(), max_length=64)
    banned_words: tuple[Annotated[str, AfterValidator(_word)], ...] = Field(default=(), max_length=64)

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A rule that came later is left out where it is not in force: ids of problems are hashes of this."""
        values: dict[str, Any] = handler(self)
        return values if self.portable else {key: v for key, v in values.items() if key != "portable"}


class GoalTable(_Model):
    """A goal as a table: a speed-up over the baseline, a share of the roofline, or both."""

    speedup: Real | None = Field(None, gt=1)
    roofline_fraction: Real | None = Field(None, gt=0, le=1)


def _goal(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return parse_goal(value)
        except UserError as error:
            raise ValueError(str(error)) from None
    if isinstance(value, dict):
        try:
            table = GoalTable.model_validate(value)
        except ValidationError as error:
            raise ValueError(in_words(error, value)) from None
        return Goal(roofline=table.roofline_fraction, speedup=table.speedup)
    if isinstance(value, Goal):
        return value
    raise ValueError(f'must be a text such as "time<=0.5ms", or a table, not {shown(value)}')


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
    other_sizes: Flag | tuple[dict[Identifier, Size], ...] = True


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

    @field_validator("title")
    @classmethod
    def _visible(cls, text: str) -> str:
        return one_line_of_text(text)

    @field_validator("description")
    @classmethod
    def _plain(cls, text: str) -> str:
        one_line_of_text(text.replace("\n", " ").replace("\t", " "))
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
