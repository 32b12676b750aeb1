"""Tunables, constraints, and the configurations they leave.

A configuration is valid when every derived value exists and every constraint holds. An expression that fails for a
combination (a ``/`` that does not divide exactly, a division by zero) makes that combination invalid: it is no error.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.core.configuration import Configuration, Value
from kernelwright.core.errors import PlanError
from kernelwright.core.expressions import Expression
from kernelwright.core.space_rules import ORIGIN, Lattice, make_rules

ENUMERATION_LIMIT = 5_000_000
"""Largest number of (partial) configurations that are held in memory: 9 bytes and one per tunable each."""

Codes = npt.NDArray[Any]
Rows = npt.NDArray[np.unsignedinteger]
"""Configurations as indices into each tunable's values, [n, number of tunables]."""


@dataclass(frozen=True)
class Tunable:
    """A named value and what it may be, in the order that the author gave."""

    name: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise PlanError(f"the tunable {self.name!r} has no values", ORIGIN)
        if len(set(self.values)) != len(self.values):
            raise PlanError(f"the tunable {self.name!r} has a value twice: {list(self.values)}", ORIGIN)


@dataclass(frozen=True)
class Constraint:
    """A named condition over tunables, derived values and constants."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class SearchSpace:
    """The valid configurations under the constraints.

    ``derived`` values are computed in order and may be used by later ones and by constraints. All of it is checked
    and enumerated on first use; PlanError then says that nothing is valid, or which constraint can never hold.

    A space with more than ``limit`` configurations is not enumerated (:attr:`enumerable` is false): it is used
    through :meth:`sample` and :meth:`neighbours`, which work for both kinds.

    ``listed`` rows [n, d], where given, are all that is valid (a measured space that is played back); constraints
    are then only descriptions.
    """

    tunables: tuple[Tunable, ...]
    constraints: tuple[Constraint, ...] = ()
    derived: tuple[tuple[str, Expression], ...] = ()
    constants: Mapping[str, int] = field(default_factory=dict)
    limit: int = ENUMERATION_LIMIT
    listed: Rows | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = self.names
        if twice := {name for name in names if names.count(name) > 1}:
            raise PlanError(f"the tunable {min(twice)!r} is defined twice", ORIGIN)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tunables, in order of the columns of :attr:`indices`."""
        return tuple(tunable.name for tunable in self.tunables)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each tunable."""
        return tuple(len(tunable.values) for tunable in self.tunables)

    @property
    def cartesian(self) -> int:
        """Number of combinations without any constraint."""
        return prod(self.shape)

    @property
    def widest(self) -> str:
        """Name of the tunable with the most values."""
        return max(self.tunables, key=lambda tunable: len(tunable.values)).name

    @property
    def enumerable(self) -> bool:
        """Whether all configurations are held in memory: :attr:`indices` and ``len`` then work."""
        return self._joined is not None

    @property
    def indices(self) -> Rows:
        """All valid configurations [n, d] in lexicographic order, read-only; uint8, or uint16 beyond 256 values."""
        if self._joined is None:
            raise PlanError(f"more than {self.limit} configurations: use sample and neighbours", ORIGIN)
        return self._joined

    def __len__(self) -> int:
        return len(self.indices)

    def configuration(self, index: int) -> Configuration:
        """The configuration of row ``index`` of :attr:`indices`."""
        return self.configuration_of(self.indices[index])

    def configuration_of(self, row: npt.NDArray[np.unsignedinteger]) -> Configuration:
        """The configuration of one row [d]."""
        return Configuration(
            {t.name: t.values[int(i)] for t, i in zip(self.tunables, row, strict=True)},
        )

    def row_of(self, configuration: Configuration) -> Rows:
        """Row [d] of a configuration, valid or not. Raises PlanError for an unknown tunable or value."""
        if set(configuration) != set(self.names):
            odd = min(set(configuration) ^ set(self.names))
            raise PlanError(
                f"the configuration does not fit the space: {odd!r} is missing or unknown", ORIGIN
            )
        row = np.zeros(len(self.tunables), dtype=self._dtype)
        for column, tunable in enumerate(self.tunables):
            value = configuration[tunable.name]
            if value not in self._places[column]:
                raise PlanError(f"{tunable.name} = {value!r} is not one of its values", ORIGIN)
            row[column] = self._places[column][value]
        return row

    def index_of(self, configuration: Configuration) -> int:
        """Position in :attr:`indices`. Raises PlanError for a configuration that is not valid."""
        code = self.codes(self.row_of(configuration)[None])[0]
        all_codes = self._all_codes
        place = int(np.searchsorted(all_codes, code))
        if place == len(all_codes) or all_codes[place] != code:
            raise PlanError(f"not valid: violates {self.violated(configuration)!r}", ORIGIN)
        return place

    def contains(self, configuration: Configuration) -> bool:
        """Whether the configuration is valid; :meth:`violated` says why not."""
        return self.violated(configuration) is None

    def violated(self, configuration: Configuration) -> str | None:
        """Name of the first violated constraint (or derived value that does not exist), None when valid."""
        try:
            row = self.row_of(configuration)
        except PlanError as error:
            return error.message
        if self.listed is not None:
            return None if self.valid(row[None])[0] else "listed"
        return next((rule.name for rule in self._lattice.rules if not rule.holds(row[None])[0]), None)

    def valid(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Which of the rows [n, d] are valid configurations."""
        if self.listed is not None:
            return np.isin(self.codes(rows), self._all_codes)
        mask = np.ones(len(rows), dtype=bool)
        for rule in self._lattice.rules:
            mask[mask] = rule.holds(rows[mask])
        return mask

    def codes(self, rows: Rows) -> Codes:
        """One number a row [n], unique and in lexicographic order (Python integers where 64 bits are too few)."""
        kind = np.int64 if self.cartesian < 2**63 else np.object_
        code: Codes = np.zeros(len(rows), dtype=kind)
        for column, size in enumerate(self.shape):
            code = code * size + rows[:, column].astype(kind)
        return code

    def sample(self, rng: np.random.Generator, n: int) -> Rows:
        """Up to ``n`` distinct valid rows [<= n, d]: uniform when enumerable, else by random completion.

        Raises PlanError when none was found.
        """
        if self.enumerable:
            chosen = rng.choice(len(self), size=min(n, len(self)), replace=False)
            return self.indices[np.sort(chosen)]
        return self._lattice.sample(rng, n)

    def neighbours(self, row: Rows) -> Rows:
        """All valid rows [m, d] that differ from ``row`` [d] in exactly one tunable."""
        sizes = self.shape
        changed = np.repeat(row[None], sum(sizes), axis=0)
        columns = np.repeat(np.arange(len(sizes)), sizes)
        values = np.concatenate([np.arange(size) for size in sizes]) if sizes else np.zeros(0, dtype=int)
        keep = row[columns] != values
        changed[np.arange(len(columns)), columns] = values
        changed = changed[keep]
        return np.asarray(changed[self.valid(changed)])

    # -- computed once ------------------------------------------------------------------------------------

    @cached_property
    def _dtype(self) -> type[np.uint8] | type[np.uint16]:
        return np.uint8 if max(self.shape, default=1) <= 256 else np.uint16

    @cached_property
    def _places(self) -> tuple[dict[Value, int], ...]:
        return tuple({value: i for i, value in enumerate(t.values)} for t in self.tunables)

    @cached_property
    def _lattice(self) -> Lattice:
        values = {t.name: t.values for t in self.tunables}
        named = tuple((c.name, c.expression) for c in self.constraints)
        rules = make_rules(values, self.derived, named, self.constants)
        return Lattice(rules, self.shape, self._dtype)

    @cached_property
    def _joined(self) -> Rows | None:
        joined = self._lattice.join(self.limit) if self.listed is None else self.listed
        if joined is None:
            return None
        rows: Rows = joined[np.argsort(self.codes(joined), kind="stable")]
        rows.setflags(write=False)
        return rows

    @cached_property
    def _all_codes(self) -> Codes:
        return self.codes(self.indices)
