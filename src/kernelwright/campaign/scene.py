"""What the parts of a campaign that decide about the incumbent share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kernelwright.campaign.binaries import Binaries
from kernelwright.campaign.budget import Budget
from kernelwright.campaign.events import Listener
from kernelwright.campaign.standing import Standing
from kernelwright.core.candidate import Candidate
from kernelwright.harness.protocol import Harness
from kernelwright.memory.records import Duel, Experiment
from kernelwright.memory.store import Memory
from kernelwright.problems.case import Trial


@dataclass(frozen=True)
class Scene:
    """One campaign's harness, memory and standing. ``candidates`` has every known candidate by id."""

    campaign: str
    harness: Harness
    memory: Memory
    standing: Standing
    budget: Budget
    listener: Listener
    binaries: Binaries
    candidates: dict[str, Candidate]
    protected: set[str] = field(default_factory=set)
    """Candidates that nothing disqualifies: the baseline, with which everything is compared."""
    trials: tuple[Trial, ...] | None = None
    """What a check in full runs besides the cases; ``None`` is not known."""


@dataclass(frozen=True)
class Past:
    """Something recorded that the standing follows from: an experiment, a duel, or the candidate in which a fault was found.

    ``take_in`` brings the state to where it was afterwards.
    """

    seconds: float
    what: Experiment | Duel | str
    take_in: Callable[[], object]
