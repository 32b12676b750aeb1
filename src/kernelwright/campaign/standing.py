"""Who leads: times per candidate, best known time per case, the incumbent."""

from bisect import insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

from kernelwright.core.objective import Objective


@dataclass(frozen=True, order=True)
class Entry:
    """One measured candidate. Sorted best first: ``cost_rank`` is the negated score."""

    cost_rank: float
    number: int
    candidate: str = field(compare=False)
    times: Mapping[str, float] = field(compare=False)

    @property
    def score(self) -> float:
        """Higher is better."""
        return -self.cost_rank


class Standing:
    """Keeps the incumbent under the objective's rules while experiments come in.

    A candidate that sacrifices a case is not eligible. When a new best time on a case makes the incumbent
    itself ineligible, it stays until an eligible candidate exists: a campaign always has a verified leader.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.best_known: dict[str, float] = {}
        self.incumbent: Entry | None = None
        self._ranking: list[Entry] = []

    def add(self, number: int, candidate: str, times: Mapping[str, float], compile_failures: int = 0) -> bool:
        """Take in a measured candidate; true when the incumbent changed."""
        entry = Entry(-self.objective.score(times, compile_failures), number, candidate, times)
        insort(self._ranking, entry)
        for case, time in times.items():
            self.best_known[case] = min(time, self.best_known.get(case, time))
        leader = next((e for e in self._ranking if self.eligible(e.times)), None) or self.incumbent or entry
        changed = leader != self.incumbent
        self.incumbent = leader
        return changed

    def specialists(self, wanted: Callable[[str], bool], most: int = 3) -> dict[str, Mapping[str, float]]:
        """Times of the wanted candidates that are among the best on any case, or overall."""
        ranking = [entry for entry in self._ranking if wanted(entry.candidate)]
        found = {entry.candidate: entry.times for entry in ranking[:most]}
        for case in self.best_known:
            for entry in nsmallest(most, ranking, key=lambda e: e.times[case]):
                found[entry.candidate] = entry.times
        return found

    def eligible(self, times: Mapping[str, float]) -> bool:
        """Whether no case is sacrificed, against the best known so far."""
        return self.objective.sacrificed_case(times, self.best_known) is None
