"""The launch plan: TOML in the first comment of a template.

A template is one ``.cu`` file. Its first comment, ``/* kernelwright ... */``, holds tunables, constraints,
named values, scratch buffers and launches; docs/design.md section 2 has the format.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kernelwright.core.configuration import Value
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, PlanError
from kernelwright.core.expressions import Expression, parse
from kernelwright.core.launch import COMPILER_OPTIONS
from kernelwright.core.places import Places, shown
from kernelwright.core.space import Constraint, SearchSpace, Tunable
from kernelwright.core.toml import TomlFault, parse_toml

COMPILER_PREFIX = "compiler."
DEVICE_NAMES = frozenset({"num_sms", "max_shared_bytes", "warp_size"})
_KEYWORDS = (
    "auto bool break case char class const continue default do double else enum extern false float for if inline "
    "int long namespace new register return short signed sizeof static struct switch template this true typedef "
    "union unsigned using void volatile while"
)
CPP_KEYWORDS = frozenset(_KEYWORDS.split())
"""As macros they would rewrite the language itself."""
DTYPES = frozenset(
    {
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "uint8",
        "int16",
        "int32",
        "uint32",
        "int64",
        "uint64",
    }
)
MAX_VALUES = 1024
MAX_PLAN_BYTES = 64 * 1024
_PLAN = re.compile(r"\A\s*/\*[ \t]*kernelwright[ \t]*\r?\n(.*?)\*/", re.DOTALL)
_OPENED = re.compile(r"\A\s*(/\*)[ \t]*kernelwright[ \t]*\r?\n(?!.*\*/)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class Scratch:
    """A buffer that lives for one run of the plan; ``shape`` may use sizes."""

    name: str
    dtype: str
    shape: tuple[Expression, ...]


@dataclass(frozen=True)
class Launch:
    """One kernel launch of the plan; ``args`` are names of arguments, sizes, scratch, or int32 expressions.

    A launch whose ``when`` is false for a case is left out there: one template can hold a kernel for small
    and another for large sizes.
    """

    kernel: str
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    args: tuple[Expression, ...]
    dynamic_shared_bytes: Expression
    cluster: tuple[Expression, ...] = ()
    cooperative: bool = False
    when: Expression | None = None


@dataclass(frozen=True)
class Plan:
    """A parsed plan. ``let`` keeps its order: an entry may use the ones before it.

    ``atomic_noise`` declares that equal runs may differ within the tolerance, as float atomics make them.
    """

    tunables: tuple[Tunable, ...]
    compiler: tuple[Tunable, ...]
    constraints: tuple[Constraint, ...]
    let: tuple[tuple[str, Expression], ...]
    scratch: tuple[Scratch, ...]
    launches: tuple[Launch, ...]
    atomic_noise: bool = False

    @cached_property
    def fixed_let(self) -> tuple[tuple[str, Expression], ...]:
        """The named values that depend on tunables and the device only: they are macros too."""
        known = {t.name for t in self.tunables} | DEVICE_NAMES
        fixed = []
        for name, expression in self.let:
            if expression.names <= known:
                known.add(name)
                fixed.append((name, expression))
        return tuple(fixed)

    @cached_property
    def size_names(self) -> frozenset[str]:
        """Names that only a case can give: sizes (and, in ``args``, buffers and scalars)."""
        known = {t.name for t in self.tunables} | DEVICE_NAMES | {name for name, _ in self.let}
        used: set[str] = set()
        for _, expression in self.let:
            used |= expression.names
        for scratch in self.scratch:
            used |= _names(scratch.shape)
        for launch in self.launches:
            used |= _names((*launch.grid, *launch.block, *launch.cluster, launch.dynamic_shared_bytes))
            used |= launch.when.names if launch.when else set()
        return frozenset(used - known)

    def space(self, facts: DeviceFacts) -> SearchSpace:
        """All configurations on a device. Compiler tunables are named ``compiler.NAME``."""
        return SearchSpace(
            tunables=(*self.tunables, *self.compiler),
            constraints=self.constraints,
            derived=self.fixed_let,
            constants=facts.plan_values(),
        )


def _names(expressions: tuple[Expression, ...]) -> set[str]:
    return {name for expression in expressions for name in expression.names}


def split_source(text: str, origin: str) -> tuple[str, int, str]:
    """Plan text, line (1-based) where it starts, and the source behind the plan's comment."""
    match = _PLAN.match(text)
    if match is None:
        opened = _OPENED.match(text)
        what = (
            "the plan's comment is never closed: end it with '*/' before the code"
            if opened
            else "the file must start with a plan: a comment '/* kernelwright', TOML, '*/'"
        )
        line = text.count("\n", 0, opened.start(1)) + 1 if opened else 1
        raise PlanError(what, origin, line=line, column=1)
    plan = match.group(1)
    if len(plan.encode()) > MAX_PLAN_BYTES:
        raise PlanError(f"the plan is larger than {MAX_PLAN_BYTES} bytes", origin, line=1)
    return plan, text.count("\n", 0, match.start(1)) + 1, text[match.end() :]


def parse_plan(text: str, origin: str = "candidate.cu") -> Plan:
    """Parse the plan of a whole ``.cu`` text. Raises PlanError with line and column in the file."""
    plan, first_line, _ = split_source(text, origin)
    try:
        table = parse_toml(plan)
    except TomlFault as fault:
        line, column = first_line + max(fault.line - 1, 0), fault.column or 1
        raise PlanError(f"the plan is not valid TOML: {fault.message}", origin, line, column) from None
    return _Reader(plan, first_line, origin).read(table)


class _Reader:
    """Turns the TOML table into a Plan; knows where things stand so that errors have a place."""

    def __init__(self, text: str, first_line: int, origin: str) -> None:
        self.places = Places(text, first_line)
        self.origin = origin

    def read(self, table: Mapping[str, Any]) -> Plan:
        self._known_keys(table, {"tune", "constraints", "let", "scratch", "launch", "atomic_noise"}, "")
        tune = dict(self._table(table.get("tune", {}), "tune"))
        compiler = self._table(tune.pop("compiler", {}), "tune.compiler")
        plan = Plan(
            tunables=tuple(self._tunable(name, values) for name, values in tune.items()),
            compiler=tuple(self._compiler(name, values) for name, values in compiler.items()),
            let=tuple(self._let(table)),
            constraints=tuple(self._constraints(table)),
            scratch=tuple(self._scratch(table)),
            launches=tuple(self._launches(table)),
            atomic_noise=self._flag(table.get("atomic_noise", False), "atomic_noise"),
        )
        self._check_names(plan)
        return plan

    # -- places ---------------------------------------------------------------------------------------

    def _error(self, message: str, path: str, needle: str = "") -> PlanError:
        where = shown(path) or "plan"
        return PlanError(f"{where}: {message}", self.origin, *self.places.find(path, needle), path)

    # -- parts ----------------------------------------------------------------------------------------

    def _table(self, value: Any, path: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._error("must be a table", path)
        return value

    def _flag(self, value: Any, path: str) -> bool:
        if not isinstance(value, bool):
            raise self._error("must be true or false", path)
        return value

    def _known_keys(self, table: Mapping[str, Any], known: set[str], path: str) -> None:
        for key in table:
            if key not in known:
                where = f"{path}.{key}" if path else key
                raise self._error(f"unknown key (known: {', '.join(sorted(known))})", where)

    def _expression(self, value: Any, path: str) -> Expression:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise self._error(f"must be an integer or an expression in quotes, not {value!r}", path)
        try:
            return parse(str(value))
        except ExpressionError as error:
            line, column = self.places.find(path, str(value))
            if column and error.column:
                column += error.column - 1
            message = f"{shown(path)}: {error.message} in {error.shown!r}"
            raise PlanError(message, self.origin, line, column, path) from None

    def _expressions(self, value: Any, path: str, limit: int) -> tuple[Expression, ...]:
        if isinstance(value, int | str):
            value = [value]
        if not isinstance(value, list) or not 1 <= len(value) <= limit:
            raise self._error(f"must be a list of 1 to {limit} expressions", path)
        return tuple(self._expression(item, path) for item in value)

    def _values(self, values: Any, path: str) -> list[Value]:
        if not isinstance(values, list) or not values:
            raise self._error("must be a non-empty list of integers or booleans", path)
        if len(values) > MAX_VALUES:
            raise self._error(f"has {len(values)} values, at most {MAX_VALUES} are allowed", path)
        for value in values:
            if not isinstance(value, int) or abs(value) >= 2**31:
                raise self._error(f"has the value {value!r}: only 32-bit integers and booleans", path)
        numbers = [int(value) for value in values]  # true is 1
        if twice := next(
            (v for v, number in zip(values, numbers, strict=True) if numbers.count(number) > 1), None
        ):
            raise self._error(f"has the value {twice!r} twice", path)
        return values

    def _tunable(self, name: str, values: Any) -> Tunable:
        path = f"tune.{name}"
        if not _NAME.match(name) or name in DEVICE_NAMES or name in CPP_KEYWORDS:
            raise self._error("is not a usable name for a tunable", path)
        return Tunable(name, tuple(self._values(values, path)))

    def _compiler(self, name: str, values: Any) -> Tunable:
        path = f"tune.compiler.{name}"
        kind = COMPILER_OPTIONS.get(name)
        if kind is None:
            raise self._error(f"is not an allowed compiler setting ({', '.join(COMPILER_OPTIONS)})", path)
        checked = self._values(values, path)
        if kind is bool and set(checked) <= {0, 1}:
            checked = [bool(value) for value in checked]  # people write 0 and 1 as well
        for value in checked:
            if type(value) is not kind or (kind is int and not 0 <= int(value) <= 255):
                raise self._error(f"has the value {value!r}, {kind.__name__} expected", path)
        return Tunable(COMPILER_PREFIX + name, tuple(checked))

    def _let(self, table: Mapping[str, Any]) -> list[tuple[str, Expression]]:
        entries = []
        for name, value in self._table(table.get("let", {}), "let").items():
            if not _NAME.match(name) or name in DEVICE_NAMES:
                raise self._error("is not a usable name", f"let.{name}")
            entries.append((name, self._expression(value, f"let.{name}")))
        return entries

    def _constraints(self, table: Mapping[str, Any]) -> list[Constraint]:
        entries = self._table(table.get("constraints", {}), "constraints")
        if odd := [name for name in entries if not (name.isprintable() and name.strip())]:
            raise self._error(f"{odd[0]!r} is no name: use letters that can be seen", "constraints")
        return [
            Constraint(name, self._expression(value, f"constraints.{name}"))
            for name, value in entries.items()
        ]

    def _scratch(self, table: Mapping[str, Any]) -> list[Scratch]:
        buffers = []
        for name, value in self._table(table.get("scratch", {}), "scratch").items():
            path = f"scratch.{name}"
            if not _NAME.match(name):
                raise self._error("is not a usable name", path)
            entry = self._table(value, path)
            self._known_keys(entry, {"dtype", "shape"}, path)
            if entry.get("dtype") not in DTYPES:
                raise self._error(f"dtype must be one of {', '.join(sorted(DTYPES))}", path)
            buffers.append(Scratch(name, entry["dtype"], self._expressions(entry.get("shape"), path, 8)))
        return buffers

    def _launches(self, table: Mapping[str, Any]) -> list[Launch]:
        entries = table.get("launch", [])
        if not isinstance(entries, list) or not 1 <= len(entries) <= 64:
            raise self._error("a plan needs 1 to 64 [[launch]] entries", "launch")
        paths = [f"launch[{number}]" for number in range(len(entries))]
        return [
            self._launch(self._table(entry, path), path) for entry, path in zip(entries, paths, strict=True)
        ]

    def _launch(self, entry: Mapping[str, Any], path: str) -> Launch:
        known = {"kernel", "grid", "block", "args", "dynamic_shared_bytes", "cluster", "cooperative", "when"}
        self._known_keys(entry, known, path)
        for key in ("kernel", "grid", "block", "args"):
            if key not in entry:
                raise self._error(f"lacks the key {key!r}", path)
        kernel = entry["kernel"]
        if not isinstance(kernel, str) or not _NAME.match(kernel):
            raise self._error(
                f'kernel must be the name of an extern "C" kernel, not {kernel!r}', f"{path}.kernel"
            )
        cluster, when = entry.get("cluster"), entry.get("when")
        return Launch(
            kernel=kernel,
            grid=self._expressions(entry["grid"], f"{path}.grid", 3),
            block=self._expressions(entry["block"], f"{path}.block", 3),
            args=self._expressions(entry["args"], f"{path}.args", 128),
            dynamic_shared_bytes=self._expression(
                entry.get("dynamic_shared_bytes", 0), f"{path}.dynamic_shared_bytes"
            ),
            cluster=() if cluster is None else self._expressions(cluster, f"{path}.cluster", 3),
            cooperative=self._flag(entry.get("cooperative", False), f"{path}.cooperative"),
            when=None if when is None else self._expression(when, f"{path}.when"),
        )

    # -- names ----------------------------------------------------------------------------------------

    def _check_names(self, plan: Plan) -> None:
        """Names are defined once, ``let`` uses what stands before it, constraints never use sizes."""
        seen: dict[str, str] = {}
        named = [(t.name, "tune") for t in plan.tunables]
        named += [(name, "let") for name, _ in plan.let] + [(s.name, "scratch") for s in plan.scratch]
        for name, section in named:
            if name in seen:
                raise self._error(f"the name is already used in [{seen[name]}]", f"{section}.{name}")
            seen[name] = section
        later = {name for name, _ in plan.let}
        for name, expression in plan.let:
            if wrong := expression.names & later:
                raise self._error(f"uses {min(wrong)!r} before it is defined", f"let.{name}")
            later.discard(name)
        fixed = {t.name for t in plan.tunables} | {name for name, _ in plan.fixed_let} | DEVICE_NAMES
        for constraint in plan.constraints:
            if wrong := constraint.expression.names - fixed:
                raise self._error(
                    f"uses {min(wrong)!r}, but a constraint may use only {', '.join(sorted(fixed))}",
                    f"constraints.{constraint.name}",
                    min(wrong),
                )
