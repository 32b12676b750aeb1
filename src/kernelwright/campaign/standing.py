"""Who leads: times per candidate, best known time per case, the incumbent, and who may challenge it."""

from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from math import sqrt
from statistics import median
from typing import Final

from kernelwright.core.objective import Objective
from kernelwright.core.outcome import MEDIAN_ERROR, Outcome

SURE: Final = 3.0
"""Standard errors of a median by which a time has to be beyond a limit."""
LEAST_ERROR: Final = 0.005
"""Share of a time that a median may be off however equal its samples are: other worker, other clock."""
NORMAL_MAD: Final = 1.4826


@dataclass(frozen=True, order=True)
class Entry:
    """One measured candidate. Sorted best first: ``cost_rank`` is the negated score.

    ``errors`` are standard errors of the times, in ms, where known.
    """

    cost_rank: float
    number: int
    candidate: str = field(compare=False)
    times: Mapping[str, float] = field(compare=False)
    errors: Mapping[str, float] = field(compare=False, default_factory=dict)

    @property
    def score(self) -> float:
        """Higher is better."""
        return -self.cost_rank


class Standing:
    """Keeps the incumbent under the objective's rules while experiments and duels come in.

    The first candidate leads (a campaign's baseline); another one by winning a duel, whatever its medians say. When
    the incumbent is disqualified, the newest sound leader before it leads again. When the incumbent sacrifices a case,
    as a new best time there shows, and nobody who looks better is left to challenge it, an eligible leader from before
    or else the best eligible candidate takes over by that rule, without a duel; without one it stays: a campaign always
    has a leader.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.best_known: dict[str, float] = {}
        self.disqualified: set[str] = set()
        self._ranking: list[Entry] = []
        self._leaders: list[Entry] = []
        self._twins: set[str] = set()
        self._beaten: dict[str, str] = {}

    @property
    def incumbent(self) -> Entry | None:
        """The leader, if anything was measured."""
        return self._leaders[-1] if self._leaders else None

    @property
    def front(self) -> Entry | None:
        """The fastest that may lead, by medians: the incumbent, or who has still to beat it. Searches aim beyond it."""
        return self.contender() or self.incumbent

    def add(
        self,
        number: int,
        candidate: str,
        times: Mapping[str, float],
        errors: Mapping[str, float] | None = None,
        *,
        twin: bool = False,
    ) -> bool:
        """Take in a measured candidate; true when the incumbent changed. A ``twin`` of another never challenges."""
        entry = Entry(-self.objective.score(times), number, candidate, times, errors or {})
        insort(self._ranking, entry)
        if twin:
            self._twins.add(candidate)
        for case, time in times.items():
            surely = time + SURE * _error(entry, case)
            self.best_known[case] = min(surely, self.best_known.get(case, surely))
        if not self._leaders:
            self._leaders.append(entry)
            return True
        return self._settle()

    def promote(self, challenger: str) -> None:
        """The challenger has won a duel against the incumbent."""
        entry = self.entry(challenger)
        self._leaders = [leader for leader in self._leaders if leader is not entry] + [entry]
        self._settle()

    def beat(self, challenger: str, incumbent: str) -> None:
        """The challenger has lost: its medians are not believed as long as the one that beat it is."""
        self._beaten[challenger] = incumbent
        self._settle()

    def disqualify(self, candidate: str) -> bool:
        """A fault was found in it after all; true when the incumbent changed by that."""
        self.disqualified.add(candidate)
        return self._settle()

    def contender(self) -> Entry | None:
        """The best candidate whose medians are better than the incumbent's and that has not lost a duel yet."""
        return next(self.contenders(), None)

    def contenders(self) -> Iterator[Entry]:
        """All of them, best first."""
        leader = self.incumbent
        for entry in self._ranking:
            if leader is None or entry.score <= leader.score:
                return
            if self._may_challenge(entry):
                yield entry

    def _may_challenge(self, entry: Entry) -> bool:
        beaten = self._beaten.get(entry.candidate)
        lost = beaten is not None and beaten not in self.disqualified
        return not lost and entry.candidate not in self._twins and self._may_lead(entry)

    def _may_lead(self, entry: Entry) -> bool:
        return entry.candidate not in self.disqualified and self._keeps_all(entry)

    def _settle(self) -> bool:
        """Find the leader again after a change of the facts; true when it is another one."""
        before = self.incumbent
        sound = [entry for entry in self._leaders if entry.candidate not in self.disqualified]
        self._leaders = sound or self._leaders[:1]
        leader = self.incumbent
        if leader is not None and not self._keeps_all(leader) and self.contender() is None:
            able = [entry for entry in self._leaders if self._may_lead(entry)][-1:]
            able = able or [entry for entry in self._ranking if self._may_lead(entry)][:1]
            self._leaders = [entry for entry in self._leaders if entry not in able] + able
        return self.incumbent is not before

    def entry(self, candidate: str) -> Entry:
        """A measured candidate. StopIteration for any other."""
        return next(entry for entry in self._ranking if entry.candidate == candidate)

    def specialists(self, wanted: Callable[[str], bool], most: int = 3) -> dict[str, Mapping[str, float]]:
        """Times of the wanted candidates that are among the best on any case, or overall."""
        ranking = [
            entry
            for entry in self._ranking
            if entry.candidate not in self.disqualified and wanted(entry.candidate)
        ]
        found = {entry.candidate: entry.times for entry in ranking[:most]}
        for case in self.best_known:
            for entry in nsmallest(most, ranking, key=lambda e: e.times[case]):
                found[entry.candidate] = entry.times
        return found

    def eligible(self, times: Mapping[str, float], errors: Mapping[str, float] | None = None) -> bool:
        """Whether no case is sacrificed against the best known so far, by more than both times' noise.

        The best known time is that which some candidate surely reaches (its median and :data:`SURE` errors), so that
        one lucky median disqualifies nobody.
        """
        return self._keeps_all(Entry(0.0, 0, "", times, errors or {}))

    def _keeps_all(self, entry: Entry) -> bool:
        surely = {case: time - SURE * _error(entry, case) for case, time in entry.times.items()}
        return self.objective.sacrificed_case(surely, self.best_known) is None


def _error(entry: Entry, case: str) -> float:
    return max(entry.errors.get(case, 0.0), LEAST_ERROR * entry.times[case])


def median_errors(outcome: Outcome) -> dict[str, float]:
    """Standard error in ms of each case's median; the spread is the median absolute deviation, which spikes do not move."""
    errors = {}
    for timing in outcome.cases:
        middle = timing.median_ms
        spread = NORMAL_MAD * median(abs(sample - middle) for sample in timing.samples_ms)
        errors[timing.case] = MEDIAN_ERROR * spread / sqrt(len(timing.samples_ms))
    return errors
