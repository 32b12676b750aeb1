"""Constraints as masks over rows of value indices, and the join that enumerates what they leave.

Use it through ``core.space``. A constraint over few tunables becomes a table that is looked up; the join binds one
tunable after the other and applies every constraint as soon as all its tunables are bound, so that its cost follows
the valid configurations and not the cartesian product.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.core.configuration import Value
from kernelwright.core.errors import ExpressionError, PlanError
from kernelwright.core.expressions import Expression

TABLE_LIMIT = 1 << 18
CHUNK = 1 << 19
MAX_BYTES = 1 << 29
"""Of rows that are held at once: fewer where tunables are very many."""
SAMPLE_ROUNDS = 20
SAMPLE_WIDTH = 256
STILL_FINDING = 0.98
ORIGIN = "search space"
Dtype = type[np.uint8] | type[np.uint16]
Rows = npt.NDArray[np.unsignedinteger]
Mask = npt.NDArray[np.bool_]
Steps = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True)
class Rule:
    """A condition on the tunables at ``axes``; ``table`` [sizes of the axes] where it fits, else computed.

    ``steps`` are the derived values that the condition needs, in order. A rule whose ``condition`` is None says that
    its last step exists.
    """

    name: str
    axes: tuple[int, ...]
    columns: tuple[npt.NDArray[Any], ...]
    names: tuple[str, ...]
    steps: Steps
    condition: Expression | None
    constants: Mapping[str, int]
    table: Mask | None = None

    def holds(self, rows: Rows) -> Mask:
        """Which of the rows [n, d] fulfil the rule; only the columns of ``axes`` are read."""
        picked = [rows[:, axis] for axis in self.axes]
        if self.table is not None:
            return np.broadcast_to(self.table[tuple(picked)], (len(rows),))
        values = {
            name: column[index] for name, column, index in zip(self.names, self.columns, picked, strict=True)
        }
        return np.broadcast_to(self._evaluate(values), (len(rows),))

    @property
    def key(self) -> str:
        """Where the plan says it."""
        return f"{'constraints' if self.condition else 'let'}.{self.name}"

    def tabulated(self) -> "Rule":
        """The same rule with its table; raises PlanError when it holds nowhere."""
        sizes = tuple(len(column) for column in self.columns)
        if prod(sizes) > TABLE_LIMIT:
            return self
        grids = np.meshgrid(*self.columns, indexing="ij")
        table = np.broadcast_to(self._evaluate(dict(zip(self.names, grids, strict=True))), sizes)
        if not table.any():
            what = (
                f"constraint {self.name!r} ({self.condition.text})"
                if self.condition
                else f"value {self.name!r}"
            )
            raise PlanError(
                f"the {what} holds for no combination of {', '.join(self.names) or 'values'}",
                ORIGIN,
                key=self.key,
            )
        return replace(self, table=table)

    def _evaluate(self, values: Mapping[str, npt.NDArray[Any]]) -> Mask:
        known: dict[str, Any] = {**self.constants, **values}
        valid: Mask = np.ones((), dtype=bool)
        for name, expression in self.steps:
            result, exists = expression.evaluate_where(known)
            known[name] = result
            valid = valid & exists
        if self.condition is None:
            return valid
        result, exists = self.condition.evaluate_where(known)
        return np.asarray(valid & exists & (result != 0))


def make_rules(
    values: Mapping[str, tuple[Value, ...]],
    derived: Sequence[tuple[str, Expression]],
    constraints: Sequence[tuple[str, Expression]],
    constants: Mapping[str, int],
) -> tuple[Rule, ...]:
    """Rules for the derived values (they must exist) and the constraints. Raises PlanError or ExpressionError."""
    needs: dict[str, Steps] = {}
    rules = []
    for name, expression in derived:
        _check_names(expression, {*values, *constants, *needs})
        needs[name] = (*_steps(expression, needs), (name, expression))
        rules.append(_rule((name, needs[name], None), values, constants))
    for name, expression in constraints:
        _check_names(expression, {*values, *constants, *needs})
        rules.append(_rule((name, _steps(expression, needs), expression), values, constants))
    return tuple(rules)


def _check_names(expression: Expression, known: set[str]) -> None:
    if unknown := expression.names - known:
        raise ExpressionError(
            f"unknown name {min(unknown)!r} (known: {', '.join(sorted(known))})", expression.text
        )


def _steps(expression: Expression, needs: Mapping[str, Steps]) -> Steps:
    """The derived values that an expression needs, each once, in order."""
    return tuple({step: None for name, steps in needs.items() if name in expression.names for step in steps})


def _rule(
    parts: tuple[str, Steps, Expression | None],
    values: Mapping[str, tuple[Value, ...]],
    constants: Mapping[str, int],
) -> Rule:
    name, steps, condition = parts
    used = {n for _, expression in steps for n in expression.names} | (
        condition.names if condition else set()
    )
    names = tuple(n for n in values if n in used)
    for n in names:
        if any(isinstance(value, str) for value in values[n]):
            raise PlanError(f"{name!r} computes with {n!r}, which has text values", ORIGIN)
    axes = tuple(axis for axis, n in enumerate(values) if n in used)
    columns = tuple(np.array(values[n]) for n in names)
    fixed = {n: constants[n] for n in used if n in constants}
    return Rule(name, axes, columns, names, steps, condition, fixed).tabulated()


@dataclass(frozen=True)
class Lattice:
    """All combinations of ``shape`` value indices under ``rules``; rows have ``dtype``."""

    rules: tuple[Rule, ...]
    shape: tuple[int, ...]
    dtype: Dtype

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Order in which tunables are bound: next is the one that lets rules remove most."""
        shares = [0.5 if rule.table is None else max(float(rule.table.mean()), 1e-9) for rule in self.rules]
        missing = [len(rule.axes) for rule in self.rules]
        rest = set(range(len(self.shape)))
        keys = {axis: self._key(axis, shares, missing) for axis in rest}
        order: list[int] = []
        while rest:
            chosen = min(rest, key=keys.__getitem__)
            rest.remove(chosen)
            order.append(chosen)
            for number in self._rules_of[chosen]:
                missing[number] -= 1
            others = {axis for number in self._rules_of[chosen] for axis in self.rules[number].axes}
            keys.update((axis, self._key(axis, shares, missing)) for axis in others & rest)
        return tuple(order)

    def _key(self, axis: int, shares: Sequence[float], missing: Sequence[int]) -> tuple[float, int, int]:
        """Expected factor of rows when ``axis`` is bound next: its values times the shares that rules keep.

        A rule that is not complete yet (``missing`` axes) counts a little, so that its tunables come together.
        """
        growth = float(self.shape[axis])
        for number in self._rules_of[axis]:
            growth *= shares[number] ** (0.5 ** (missing[number] - 1))
        return growth, self.shape[axis], axis

    @cached_property
    def _rules_of(self) -> tuple[list[int], ...]:
        """For each axis the numbers of the rules that look at it."""
        found: tuple[list[int], ...] = tuple([] for _ in self.shape)
        for number, rule in enumerate(self.rules):
            for axis in rule.axes:
                found[axis].append(number)
        return found

    @cached_property
    def complete(self) -> tuple[tuple[Rule, ...], ...]:
        """For each step of :attr:`order` the rules whose last tunable is bound in it."""
        steps: list[list[Rule]] = [[] for _ in self.shape]
        step_of = {axis: step for step, axis in enumerate(self.order)}
        for rule in self.rules:
            if rule.axes:
                steps[max(step_of[axis] for axis in rule.axes)].append(rule)
        return tuple(map(tuple, steps))

    def _extended(self, rows: Rows, step: int) -> Rows:
        """All valid continuations of partial rows by the values of the step's tunable."""
        axis = self.order[step]
        size = self.shape[axis]
        grown = np.repeat(rows, size, axis=0)
        grown[:, axis] = np.tile(np.arange(size, dtype=rows.dtype), len(rows))
        for rule in self.complete[step]:
            grown = grown[rule.holds(grown)]
        return grown

    def join(self, limit: int) -> Rows | None:
        """All valid rows [n, d] in no particular order; None when more than ``limit`` were held at once.

        Tunables that no rule looks at multiply what the others leave: that is counted before it is made. Raises
        PlanError when there is none.
        """
        free = [axis for axis, rules in enumerate(self._rules_of) if not rules]
        bound = [axis for axis, rules in enumerate(self._rules_of) if rules]
        limit = min(limit, MAX_BYTES // max(len(self.shape), 1))
        part = self._ruled(bound).bind(limit)
        times = prod(self.shape[axis] for axis in free)
        if part is None or len(part) * times > limit:
            return None
        rows: Rows = np.zeros((len(part) * times, len(self.shape)), dtype=self.dtype)
        rows[:, bound] = np.repeat(part, times, axis=0)
        left = np.tile(np.arange(times), len(part))
        for axis in free:
            rows[:, axis] = left % self.shape[axis]
            left //= self.shape[axis]
        return rows

    def _ruled(self, axes: Sequence[int]) -> "Lattice":
        """The lattice of these axes alone, which are all that rules look at."""
        place = {axis: number for number, axis in enumerate(axes)}
        rules = tuple(replace(rule, axes=tuple(place[a] for a in rule.axes)) for rule in self.rules)
        return Lattice(rules, tuple(self.shape[axis] for axis in axes), self.dtype)

    def bind(self, limit: int) -> Rows | None:
        """:meth:`join` by binding one tunable after the other."""
        rows: Rows = np.zeros((1, len(self.shape)), dtype=self.dtype)
        for step, axis in enumerate(self.order):
            chunk = max(1, min(CHUNK, MAX_BYTES // 8 // len(self.shape)) // self.shape[axis])
            parts, count = [], 0
            for start in range(0, len(rows), chunk):
                parts.append(self._extended(rows[start : start + chunk], step))
                count += len(parts[-1])
                if count > limit:
                    return None
            if count == 0:
                last = ", ".join(repr(rule.name) for rule in self.complete[step])
                raise PlanError(
                    f"no configuration fulfils all constraints (nothing is left after {last})",
                    ORIGIN,
                    key=self.complete[step][0].key,
                )
            rows = np.concatenate(parts)
        return rows

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """Up to ``n`` distinct valid rows, by completing partial rows at random and dropping dead ends.

        Not uniform: a partial row counts the same however many completions it has. Raises PlanError when no
        row was found.
        """
        width = min(max(n, SAMPLE_WIDTH), CHUNK)
        found: Rows = np.zeros((0, len(self.shape)), dtype=self.dtype)
        for _ in range(SAMPLE_ROUNDS):
            before = len(found)
            found = np.unique(np.concatenate([found, self._complete_at_random(rng, width)]), axis=0)
            if len(found) >= n or 0 < before >= len(found) * STILL_FINDING:
                break
        if not len(found):
            message = "sampling found no configuration that fulfils all constraints"
            raise PlanError(message, ORIGIN, key="constraints")
        return found[rng.permutation(len(found))[:n]]

    def _complete_at_random(self, rng: np.random.Generator, width: int) -> Rows:
        rows: Rows = np.zeros((width, len(self.shape)), dtype=self.dtype)
        for step, axis in enumerate(self.order):
            size = self.shape[axis]
            if not self.complete[step]:
                rows[:, axis] = rng.integers(size, size=width)
                continue
            if width * size <= CHUNK:
                grown = self._extended(rows, step)
            else:  # some of the values for each row have to do
                grown = np.repeat(rows, max(1, CHUNK // width), axis=0)
                grown[:, axis] = rng.integers(size, size=len(grown))
                for rule in self.complete[step]:
                    grown = grown[rule.holds(grown)]
            if not len(grown):
                return grown
            rows = grown[rng.integers(len(grown), size=width)]
        return rows
