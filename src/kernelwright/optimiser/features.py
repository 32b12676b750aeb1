"""Configurations as points: the columns in which the surrogate measures distances.

Four kinds of columns: a tunable's values (numbers on a linear or logarithmic scale from 0 to 1), their relation to
powers of two, membership in each value (the order of values may mean nothing), and the *quantities* that the author of the template computes from
tunables in ``[let]`` and in constraints (threads per block, work per thread, bytes of shared memory): performance
depends on them more directly than on the tunables.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.core.configuration import Value
from kernelwright.core.expression_nodes import Binary, Call, Choice, Compare, Logic, Name, Node, Number, Unary
from kernelwright.core.expressions import Expression
from kernelwright.core.space import Rows, SearchSpace

Points = npt.NDArray[np.float64]
LOG_RATIO = 4
MAX_QUANTITIES = 12
MAX_NAMES = 32
SCALE_PRIOR = (0.2, 0.8)
DERIVED_PRIOR = (1.1, 1.0)
MEMBERSHIP_PRIOR = (1.6, 1.0)
"""Log length scales: what is computed from the values counts little until the data say otherwise."""
REFERENCE_ROWS = 2000


@dataclass(frozen=True)
class Quantity:
    """A positive number computed from several tunables, on a logarithmic scale: ``(log2(x) - low) / width``."""

    expression: Expression
    low: float
    width: float


@dataclass(frozen=True)
class Block:
    """Columns [values, k] of one tunable that share a length scale; ``prior`` is (mean, deviation) of its logarithm."""

    columns: Points
    prior: tuple[float, float]


@dataclass(frozen=True)
class FeatureMap:
    """Columns over a space.

    ``groups[c]`` is the number of the length scale that column ``c`` is measured with, ``length_priors`` [scales, 2]
    mean and deviation of the logarithms of these; ``scale_columns`` are the plain values of the tunables.
    """

    space: SearchSpace
    tables: tuple[Points, ...]
    quantities: tuple[Quantity, ...]
    groups: npt.NDArray[np.intp]
    length_priors: Points
    scale_columns: tuple[int, ...]

    @property
    def scales(self) -> int:
        """Number of length scales."""
        return int(self.groups[-1]) + 1 if len(self.groups) else 0

    def points(self, rows: Rows) -> Points:
        """Points [n, columns] of rows [n, tunables]."""
        parts = [table[rows[:, axis]] for axis, table in enumerate(self.tables)]
        if self.quantities:
            values = _values(self.space, rows)
            parts += [_quantity_column(quantity, values, len(rows)) for quantity in self.quantities]
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(rows), 0))


def make_features(space: SearchSpace, reference: Rows) -> FeatureMap:
    """Columns for a space; ``reference`` rows [n, d] are valid ones that set the scale of quantities."""
    blocks = [_blocks(tunable.values) for tunable in space.tunables]
    tables = tuple(np.concatenate([block.columns for block in own], axis=1) for own in blocks)
    rows = reference[np.linspace(0, len(reference) - 1, min(len(reference), REFERENCE_ROWS)).astype(int)]
    known = [column for axis, table in enumerate(tables) for column in table[rows[:, axis]].T]
    quantities = _quantities(space, rows, known)
    widths = [block.columns.shape[1] for own in blocks for block in own] + [1] * len(quantities)
    priors = [block.prior for own in blocks for block in own] + [DERIVED_PRIOR] * len(quantities)
    groups = np.repeat(np.arange(len(widths)), widths)
    starts = np.cumsum([0, *(table.shape[1] for table in tables)])
    scales = tuple(
        int(start) + column
        for start, own in zip(starts, blocks, strict=False)
        for column in range(own[0].columns.shape[1])
    )
    return FeatureMap(space, tables, quantities, groups, np.array(priors).reshape(-1, 2), scales)


def _blocks(values: tuple[Value, ...]) -> list[Block]:
    """Columns of one tunable: its scale, what powers of two say of it, and which value it is."""
    if any(isinstance(value, str) for value in values):
        return [Block(_membership(len(values)), SCALE_PRIOR)]
    numbers = np.array(values, dtype=float)
    blocks = [Block(_scaled(numbers)[:, None], SCALE_PRIOR)]
    blocks += [Block(column[:, None], DERIVED_PRIOR) for column in _powers_of_two(numbers)]
    if 2 < len(numbers) <= MAX_NAMES:
        blocks.append(Block(_membership(len(values)), MEMBERSHIP_PRIOR))
    return blocks


def unevenness(space: SearchSpace, rows: Rows) -> npt.NDArray[np.intp]:
    """How many tunables of each row [n] have a whole value that is no power of two."""
    count = np.zeros(len(rows), dtype=np.intp)
    for axis, tunable in enumerate(space.tunables):
        if len(tunable.values) > 2 and not any(isinstance(value, str) for value in tunable.values):
            numbers = np.array(tunable.values, dtype=float)
            if _whole(numbers):
                count += (_largest_power(numbers) != numbers)[rows[:, axis]]
    return count


def _whole(numbers: Points) -> bool:
    return bool(numbers.min() >= 1 and numbers.max() < 2**53 and (numbers == np.floor(numbers)).all())


def _largest_power(numbers: Points) -> Points:
    """Largest power of two that divides each whole number."""
    whole = numbers.astype(np.int64)
    return (whole & -whole).astype(np.float64)


def _powers_of_two(numbers: Points) -> list[Points]:
    """Alignment (log of the largest power of two that divides) and being one, from 0 to 1; empty if all are one.

    48 threads behave like 40 or 80 rather than like 32 or 64: warps, memory transactions, problem sizes and tiles
    are powers of two, and what is none needs bounds checks and leaves lanes idle.
    """
    if len(numbers) < 3 or not _whole(numbers):
        return []
    power = _largest_power(numbers)
    columns = [np.log2(power), (power == numbers).astype(np.float64)]
    if (power == numbers).all():
        return []
    return [(c - c.min()) / np.ptp(c) for c in columns if np.ptp(c) > 0]


def _membership(n: int) -> Points:
    """Columns in which any two different values are at distance 1."""
    return np.asarray(np.eye(n) / np.sqrt(2))


def _scaled(numbers: Points) -> Points:
    """From 0 to 1; logarithmic when the values span a factor of four or more."""
    if len(numbers) > 2 and numbers.min() >= 0:
        if numbers.min() > 0 and numbers.max() / numbers.min() >= LOG_RATIO:
            numbers = np.log2(numbers)
        elif numbers.min() == 0 and numbers.max() >= LOG_RATIO:
            numbers = np.log2(numbers + 1)
    width = float(np.ptp(numbers))
    return (numbers - numbers.min()) / width if width else np.zeros_like(numbers)


def _values(space: SearchSpace, rows: Rows) -> dict[str, Any]:
    """Numbers by name for the rows: tunables, constants, derived values."""
    known: dict[str, Any] = dict(space.constants)
    for axis, tunable in enumerate(space.tunables):
        known[tunable.name] = np.array(tunable.values)[rows[:, axis]]
    for name, expression in space.derived:
        known[name] = expression.evaluate_where(known)[0]
    return known


def _quantity_column(quantity: Quantity, values: Mapping[str, Any], n: int) -> Points:
    raw = np.broadcast_to(quantity.expression.evaluate_where(values)[0], n).astype(float)
    column: Points = (np.log2(np.maximum(raw, 1e-9)) - quantity.low) / quantity.width
    return column[:, None]


def _quantities(space: SearchSpace, rows: Rows, known: list[Points]) -> tuple[Quantity, ...]:
    """The usable quantities: positive, at least three values, not a copy of a column that exists."""
    values = _values(space, rows)
    tunables = set(space.names)
    columns = list(known)
    chosen: list[Quantity] = []
    for expression in _candidates(space):
        numbers, exists = expression.evaluate_where(values)
        raw = np.broadcast_to(numbers, len(rows)).astype(float)
        if not np.all(exists) or raw.min() <= 0 or len(np.unique(raw)) < 3:
            continue
        log = np.log2(raw)
        quantity = Quantity(expression, float(log.min()), float(np.ptp(log)))
        column = (log - log.min()) / np.ptp(log)
        if any(np.abs(column - other).max() < 1e-6 for other in columns):
            continue
        columns.append(column)
        chosen.append(quantity)
    return tuple(chosen[:MAX_QUANTITIES]) if tunables else ()


def _candidates(space: SearchSpace) -> Iterator[Expression]:
    """Derived values, and the arithmetic that constraints compare."""
    for _, expression in space.derived:
        yield expression
    for constraint in space.constraints:
        for node in _compared(constraint.expression.tree):
            names = _names(node)
            if names:
                yield replace(constraint.expression, names=frozenset(names), tree=node)


def _compared(node: Node) -> Iterator[Node]:
    """Sides of all comparisons; ``a % b == 0`` tells of the ratio a / b, its parts are quantities too."""
    if isinstance(node, Logic):
        for part in node.parts:
            yield from _compared(part)
    elif isinstance(node, Unary):
        yield from _compared(node.operand)
    elif isinstance(node, Compare):
        for operand in node.operands:
            yield from _products(operand)


def _products(node: Node) -> Iterator[Node]:
    if isinstance(node, Binary) and node.op == "%":
        yield Binary("/", Binary("*", Number(1.0, 0), node.left, 0), node.right, 0)
        yield from _products(node.left)
        yield from _products(node.right)
    elif isinstance(node, Binary | Call):
        yield node


def _names(node: Node) -> set[str]:
    match node:
        case Name(name, _):
            return {name}
        case Unary(_, operand, _):
            return _names(operand)
        case Binary(_, left, right, _):
            return _names(left) | _names(right)
        case Compare(_, parts, _) | Logic(_, parts, _) | Call(_, parts, _):
            return {name for part in parts for name in _names(part)}
        case Choice(condition, then, other, _):
            return _names(condition) | _names(then) | _names(other)
        case _:
            return set()
