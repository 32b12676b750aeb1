"""A campaign's board: opened, asked what it wants, its rules merged into the problem's."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from kernelwright.campaign.settings import PROBLEM_GOAL, Settings
from kernelwright.core.errors import KernelwrightError, UserError
from kernelwright.core.objective import ObjectiveName
from kernelwright.harness.host_code import judge_host_code
from kernelwright.leaderboard.base import Board, BoardError, BoardInfo, RateLimited, Refused, Unauthorized
from kernelwright.leaderboard.board_file import BOARD_FILE, Arguments, read_board_file
from kernelwright.leaderboard.kernelbot.address import SCHEME
from kernelwright.leaderboard.opening import open_board
from kernelwright.leaderboard.untrusted import line
from kernelwright.problems.loader import Problem
from kernelwright.problems.spec import Rules

BOARD: Final = "board"
"""Note of the memory: what the board said when the campaign began."""
BOARD_URL: Final = "board_url"
GOAL: Final = "goal"
ANSWER_S: Final = 30.0
"""Longest wait for an answer before the search begins."""
QUIET_S: Final = 3.0
"""After so long without one that is told."""
_INFO: Final = TypeAdapter(BoardInfo)

T = TypeVar("T")


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
    UserError for a board that cannot be used at all, BoardError where it says no.
    """
    if settings.board is None:
        yield None
        return
    board = open_board(settings.board, problem, judge_host_code, told)
    try:
        info = await _info(board, settings.board, before, told)
        known = (
            [(case.arguments, case.case) for case in read_board_file(problem.folder).cases]
            if (problem.folder / BOARD_FILE).exists()
            else []
        )
        _check_same(settings.board, info, problem, [arguments for arguments, _ in known])
        if settings.submit:
            await _authorize(board, told)
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
        return await _answer(board.info(), told)
    except BoardError as error:
        if before is None:
            raise _not_asked(f"--board {url}: {error}", error) from None
        told(f"the board does not answer, its rules of before count: {error}")
        return _INFO.validate_json(before)


def _not_asked(message: str, error: BoardError) -> KernelwrightError:
    """As ``board`` commands have it: a board's no is an answer, all else is bad input."""
    if isinstance(error, Refused | RateLimited) and not isinstance(error, Unauthorized):
        return BoardError(message)
    return UserError(message)


async def _authorize(board: Board, told: Callable[[str], None]) -> None:
    """A whole search for a board that takes nothing would be in vain. Raises UserError."""
    try:
        await _answer(board.authorize(), told)
    except Unauthorized as error:
        raise UserError(f"--submit: {error}") from None
    except BoardError as error:
        told(f"the board does not say whether it takes submissions: {error}")


async def _answer(question: Awaitable[T], told: Callable[[str], None]) -> T:
    """The answer, however slowly it drips, within :data:`ANSWER_S`. Raises BoardError."""
    waiting = f"the board has not answered yet: it is waited for, at most {ANSWER_S:g} s"
    note = asyncio.get_running_loop().call_later(QUIET_S, told, waiting)
    try:
        async with asyncio.timeout(ANSWER_S):
            return await question
    except TimeoutError:
        raise BoardError(f"no answer within {ANSWER_S:g} s") from None
    finally:
        note.cancel()


def _check_same(url: str, info: BoardInfo, problem: Problem, known: Sequence[Arguments]) -> None:
    """Raises UserError where the board clearly measures another problem than the campaign's.

    GPU MODE's problems have other names and sizes than ours: there the cases' arguments are compared, as imported.
    """
    theirs = [dict(case) for case in info.cases]
    if url.startswith(SCHEME):
        if (
            known
            and theirs
            and not {frozenset(case) for case in known} & {frozenset(case) for case in theirs}
        ):
            raise UserError(
                f"--board {url}: its cases have {_named(theirs[0])}, and {problem.folder / BOARD_FILE} says "
                f"{_named(known[0])}: import it with 'kernelwright board import {url.partition('@')[0]} -o FOLDER'"
            )
        return
    ours = [dict(case.sizes) for slow in (False, True) for case in problem.cases(slow=slow)]
    other = next((case for case in theirs if case not in ours), None)
    if theirs and (other is not None or info.name != problem.name):
        sizes = f" with {_sized(other)}" if other is not None else ""
        raise UserError(
            f"--board {url}: it measures {line(info.name, 60)}{sizes}, and the campaign's problem is {problem.name} "
            f"with {_sized(ours[0])}: get the board's with 'kernelwright board fetch {url} -o FOLDER'"
        )


def _named(case: Mapping[str, object]) -> str:
    return line(", ".join(case), 100)


def _sized(case: Mapping[str, object]) -> str:
    return line(", ".join(f"{name}={size}" for name, size in case.items()), 100)


def need_board(board: str | None, **given: object) -> None:
    """Raises UserError for an option, by the name of its setting, that means nothing without a board."""
    if board is None and (name := next((name for name, value in given.items() if value), None)):
        raise UserError(f"--{name.replace('_', '-')}: there is no leaderboard to send to: give --board URL")


def need_submit(submit: bool, **given: object) -> None:  # noqa: FBT001 - as its option
    """Raises UserError for an option, by the name of its setting, that means nothing where nothing is sent."""
    if not submit and (name := next((name for name, value in given.items() if value), None)):
        raise UserError(
            f"--{name.replace('_', '-')}: nothing is sent without --submit: add it, or leave this out"
        )


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
        name: getattr(own, name) or getattr(theirs, name)
        for name in Rules.model_fields
        if isinstance(getattr(own, name), bool)
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
