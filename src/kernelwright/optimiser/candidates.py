"""The configurations that an ask chooses from: all of them, or a changing part of a large space."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelwright.core.space import Codes, Rows, SearchSpace

POOL = 50_000
SAMPLED = 20_000
SAMPLED_BLIND = 5_000
"""Random parts of an enumerated space, and of one that is not."""


@dataclass(frozen=True)
class Candidates:
    """Rows [m, d] with their codes [m]; ``complete`` when these are all that the space has."""

    rows: Rows
    codes: Codes
    complete: bool

    def open(self, visited: Collection[int]) -> npt.NDArray[np.bool_]:
        """Which rows were not visited yet."""
        if not visited:
            return np.ones(len(self.rows), dtype=bool)
        return ~np.isin(self.codes, np.array(list(visited), dtype=self.codes.dtype))


def all_or_sample(space: SearchSpace, rng: np.random.Generator) -> Candidates:
    """Everything, if that is at most ``POOL``; else a random part."""
    if space.enumerable and len(space) <= POOL:
        return Candidates(space.indices, space.codes(space.indices), complete=True)
    rows = _random_part(space, rng)
    return Candidates(rows, space.codes(rows), complete=False)


def around(space: SearchSpace, centres: Rows, rng: np.random.Generator) -> Candidates:
    """A fresh random part, the centres [k, d] and all their neighbours."""
    parts = [_random_part(space, rng), centres, *(space.neighbours(centre) for centre in centres)]
    rows = np.unique(np.concatenate(parts), axis=0)
    return Candidates(rows, space.codes(rows), complete=False)


def _random_part(space: SearchSpace, rng: np.random.Generator) -> Rows:
    return space.sample(rng, SAMPLED if space.enumerable else SAMPLED_BLIND)
