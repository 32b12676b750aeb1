"""What every board is asked, and the records of what it answers. Times are seconds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import KernelwrightError

TAG: Final = re.compile(r"[A-Za-z0-9-]{1,40}")
"""Our name of a submission's content and mode."""


class BoardError(KernelwrightError):
    """A board could not be asked, or its answer makes no sense. One line; never holds a credential."""


class Refused(BoardError):  # noqa: N818 - reads as what happened
    """The board understood and said no: deadline, rule, size, unknown name. Asking again does not help."""


class Unauthorized(Refused):
    """No credential, or one that the board does not accept."""


class RateLimited(BoardError):  # noqa: N818
    """The board's quota is used up. ``retry_s`` is when to ask again, ``None`` where it does not say."""

    def __init__(self, message: str, retry_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_s = retry_s


def checked_tag(tag: str) -> str:
    """The tag, if every board takes it. Raises Refused."""
    if not TAG.fullmatch(tag):
        raise Refused(f"the tag {tag[:60]!r} is not letters, digits and '-', at most 40")
    return tag


class Mode(StrEnum):
    """What a submission is for. A ranked one goes out only after a test that passed."""

    TEST = "test"
    BENCHMARK = "benchmark"
    RANKED = "ranked"


class State(StrEnum):
    """Where a submission stands. Only ``passed`` is a success."""

    WAITING = "waiting"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    REJECTED = "rejected"

    @property
    def ended(self) -> bool:
        """Nothing more will come."""
        return self not in {State.WAITING, State.RUNNING}


class Ranking(StrEnum):
    """How a board makes one score of the times of all cases (seconds, lower is better)."""

    LAST = "last"
    MEAN = "mean"
    GEOMEAN = "geomean"
    SEED = "seed"


@dataclass(frozen=True)
class Limits:
    """What a board accepts. ``None``: it does not say."""

    max_bytes: int | None = None
    test_per_hour: int | None = None
    ranked_per_hour: int | None = None
    test_timeout_s: float | None = None
    ranked_timeout_s: float | None = None


@dataclass(frozen=True)
class BoardInfo:
    """A board's problem in its own terms. ``deadline`` is Unix time; ``cases`` in the order in which they count."""

    name: str
    device: str
    ranking: Ranking
    cases: tuple[Mapping[str, object], ...] = ()
    deadline: float | None = None
    devices: tuple[str, ...] = ()
    limits: Limits = Limits()
    rules: Mapping[str, object] = field(default_factory=dict)
    """Keys of :class:`~kernelwright.core.rules.CandidateRules` that this board adds to the problem's."""


@dataclass(frozen=True)
class CaseTime:
    """What the board measured for one case. ``case`` is a dictionary: boards reorder the keys of its text."""

    case: Mapping[str, object]
    mean_s: float
    std_s: float | None = None
    best_s: float | None = None
    runs: int | None = None


@dataclass(frozen=True)
class Result:
    """A submission as the board sees it now. ``score_s`` only for ranked ones that passed."""

    submission: str
    mode: Mode
    state: State
    reason: str = ""
    score_s: float | None = None
    cases: tuple[CaseTime, ...] = ()


@dataclass(frozen=True)
class Sent:
    """A submission that was accepted. ``tag`` is our name of its content, by which it is found again."""

    submission: str
    mode: Mode
    tag: str


@dataclass(frozen=True)
class Place:
    """A row of the rank table: the best entry of one user. Ranks begin at 1."""

    rank: int
    user: str
    score_s: float
    submission: str = ""
    submitted: float | None = None
    mine: bool = False


class Board(Protocol):
    """One problem on one device of one board. Every method may raise :class:`BoardError`.

    ``submit`` is never repeated by an implementation: whether a request that died was taken is found out by
    :meth:`find`, so that nothing is sent twice.
    """

    @property
    def url(self) -> str:
        """The board as a user names it, such as ``kernelbot:vectoradd_v2@H100`` or ``http://host:8000/gemm``."""
        ...

    @property
    def idempotent(self) -> bool:
        """Whether the board takes a tag once, so that a request that died may be sent again."""
        ...

    async def info(self) -> BoardInfo:
        """The problem as the board has it."""
        ...

    async def authorize(self) -> None:
        """Ask whether the user may submit. Raises Unauthorized; without a credential at once, unasked."""
        ...

    async def submit(self, candidate: Candidate, mode: Mode, tag: str) -> Sent:
        """Send a candidate. Raises Refused, RateLimited, Unauthorized.

        ``tag`` (letters, digits, ``-``, at most 40) is unique for its content and mode.
        """
        ...

    async def find(self, tag: str, mode: Mode) -> Sent | None:
        """The own submission with this tag, or ``None`` when the board knows none."""
        ...

    async def result(self, sent: Sent) -> Result:
        """Where it stands; does not wait."""
        ...

    async def ranks(self, limit: int = 200) -> tuple[Place, ...]:
        """The rank table, the best first."""
        ...

    async def close(self) -> None:
        """Give up connections."""
        ...
