"""A problem of ours, drafted from a board's task and the facts of its reference.

What can be read is filled in; what a user says (``--arguments``) goes before it. Everything that was assumed is said
in ``notes``, one sentence each.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

from pydantic import BaseModel

from kernelwright.core.case import ITEM_BYTES
from kernelwright.core.errors import ExpressionError, UserError
from kernelwright.core.expressions import parse
from kernelwright.leaderboard.abi import Abi, Axis
from kernelwright.leaderboard.base import Ranking
from kernelwright.leaderboard.board_file import Arguments, BoardCase
from kernelwright.leaderboard.gpumode.inputs_read import Size, Tensor, in_brackets
from kernelwright.leaderboard.gpumode.reference_facts import Facts
from kernelwright.leaderboard.gpumode.task import Task, parse_entry
from kernelwright.leaderboard.gpumode.user_tables import UserTables
from kernelwright.problems.check import array_shape
from kernelwright.problems.spec import Argument

SEED: Final = "seed"
MAX_SIZE: Final = 2**31 - 1
HALF_RTOL: Final = 2.0**-10
"""One unit in the last place of a float16, the most that rounding to it may differ by: our reference is exact."""
PRODUCT_RMS: Final = 1e-4
"""As the bundled ``gemm``: sums of products near zero have the error of the others."""
SLOW_CASES: Final = 2
SLOW_ELEMENTS: Final = 2**20
_OBJECTIVES: Final = {
    Ranking.LAST: "last",
    Ranking.MEAN: "mean",
    Ranking.GEOMEAN: "geomean",
    Ranking.SEED: "seed",
}
BANNED: Final = ("stream",)
"""Boards of GPU MODE refuse files with this word anywhere."""


@dataclass(frozen=True)
class Draft:
    """``problem`` holds the keys of ``problem.toml``; ``cases`` the board's, with ids of ours."""

    problem: Mapping[str, Any]
    cases: tuple[BoardCase, ...]
    abi: Abi | None
    notes: tuple[str, ...] = field(default=())


def draft(
    task: Task,
    name: str,
    facts: Facts,
    user: UserTables,
    product: tuple[str, str] | None,
    *,
    said: str = "--arguments",
) -> Draft:
    """Draft a problem called ``name``. Raises UserError where arguments are known to nobody.

    What ``user`` says (in the file ``said``) goes before what was read; ``product`` names the factors of a plain
    matrix product.
    """
    notes: list[str] = []
    arguments = list(user.arguments) or _arguments(facts, task.origin)
    if not arguments:
        raise UserError(
            f"{task.origin}: {_why_unread(facts)}: describe the arguments in a file, --arguments FILE"
        )
    sizes = _sizes(task, arguments, user, said)
    notes += _left_out(task, sizes)
    cases = tuple(_with_ids(task.benchmarks, sizes, task.origin))
    slow, others = _smaller(task, arguments, sizes)
    problem: dict[str, Any] = {
        "name": name,
        "title": (user.title or task.name)[:100],
        "description": task.description.strip() or task.name,
        "objective": _OBJECTIVES[task.ranking],
        "tolerance": _given(user.tolerance) or _tolerance(facts, arguments, product, notes),
        "rules": _given(user.rules) or {"banned_words": list(BANNED)},
        "arguments": [_given(argument) for argument in arguments],
        "inputs": user.inputs or dict(_inputs(facts, arguments, notes)),
        "trials": _given(user.trials) or {"other_sizes": others or False},
        "work": _given(user.work) or _work(arguments, product),
        "cases": [_case(entry, sizes) for entry in cases],
        "slow_cases": [_given(case) for case in user.slow_cases] or [{"sizes": entry} for entry in slow],
        "goal": user.goal,
    }
    problem = {key: value for key, value in problem.items() if value not in (None, [], {})}
    return Draft(problem, cases, _abi(facts, user, arguments, sizes, notes), tuple(notes))


def _given(model: BaseModel | None) -> dict[str, Any] | None:
    """What somebody said, without the defaults."""
    return model.model_dump(exclude_unset=True) if model is not None else None


# -- arguments ------------------------------------------------------------------------------------------


def _arguments(facts: Facts, origin: str) -> list[Argument]:
    """What generate_input returns; none where an item or the output is unknown. Raises UserError for odd names."""
    if not facts.inputs.readable or not facts.outputs:
        return []
    found = zip(facts.inputs.names, facts.inputs.values, strict=True)
    tables = [
        {"name": name, "dtype": value.dtype, "shape": value.shape, "role": _role(name, value, facts)}
        for name, value in found
        if isinstance(value, Tensor)
    ]
    return [parse_entry(Argument, table, f"{origin}: reference.py: generate_input") for table in tables]


def _role(name: str, value: Tensor, facts: Facts) -> str:
    if name not in facts.outputs:
        return "in"
    return "out" if value.fill is None or not value.fill else "inout"


def _why_unread(facts: Facts) -> str:
    if not facts.inputs.names:
        return "reference.py: what generate_input returns cannot be read without running it"
    pairs = zip(facts.inputs.names, facts.inputs.values, strict=True)
    unknown = [name for name, value in pairs if not isinstance(value, Tensor | Size)]
    if unknown:
        return f"reference.py: shape or dtype of {', '.join(unknown)[:100]} is none that a problem has, or not plain"
    return "reference.py: which item ref_kernel writes as its output cannot be told"


def _sizes(task: Task, arguments: Sequence[Argument], user: UserTables, said: str) -> tuple[str, ...]:
    """Arguments of the cases that shapes are made of; else all integers but the seed."""
    first = task.benchmarks[0]
    words = {name for a in arguments for text in a.shape or () for name in parse(text).names}
    wanted = (
        user.sizes
        or tuple(name for name in first if name in words)
        or tuple(name for name, value in first.items() if _is_size(value) and name != SEED)
    )
    if not wanted:
        raise UserError(
            f"{task.origin}: benchmarks: no integer argument sizes the arrays: give 'sizes' in --arguments"
        )
    if unknown := [size for size in user.sizes if size not in first]:
        raise UserError(
            f"{said}: sizes: {unknown[0]!r} is none of the benchmarks' arguments ({', '.join(first)})"
        )
    for kind, cases in (("benchmarks", task.benchmarks), ("tests", task.tests)):
        for index, case in enumerate(cases):
            if bad := [name for name in wanted if not _is_size(case.get(name))]:
                raise UserError(
                    f"{task.origin}: {kind}[{index}].{bad[0]}: must be an integer from 1 to {MAX_SIZE} to size arrays"
                )
    return wanted


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SIZE


def _left_out(task: Task, sizes: Sequence[str]) -> Iterator[str]:
    """Arguments of the cases that are no sizes change the inputs' values, which ours do not follow."""
    cases = task.benchmarks
    for name in dict.fromkeys(name for case in cases for name in case):
        if name not in {*sizes, SEED}:
            values = list(dict.fromkeys(str(case[name]) for case in cases if name in case))
            yield (
                f"{name} ({', '.join(values)[:80]}) sizes no array and is left out: "
                "our inputs are alike for all its values, the board's may not be"
            )


# -- cases ----------------------------------------------------------------------------------------------


def _with_ids(cases: Sequence[Arguments], sizes: Sequence[str], origin: str) -> Iterator[BoardCase]:
    """Ids of the sizes; where those are the same, of all arguments but the seed, and then of the seed too."""
    seen: set[str] = set()
    by_sizes = [_label(case, sizes) for case in cases]
    for index, case in enumerate(cases):
        names = [name for name in case if name != SEED]
        labels = [_label(case, names), _label(case, [*names, SEED])]
        if by_sizes.count(by_sizes[index]) == 1:
            labels.insert(0, by_sizes[index])
        label = next((label for label in labels if label not in seen), f"{labels[-1][:90]}#{index}")
        if len(label) > 100:
            label = f"{by_sizes[index][:90]}#{index}"
        if label in seen:
            raise UserError(f"{origin}: benchmarks[{index}]: is there twice")
        seen.add(label)
        yield BoardCase(case, label)


def _label(case: Arguments, names: Sequence[str]) -> str:
    return ",".join(f"{name}={case[name]}" for name in names if name in case)


def _case(entry: BoardCase, sizes: Sequence[str]) -> dict[str, Any]:
    case: dict[str, Any] = {"sizes": {name: entry.arguments[name] for name in sizes}}
    return case if entry.case == _label(entry.arguments, sizes) else {**case, "id": entry.case}


def _smaller(
    task: Task, arguments: Sequence[Argument], sizes: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Of the board's tests the largest cheap ones for slow devices; the others are tried as sizes off the list."""
    tests: list[dict[str, Any]] = []
    for case in task.tests:
        entry = {name: case[name] for name in sizes}
        if entry not in tests:
            tests.append(entry)
    listed = [{name: case[name] for name in sizes} for case in task.benchmarks]
    tests = [entry for entry in tests if entry not in listed]
    cheap = sorted(
        (e for e in tests if _elements(arguments, e) <= SLOW_ELEMENTS), key=lambda e: _elements(arguments, e)
    )
    slow = cheap[-SLOW_CASES:]
    return slow, [entry for entry in tests if entry not in slow]


def _elements(arguments: Sequence[Argument], sizes: Mapping[str, Any]) -> int:
    """Elements of all arrays; beyond any bound where a shape cannot be had, which loading will say better."""
    try:
        return sum(prod(array_shape(argument, sizes)) for argument in arguments if argument.shape)
    except ExpressionError:
        return SLOW_ELEMENTS + 1


# -- tolerance, inputs, work ----------------------------------------------------------------------------


def _tolerance(
    facts: Facts, arguments: Sequence[Argument], product: tuple[str, str] | None, notes: list[str]
) -> dict[str, float]:
    dtypes = {argument.dtype for argument in arguments if argument.is_output}
    floating = any("float" in dtype for dtype in dtypes)
    found = facts.tolerance
    if found is None:
        notes.append(
            "the board's own check gives no plain tolerance: compare [tolerance] with board/reference.py"
        )
    rtol, atol = (found.rtol, found.atol) if found else (1e-5 if floating else 0.0, 1e-8 if floating else 0.0)
    if "float16" in dtypes and rtol < HALF_RTOL:
        notes.append(
            f"the board compares float16 with its own rounding within {rtol:g}; our reference is exact, "
            f"so rtol is one unit of float16, {HALF_RTOL:.2g}"
        )
        rtol = HALF_RTOL
    tolerance = {"rtol": rtol, "atol": atol, **({"rms": PRODUCT_RMS} if product and floating else {})}
    return {key: value for key, value in tolerance.items() if value} or {"atol": 0.0}


def _inputs(
    facts: Facts, arguments: Sequence[Argument], notes: list[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    known = dict(zip(facts.inputs.names, facts.inputs.values, strict=True))
    for argument in arguments:
        if not argument.is_input:
            continue
        value = known.get(argument.name)
        floating = "float" in argument.dtype
        fill = value.fill if isinstance(value, Tensor) else None
        if fill and (floating or fill["distribution"] in {"integers", "constant"}):
            if isinstance(value, Tensor) and value.changed:
                notes.append(
                    f"the board overwrites some of {argument.name} after drawing it, our inputs do not"
                )
            yield argument.name, fill
            continue
        high = 256 if argument.dtype == "uint8" else 100
        guess = (
            {"distribution": "normal"} if floating else {"distribution": "integers", "low": 0, "high": high}
        )
        notes.append(
            f"how the board fills {argument.name} is not plain: {guess['distribution']} is taken, see [inputs]"
        )
        yield argument.name, guess


def _work(arguments: Sequence[Argument], product: tuple[str, str] | None) -> dict[str, str]:
    """Each array once; the operations of a matrix product, else none."""
    shapes = {a.name: [in_brackets(text) for text in a.shape] for a in arguments if a.shape}
    items = {a.name: ITEM_BYTES[a.dtype] for a in arguments}
    work = {
        "bytes": " + ".join(f"{items[n]} * {' * '.join(extents)}" for n, extents in shapes.items()) or "1"
    }
    if product and set(product) <= set(shapes):
        left, right = product
        work["flops"] = " * ".join(["2", *shapes[left], *shapes[right][1:]])
    return work


# -- the entry ------------------------------------------------------------------------------------------


def _abi(
    facts: Facts,
    user: UserTables,
    arguments: Sequence[Argument],
    sizes: Sequence[str],
    notes: list[str],
) -> Abi | None:
    """How arguments are handed over; ``None`` with a note where one output cannot be returned."""
    given = user.abi
    outputs = tuple(a.name for a in arguments if a.is_output)
    items = given.items or _items(facts, arguments, notes)
    results = tuple(name for name in facts.results if name in outputs) or outputs
    returns = given.returns or (results[0] if len(results) == 1 else "")
    if not returns:
        notes.append(
            f"the entry returns {len(results)} outputs, which no export can write yet: board.toml has no [abi]"
        )
        return None
    axes = dict(given.sizes)
    for size in sizes:
        if size in axes or size in items:
            continue
        if axis := _axis(size, arguments, items):
            axes[size] = axis
        else:
            notes.append(
                f"the size {size} is no extent of an array: give its place as sizes in [abi] of board.toml"
            )
    style = given.style or (facts.inputs.style if facts.inputs.names else "tuple")
    return Abi(items, returns, style, axes, given.entry)


def _items(facts: Facts, arguments: Sequence[Argument], notes: list[str]) -> tuple[str, ...]:
    """What generate_input returns; the arguments in their order where nobody knows, or a user named them anew."""
    named = tuple(argument.name for argument in arguments if argument.shape)
    inputs = {argument.name for argument in arguments if argument.is_input}
    if inputs <= set(facts.inputs.names):
        return facts.inputs.names
    if facts.inputs.names:
        notes.append(f"[abi] of board.toml takes the arguments for items in this order: {', '.join(named)}")
    return named


def _axis(size: str, arguments: Sequence[Argument], items: Sequence[str]) -> Axis | None:
    found = (
        Axis(argument.name, axis)
        for argument in arguments
        for axis, text in enumerate(argument.shape or ())
        if text == size and argument.name in items
    )
    return next(found, None)
