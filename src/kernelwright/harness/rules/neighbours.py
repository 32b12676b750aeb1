"""Whether a value at a case's size stands out from its values at the sizes around it.

It does where it is a narrow bump or dip: within a 64th of the size it changes on both sides, in the same direction,
and few sizes around share it. Steps and ranges that hold for many sizes do not, nor does what comes back at regular
distances: remainders by small numbers, divisibility, powers of two.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

Again = Callable[[Mapping[str, Column]], npt.NDArray[Any] | None]

LEAST: Final = 3
"""Sizes of 1 and 2 are told apart by honest code too."""
SHARE: Final = 64
SHARE_OF_GRIDS: Final = 8
"""A grid's number of blocks is a size in coarse steps."""
_DENSE: Final = 64
_TWO: Final = 2
_FEW_BANDS: Final = 128
_RETURNS: Final = 4
"""A remainder by up to 64 comes back as often within so many of its own widths, or twice as many upwards."""
_ALIKE: Final = 2
_SMALL: Final = 1024
_FEW: Final = 0.5
_LARGEST_RAY: Final = 64
_NEAR: Final = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class Line:
    """Sizes on a line through a case: ``steps`` is how far each size goes with one step, ``size`` what is stepped."""

    case: Mapping[str, int]
    steps: Mapping[str, int]
    size: int

    @cached_property
    def periods(self) -> list[int]:
        """Distances at which a divisibility comes back."""
        near = [n for n in (self.size, self.size + 1, self.size - 1) if n]
        medium = range(_FEW_BANDS // 2 + 1, min(_SMALL, self.size // 8) + 1)
        large = {odd << k for odd in (1, 3, 5, 7) for k in range(21)}
        return sorted(p for p in {*medium, *large} if p > 1 and any(n % p == 0 for n in near))

    @cached_property
    def powers(self) -> list[int]:
        """Steps to other powers of two, where the size is one."""
        n = self.size
        return [n // 4 - n, n // 2 - n, n, 3 * n] if n & (n - 1) == 0 else []

    @cached_property
    def steps_taken(self) -> list[int]:
        """All steps that are looked at, in order."""
        found = {0, *self.powers}
        for width in (self.width(SHARE), self.width(SHARE_OF_GRIDS)):
            found |= {*self.ring(width), width, -width}
        found |= {sign * step for sign in (1, -1) for step in range(_DENSE + 1)}
        found |= {times * period for times in (-2, -1, 1, 2) for period in self.periods}
        return sorted(step for step in found if self.size + step >= 1)

    def width(self, share: int) -> int:
        """How near on both sides the value must change: within this share of the size."""
        return max(1 if self.size < _DENSE // 2 else 2, self.size // share)

    def ring(self, width: int) -> list[int]:
        """Steps over which is counted how rare the value is."""
        reach = max(_DENSE, 4 * width)
        every = np.linspace(-reach, reach, 2 * _DENSE + 1).astype(int)
        return [int(step) for step in every if self.size + step >= 1 and step]

    def columns(self, steps: Sequence[int]) -> dict[str, Column]:
        """Sizes at the steps."""
        taken = np.asarray(steps, np.int64)
        return {
            name: np.maximum(size + taken * self.steps.get(name, 0), 1) for name, size in self.case.items()
        }

    @cached_property
    def all_columns(self) -> dict[str, Column]:
        """Sizes at all steps that are looked at."""
        return self.columns(self.steps_taken)

    def stands_out(self, again: Again, share: int) -> bool:
        """Whether an expression that can be evaluated ``again`` at other sizes singles out the case."""
        found = again(self.all_columns)
        if found is None:
            return False
        steps = self.steps_taken
        data = np.broadcast_to(found.astype(np.float64), (len(steps),))
        middle = steps.index(0)
        here, width = float(data[middle]), self.width(share)
        other = (data != here) & ~np.isnan(data)
        above, below = (
            middle + 1 + int(other[middle + 1 :].argmax()),
            middle - 1 - int(other[:middle][::-1].argmax()),
        )
        if not other[middle + 1 :].any() or not other[:middle].any() or np.isnan(here):
            return False
        if steps[above] > width or -steps[below] > width:
            return False
        up, down = float(data[above]) - here, float(data[below]) - here
        # One jump that is much larger than the other is where a remainder begins again.
        if up * down <= 0 or max(abs(up), abs(down)) > _ALIKE * min(abs(up), abs(down)):
            return False
        at = dict(zip(steps, data.tolist(), strict=True))
        ring, band = self.ring(width), steps[above] - steps[below] - 1
        if sum(at[step] == here for step in ring) >= _FEW * len(ring) or self._comes_back(at, band):
            return False
        return not self._repeats(again, here, band)

    def _repeats(self, again: Again, here: float, band: int) -> bool:
        """Whether the value, or a straight line through it, comes back at distances of a few of its own widths."""
        times = range(-_FEW_BANDS, 2 * _FEW_BANDS + 1)
        every = [band * each for each in times if self.size + band * each >= 1]
        found = again(self.columns(every))
        if found is None:
            return True
        at = dict(zip(every, np.broadcast_to(found.astype(np.float64), (len(every),)).tolist(), strict=True))
        return sum(value == here for value in at.values()) > _RETURNS or _rises(at, here, band)

    def _comes_back(self, at: Mapping[int, float], band: int) -> bool:
        here = at[0]
        if sum(at.get(step) == here for step in self.powers) > 1:
            return True
        for period in (p for p in self.periods if p > band):
            around = [at.get(times * period) for times in (-2, -1, 1, 2)]
            divides = self.size % period == 0 and period & (period - 1) == 0 and period > _TWO
            if sum(value == here for value in around) >= (1 if divides else 2):
                return True
        return False


def _rises(at: Mapping[int, float], here: float, band: int) -> bool:
    """Whether values at some distance lie on one straight line: a remainder's multiple, ``N & ~1``."""
    for times in range(1, _FEW_BANDS // 2 + 1):
        below, above, last = (at.get(step * times * band, nan) for step in (-1, 1, 2))
        if above - here == here - below == last - above != 0:
            return True
    return False


def slanted(case: Mapping[str, int]) -> Iterator[Line]:
    """Lines along all sizes: on them a relation between sizes, such as ``R == C``, holds everywhere."""
    yield Line(case, dict.fromkeys(case, 1), min(case.values()))
    unit = gcd(*case.values())
    steps = {name: size // unit for name, size in case.items()}
    if max(steps.values()) <= _LARGEST_RAY and len(set(steps.values())) > 1:
        yield Line(case, steps, unit)


class Neighbours:
    """A few sizes around every case along every size: most expressions are seen here to be harmless."""

    def __init__(self, cases: Sequence[Mapping[str, int]]) -> None:
        self.rows = [(case, name) for case in cases for name in case if case[name] >= LEAST]
        near = [0]
        self.steps: list[list[int]] = []
        self.lines: dict[object, list[Line]] = {}
        for case, name in self.rows:
            size = case[name]
            far = [size // part for part in (256, 128, SHARE, 32, 16, SHARE_OF_GRIDS)]
            self.steps.append(near + [sign * step for step in (*_NEAR, *far) for sign in (1, -1)])
        self.shape = (len(self.rows), len(self.steps[0]) if self.steps else 0)
        names = list(cases[0]) if cases else []
        self.columns = {name: self._column(name) for name in names}

    def _column(self, name: str) -> Column:
        rows = [
            [case[name] + (step if name == moved else 0) for step in steps]
            for (case, moved), steps in zip(self.rows, self.steps, strict=True)
        ]
        return np.maximum(np.asarray(rows, np.int64).reshape(-1), 1)

    def suspects(
        self, data: npt.NDArray[Any], lost: npt.NDArray[np.bool_] | None
    ) -> list[tuple[Mapping[str, int], str]]:
        """Cases, and the size of each, around which values rise on both sides, or fall."""
        if data.ndim == 0 or not self.rows:
            return []
        table = data.reshape(self.shape)
        here = table[:, :1]
        if lost is not None:
            table = np.where(np.broadcast_to(lost, data.shape).reshape(self.shape), here, table)
        above, below = table[:, 1::2], table[:, 2::2]
        bump = (above < here).any(axis=1) & (below < here).any(axis=1)
        dip = (above > here).any(axis=1) & (below > here).any(axis=1)
        return [self.rows[index] for index in np.flatnonzero(bump | dip)]

    def singled_out(self, case: Mapping[str, int], name: str, used: int, share: int, again: Again) -> bool:
        """Whether an expression of ``used`` sizes, evaluated ``again`` at other sizes, singles out a case."""
        key = (*case.values(), name)
        if key not in self.lines:
            self.lines[key] = [Line(case, {name: 1}, case[name]), *slanted(case)]
        looked = self.lines[key] if used > 1 else self.lines[key][:1]
        return all(line.stands_out(again, share) for line in looked)
