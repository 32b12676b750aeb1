"""A campaign's board: opened, asked what it wants, its rules merged into the problem's."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kernelwright.campaign.settings import PROBLEM_GOAL, Settings
from kernelwright.core.errors import UserError
from kernelwright.core.objective import ObjectiveName
from kernelwright.leaderboard.base import Board, BoardError, BoardInfo
from kernelwright.leaderboard.board_file import BOARD_FILE, read_board_file
from kernelwright.leaderboard.opening import open_board
from kernelwright.problems.loader import Problem
from kernelwright.problems.spec import Rules

BOARD: Final = "board"
"""Note of the memory: what the board said when the campaign began."""
BOARD_URL: Final = "board_url"
GOAL: Final = "goal"
_INFO: Final = TypeAdapter(BoardInfo)


@dataclass(frozen=True)
class Attached:
    """A board with what it said. ``sizes`` are ours by case; ``known_cases`` the board's arguments with our case.

    ``wait_s`` bounds the wait for results at the campaign's end; ``uncalibrated`` submits whatever calibration says.
    """

    board: Board
    info: BoardInfo
    sizes: Mapping[str, Mapping[str, int]]
    known_cases: Sequence[tuple[Mapping[str, object], str]] = ()
    submit: bool = False
    max_submissions: int = 20
    uncalibrated: bool = False
    wait_s: float = 120.0

    @property
    def note(self) -> str:
        """For the memory."""
        return _INFO.dump_json(self.info).decode()


@contextlib.asynccontextmanager
async def attached(
    settings: Settings, problem: Problem, *, before: str | None = None, told: Callable[[str], None]
) -> AsyncIterator[Attached | None]:
    """The board of the settings, closed at the end; ``None`` without one.

    ``before`` is what the board said in an earlier sitting: good enough when it does not answer now. Raises
    UserError for a board that cannot be used at all.
    """
    if settings.board is None:
        yield None
        return
    board = open_board(settings.board, problem)
    try:
        info = await _info(board, settings.board, before, told)
        known = (
            [(case.arguments, case.case) for case in read_board_file(problem.folder).cases]
            if (problem.folder / BOARD_FILE).exists()
            else []
        )
        yield Attached(
            board=board,
            info=info,
            sizes={case.id: case.sizes for case in problem.cases(slow=settings.slow_cases)},
            known_cases=known,
            submit=settings.submit,
            max_submissions=settings.max_submissions,
            uncalibrated=settings.uncalibrated,
            wait_s=settings.board_wait_s,
        )
    finally:
        await board.close()


async def _info(board: Board, url: str, before: str | None, told: Callable[[str], None]) -> BoardInfo:
    try:
        return await board.info()
    except BoardError as error:
        if before is None:
            raise UserError(f"--board {url}: {error}") from None
        told(f"the board does not answer, its rules of before count: {error}")
        return _INFO.validate_json(before)


def with_rules(problem: Problem, extra: Mapping[str, object]) -> Problem:
    """The problem under its own rules and a board's, the stricter of both. Raises UserError for a rule nobody can hold."""
    if not extra:
        return problem
    own = problem.spec.rules
    try:
        theirs = Rules.model_validate({**extra})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])[:80]
        raise UserError(
            f"the board's rule {key!r} cannot be held here: {' '.join(str(first['msg']).split())[:200]}"
        ) from None
    rules = own.model_copy(update=_stricter(own, theirs))
    return replace(problem, spec=problem.spec.model_copy(update={"rules": rules}))


def _stricter(own: Rules, theirs: Rules) -> dict[str, Any]:
    merged: dict[str, Any] = {
        name: value or getattr(theirs, name)
        for name, value in own.model_dump().items()
        if isinstance(value, bool)
    }
    registers = [r for r in (own.max_registers, theirs.max_registers) if r is not None]
    merged["max_registers"] = min(registers, default=None)
    merged["max_source_bytes"] = min(own.max_source_bytes, theirs.max_source_bytes)
    merged["banned_words"] = tuple(dict.fromkeys(own.banned_words + theirs.banned_words))
    headers = own.allowed_headers or theirs.allowed_headers
    if own.allowed_headers and theirs.allowed_headers:
        headers = tuple(name for name in own.allowed_headers if name in theirs.allowed_headers)
        if not headers:  # nothing allowed cannot be said: empty means all
            raise UserError("the problem's and the board's allowed_headers have nothing in common")
    merged["allowed_headers"] = headers
    return merged


def objective_of(settings: Settings, problem: Problem, board: Attached | None) -> ObjectiveName:
    """What the user asks for, else how the board ranks, else the problem's own."""
    if settings.objective is not None:
        return settings.objective
    return ObjectiveName(board.info.ranking.value) if board else problem.objective


def with_goal(settings: Settings, problem: Problem) -> Settings:
    """The problem's own goal in place of its name. Raises UserError where there is none, or no board for a rank."""
    goal = settings.goal
    if goal == PROBLEM_GOAL:
        goal = str(problem.spec.goal or "")
        if not goal:
            raise UserError(f"--goal {PROBLEM_GOAL}: {problem.name} has none: add goal to its problem.toml")
    settings = settings.model_copy(update={"goal": goal})
    if settings.aim is not None and settings.aim.rank is not None and settings.board is None:
        raise UserError(f"--goal {goal}: a rank needs a leaderboard: give --board URL")
    return settings
