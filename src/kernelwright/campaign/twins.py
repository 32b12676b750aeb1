"""Equal binaries launched in the same way are one kernel: it is never measured twice."""

from collections.abc import Sequence

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.identity import content_id
from kernelwright.core.outcome import Outcome
from kernelwright.core.resolve import resolve
from kernelwright.problems.loader import Case, Problem


class Twins:
    """Outcomes by what was measured."""

    def __init__(self, facts: DeviceFacts, problem: Problem, cases: Sequence[Case]) -> None:
        self._facts = facts
        self._problem = problem
        self._cases = cases
        self._outcomes: dict[str, Outcome] = {}

    def of(self, candidate: Candidate, digest: str) -> Outcome | None:
        """What an equal kernel gave."""
        return self._outcomes.get(self._key(candidate, digest))

    def add(self, candidate: Candidate, outcome: Outcome) -> bool:
        """Take a measurement in; whether an equal kernel was measured before."""
        if not outcome.artifact_digest:
            return False
        key = self._key(candidate, outcome.artifact_digest)
        known = key in self._outcomes
        self._outcomes.setdefault(key, outcome)
        return known

    def _key(self, candidate: Candidate, digest: str) -> str:
        plans = [resolve(candidate, case.sizes, self._facts, self._problem.signature) for case in self._cases]
        return content_id("twin", digest, repr(plans))
