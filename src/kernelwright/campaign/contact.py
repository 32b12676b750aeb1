"""A board as a campaign reaches it: since when it has not answered, and what was not sent for that."""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from kernelwright.core.candidate import Candidate
from kernelwright.leaderboard.base import (
    Board,
    BoardError,
    BoardInfo,
    Mode,
    Place,
    RateLimited,
    Refused,
    Result,
    Sent,
)

LOST: Final = "board_lost"
"""Note of the memory: :func:`unreached` as it was at the end of the last sitting, empty where the board answered."""

T = TypeVar("T")


class Contact:
    """The board itself, but for ``lost``: the time from which on no request was answered, ``None`` while it answers.

    A no is an answer.
    """

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self._board = board
        self._clock = clock
        self.lost: float | None = None

    @property
    def url(self) -> str:
        """As the board has it."""
        return self._board.url

    @property
    def idempotent(self) -> bool:
        """As the board has it."""
        return self._board.idempotent

    async def info(self) -> BoardInfo:
        """As the board has it."""
        return await self._answer(self._board.info())

    async def authorize(self) -> None:
        """As the board has it."""
        await self._answer(self._board.authorize())

    async def submit(self, candidate: Candidate, mode: Mode, tag: str) -> Sent:
        """As the board has it."""
        return await self._answer(self._board.submit(candidate, mode, tag))

    async def find(self, tag: str, mode: Mode) -> Sent | None:
        """As the board has it."""
        return await self._answer(self._board.find(tag, mode))

    async def result(self, sent: Sent) -> Result:
        """As the board has it."""
        return await self._answer(self._board.result(sent))

    async def ranks(self, limit: int = 200) -> tuple[Place, ...]:
        """As the board has it."""
        return await self._answer(self._board.ranks(limit))

    async def close(self) -> None:
        """As the board has it."""
        await self._board.close()

    async def _answer(self, question: Awaitable[T]) -> T:
        try:
            answer = await question
        except (Refused, RateLimited):
            self.lost = None
            raise
        except BoardError:
            self.lost = self._clock() if self.lost is None else self.lost
            raise
        self.lost = None
        return answer


def unreached(since: float, *, sends: bool, unsent: Candidate | None, unknown: Iterable[str]) -> str:
    """One line on a board that is gone: since when, what was not sent, of what (``unknown``) nothing more is known.

    ``sends`` is false where the campaign sends nothing anyway.
    """
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(since))
    lacking = [f"{unsent} was not sent"] if unsent else []
    lacking += [f"what became of the {each} is not known" for each in unknown]
    if sends and lacking:
        lacking.append("'kernelwright resume' with more --seconds goes on with it")
    told = "; ".join(lacking) or ("nothing was left to send" if sends else "its ranks are those of before")
    return f"the board could not be reached since {when}: {told}"
