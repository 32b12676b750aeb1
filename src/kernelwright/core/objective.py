"""Objectives: what makes one measured candidate better than another."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, geometric_mean, pstdev

ELIGIBLE_RATIO = 1.3
SPREAD_WEIGHT = 0.1
COMPILE_FAILURE_COST = 0.05

Times = Mapping[str, float]


class ObjectiveName(StrEnum):
    """``seed`` as in docs/design.md section 7; ``geomean``, ``mean`` and ``last`` follow the boards."""

    SEED = "seed"
    GEOMEAN = "geomean"
    MEAN = "mean"
    LAST = "last"


@dataclass(frozen=True)
class Objective:
    """Times are medians per case in ms; order of cases is the problem's."""

    name: ObjectiveName

    def time(self, times: Times) -> float:
        """One time in ms for all cases, without any penalty: what ratios are made of."""
        values = list(times.values())
        if self.name is ObjectiveName.GEOMEAN:
            return geometric_mean(values)
        return values[-1] if self.name is ObjectiveName.LAST else fmean(values)

    def cost(self, times: Times) -> float:
        """What the search minimises, in ms: the time and, for ``seed``, a tenth of the spread over cases."""
        if self.name is not ObjectiveName.SEED:
            return self.time(times)
        return self.time(times) + SPREAD_WEIGHT * pstdev(times.values())

    def score(self, times: Times, compile_failures: int = 0) -> float:
        """Higher is better. ``compile_failures`` are the ones spent on the way to this candidate."""
        penalty = COMPILE_FAILURE_COST * compile_failures if self.name is ObjectiveName.SEED else 0.0
        return -self.cost(times) - penalty

    def sacrificed_case(self, times: Times, best_known: Times) -> str | None:
        """The case on which ``seed`` refuses the candidate: slower than 1.3x the best known there."""
        if self.name is not ObjectiveName.SEED:
            return None
        worst, worst_ratio = None, ELIGIBLE_RATIO
        for case, time in times.items():
            ratio = time / best_known.get(case, time)
            if ratio > worst_ratio:
                worst, worst_ratio = case, ratio
        return worst
