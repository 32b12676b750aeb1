"""A leaderboard in memory, for tests of what a campaign sends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernelwright.campaign.attaching import Attached
from kernelwright.core.candidate import Candidate
from kernelwright.leaderboard.base import (
    BoardError,
    BoardInfo,
    CaseTime,
    Limits,
    Mode,
    Place,
    Ranking,
    Result,
    Sent,
    State,
    Unauthorized,
)

SIZES = {"n=1": {"n": 1}}


@dataclass
class FakeBoard:
    """``time_ms`` is the official time of a candidate. Faults are raised in order, one for each call of ``submit``.

    ``lost`` submissions are taken although the answer to the request does not come.
    """

    time_ms: Callable[[Candidate], float] = lambda _: 1.0
    others_ms: tuple[float, ...] = (0.1, 0.5, 1.5)
    limits: Limits = field(default_factory=Limits)
    rules: Mapping[str, object] = field(default_factory=dict)
    faults: list[Exception | None] = field(default_factory=list)
    lost: int = 0
    fails: Callable[[Candidate, Mode], bool] = lambda *_: False
    tells_cases: bool = True
    ranking: Ranking = Ranking.MEAN
    taken: dict[str, tuple[Candidate, Mode, str]] = field(default_factory=dict)
    sent: list[tuple[str, Mode]] = field(default_factory=list)
    asked: int = 0
    deadline: float | None = None
    closed: bool = False
    unknown: bool = False
    name: str = "fake"
    cases: tuple[Mapping[str, object], ...] = ()
    idempotent = False

    @property
    def url(self) -> str:
        return "fake:board"

    async def info(self) -> BoardInfo:
        return BoardInfo(
            self.name,
            "cpu",
            self.ranking,
            self.cases,
            limits=self.limits,
            rules=self.rules,
            deadline=self.deadline,
        )

    async def authorize(self) -> None:
        if self.unknown:
            raise Unauthorized("the board says 401: who are you?")

    async def submit(self, candidate: Candidate, mode: Mode, tag: str) -> Sent:
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and not self.lost:
            raise fault
        self.sent.append((str(candidate), mode))
        self.taken[f"{len(self.taken) + 1}"] = (candidate, mode, tag)
        if fault is not None:
            self.lost -= 1
            raise fault
        return Sent(f"{len(self.taken)}", mode, tag)

    async def find(self, tag: str, mode: Mode) -> Sent | None:
        found = [number for number, (_, _, known) in self.taken.items() if known == tag]
        return Sent(found[-1], mode, tag) if found else None

    async def result(self, sent: Sent) -> Result:
        self.asked += 1
        candidate, mode, _ = self.taken[sent.submission]
        if self.fails(candidate, mode):
            return Result(sent.submission, mode, State.FAILED, "a value is wrong")
        seconds = 1e-3 * self.time_ms(candidate)
        shown = mode is Mode.BENCHMARK or (self.tells_cases and mode is Mode.RANKED)
        cases = (CaseTime({"n": 1, "seed": 7}, seconds),) if shown else ()
        score = seconds if mode is Mode.RANKED else None
        return Result(sent.submission, mode, State.PASSED, score_s=score, cases=cases)

    async def ranks(self, limit: int = 200) -> tuple[Place, ...]:
        mine = [
            1e-3 * self.time_ms(candidate)
            for candidate, mode, _ in self.taken.values()
            if mode is Mode.RANKED and not self.fails(candidate, mode)
        ]
        rows = [(1e-3 * other, f"user {n}", False) for n, other in enumerate(self.others_ms)]
        rows += [(min(mine), "us", True)] if mine else []
        return tuple(
            Place(rank, user, score, mine=own) for rank, (score, user, own) in enumerate(sorted(rows), 1)
        )

    async def close(self) -> None:
        self.closed = True


class IdempotentBoard(FakeBoard):
    idempotent = True


def died() -> BoardError:
    return BoardError("the connection was closed")


async def attach(board: FakeBoard, **values: object) -> Attached:
    return Attached(board, await board.info(), SIZES, **{"submit": True, **values})  # type: ignore[arg-type]


async def no_sleep(seconds: float) -> None:
    """Time passes at once."""
