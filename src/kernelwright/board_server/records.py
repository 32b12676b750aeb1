"""What the board keeps, as plain records. Times are seconds; points in time are Unix time."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.leaderboard.base import CaseTime, Mode, State
from kernelwright.problems.loader import LIBRARY_FILE, Case, Problem, load_problem

HOUR_S: Final = 3600.0
LIBRARY: Final = "(library)"
"""Whose entry the vendor library's result is: no user can be called so."""


@dataclass(frozen=True)
class User:
    """Who may submit. A seeder fills a board: it names its entries, and no hourly limit holds it up."""

    name: str
    seeder: bool = False


@dataclass(frozen=True)
class Draft:
    """A submission as it was sent. ``configuration`` is canonical JSON; ``entry`` names one of a seeder's many."""

    user: str
    problem: str
    device: str
    mode: Mode
    tag: str
    source: str
    configuration: str = "{}"
    file: str = "candidate.cu"
    entry: str = ""


@dataclass(frozen=True)
class Verdict:
    """How an evaluation ended. ``cases`` hold medians; ``score_s`` only for a ranked one that passed."""

    state: State
    reason: str = ""
    score_s: float | None = None
    cases: tuple[CaseTime, ...] = ()


@dataclass(frozen=True)
class Submission:
    """A submission in the store.

    ``number`` is the order of arrival. ``id`` is public, ``view_key`` is for the submitter: who has it may read why.
    ``attempts`` counts how often its evaluation began.
    """

    draft: Draft
    number: int
    id: str
    view_key: str = field(repr=False)
    submitted: float
    verdict: Verdict
    attempts: int = 0
    started: float | None = None
    ended: float | None = None

    @property
    def counts(self) -> bool:
        """Whether it stands in the rank table, for everybody to see."""
        return self.draft.mode is Mode.RANKED and self.verdict.state is State.PASSED


@dataclass(frozen=True)
class Entry:
    """A ranked submission that passed, without its source."""

    number: int
    submission: str
    user: str
    name: str
    score_s: float
    submitted: float

    @property
    def label(self) -> str:
        """Who it is in the table: the user, and the entry's name where the user has several."""
        return f"{self.user}/{self.name}" if self.name else self.user


@dataclass(frozen=True)
class Rules:
    """What holds for everybody on this server. ``deadline`` (Unix time) is asked for now: the file keeps it."""

    test_per_hour: int = 240
    ranked_per_hour: int = 60
    deadline: float | None = None

    def per_hour(self, mode: Mode) -> int:
        """Submissions of one user in an hour; a benchmark takes the device as long as a ranked one."""
        return self.test_per_hour if mode is Mode.TEST else self.ranked_per_hour


@dataclass(frozen=True)
class Listing:
    """A problem on this server, with the protocol by which everybody is measured."""

    problem: Problem
    ranking: ObjectiveName
    slow_cases: bool

    @classmethod
    def of(cls, name_or_path: str, *, slow_cases: bool, ranking: ObjectiveName | None = None) -> Self:
        """Raises ProblemError. The problem's own objective ranks unless another one is given."""
        problem = load_problem(name_or_path)
        return cls(problem, ranking or problem.objective, slow_cases)

    @property
    def cases(self) -> Mapping[str, Case]:
        """Cases by id, in the order in which they count."""
        return {case.id: case for case in self.problem.cases(slow=self.slow_cases)}

    @property
    def protocol(self) -> dict[str, object]:
        """What has to stay the same for times to be comparable."""
        return {"ranking": self.ranking.value, "slow_cases": self.slow_cases}

    def library(self, device: str) -> Draft | None:
        """The vendor library's entry, where the problem names one and a device can have it; the board itself submits it."""
        text = self.problem.library_source
        if not text or device.startswith("cpu"):
            return None
        tag = hashlib.sha256(text.encode()).hexdigest()[:16]
        name = self.problem.name
        return Draft(LIBRARY, name, device, Mode.RANKED, tag, text, file=LIBRARY_FILE, entry="PyTorch")

    def score_s(self, times_ms: Mapping[str, float]) -> float:
        """The score of medians by case; lower is better."""
        return Objective(self.ranking).cost(times_ms) / 1e3
