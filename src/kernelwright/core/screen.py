"""What a candidate has to beat: how screening knows a clear loser from a contender."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kernelwright.core.objective import Objective

CONTENDER: Final = 1.05
"""A candidate that costs at most this share of the incumbent may lead one day: it gets every check."""
CLEAR_LOSER: Final = 2.0
"""A case whose first run takes this many times the incumbent's time is not timed to the end."""
LOSER_SLACK_MS: Final = 0.02
"""The first run is cold and may hold launch overhead."""


@dataclass(frozen=True)
class Screen:
    """The incumbent's time in ms by case, under an objective."""

    objective: Objective
    incumbent_ms: Mapping[str, float]

    def loser_above_ms(self, case: str) -> float:
        """First-run time in ms above which a case gets a few timed runs only."""
        known = self.incumbent_ms.get(case)
        return CLEAR_LOSER * known + LOSER_SLACK_MS if known else float("inf")

    def is_contender(self, times_ms: Mapping[str, float]) -> bool:
        """Whether a measured candidate could come to lead, noise and tuning considered."""
        return self.objective.cost(times_ms) <= CONTENDER * self.objective.cost(self.incumbent_ms)

    def is_ahead(self, times_ms: Mapping[str, float]) -> bool:
        """Whether a measured candidate looks better than the incumbent: it is about to challenge."""
        return self.objective.cost(times_ms) < self.objective.cost(self.incumbent_ms)
