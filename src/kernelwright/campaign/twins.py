"""Equal binaries launched in the same way are one kernel: it is never measured twice."""

from collections.abc import Callable, Sequence

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.identity import content_id
from kernelwright.core.outcome import Outcome
from kernelwright.problems.loader import Case, Problem
from kernelwright.problems.plans import plans_for


class Twins:
    """Experiments by what was measured. Outcomes stay in the memory: ``recall`` reads one by its experiment's number."""

    def __init__(
        self,
        facts: DeviceFacts,
        problem: Problem,
        cases: Sequence[Case],
        recall: Callable[[int], Outcome],
    ) -> None:
        self._facts = facts
        self._problem = problem
        self._cases = cases
        self._recall = recall
        self._numbers: dict[str, int] = {}

    def of(self, candidate: Candidate, digest: str) -> Outcome | None:
        """What an equal kernel gave."""
        number = self._numbers.get(self._key(candidate, digest))
        return None if number is None else self._recall(number)

    def add(self, number: int, candidate: Candidate, outcome: Outcome) -> bool:
        """Take a recorded measurement in; whether an equal kernel was measured before."""
        if not outcome.artifact_digest:
            return False
        key = self._key(candidate, outcome.artifact_digest)
        known = key in self._numbers
        self._numbers.setdefault(key, number)
        return known

    def _key(self, candidate: Candidate, digest: str) -> str:
        plans = plans_for(candidate, self._cases, self._facts, self._problem.signature)
        return content_id("twin", digest, repr(list(plans.values())))
