"""What a campaign tells whoever watches it."""

from dataclasses import dataclass
from typing import Protocol

from kernelwright.core.candidate import Candidate
from kernelwright.core.outcome import Outcome
from kernelwright.memory.records import Duel


@dataclass(frozen=True)
class Progress:
    """Standing of a campaign at one moment. Times in ms, ratios under 1 are faster than the baseline."""

    seconds: float
    budget_seconds: float
    experiments: int
    measured: int
    incumbent: str | None
    incumbent_ms: float | None
    ratio: float | None
    paused: tuple[str, ...] = ()


class Listener(Protocol):
    """Watches a campaign; must be quick and must not raise."""

    def trying(self, candidate: Candidate, why: str) -> None:
        """A candidate goes to the device."""
        ...

    def finished(self, candidate: Candidate, outcome: Outcome, progress: Progress) -> None:
        """An experiment ended and is in the memory."""
        ...

    def leads(self, candidate: Candidate, progress: Progress) -> None:
        """A candidate became the incumbent."""
        ...

    def dueled(self, duel: Duel) -> None:
        """A duel ended and is in the memory."""
        ...

    def note(self, text: str) -> None:
        """Something worth a line: a direction paused, the search space exhausted, the budget spent."""
        ...


class Silent:
    """A listener that listens to nothing."""

    def trying(self, candidate: Candidate, why: str) -> None:
        """Nothing."""

    def finished(self, candidate: Candidate, outcome: Outcome, progress: Progress) -> None:
        """Nothing."""

    def leads(self, candidate: Candidate, progress: Progress) -> None:
        """Nothing."""

    def dueled(self, duel: Duel) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""
