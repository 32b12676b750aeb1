"""What users of a board of one's own do: ranks, submissions, the problem as a folder, entries to overtake."""

import ast
import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from kernelwright.cli.asking import asking
from kernelwright.cli.check import read_template
from kernelwright.cli.options import JsonOption, path
from kernelwright.cli.plain import PlainConsole
from kernelwright.core.candidate import Candidate
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import UserError
from kernelwright.core.files import place_folder
from kernelwright.leaderboard.base import Mode, Result, Sent, State
from kernelwright.leaderboard.local import LocalBoard
from kernelwright.leaderboard.tokens import HOW_TO_GIVE_ONE, find_token
from kernelwright.problems.loader import load_problem

SUBMISSION: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
T = TypeVar("T")

UrlArgument = Annotated[str, typer.Argument(help="http://HOST:PORT/PROBLEM, or .../PROBLEM@DEVICE.")]
ModeOption = Annotated[str, typer.Option("--mode", help="test, benchmark or ranked.")]
WaitOption = Annotated[bool, typer.Option("--wait", help="Until it has ended; exit code 1 unless it passed.")]


def rank(
    url: UrlArgument,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Rows.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """The rank table of a board."""
    places = _with_board(url, lambda board: board.ranks(limit), find_token(url))
    if as_json:
        rows = [{"rank": p.rank, "user": p.user, "score_s": p.score_s, "mine": p.mine} for p in places]
        typer.echo(json.dumps(rows))
        return
    table = Table("rank", "who", "score ms", "to the leader", box=None, pad_edge=False)
    for p in places:
        who = Text(f"{p.user} (you)" if p.mine else p.user)
        table.add_row(str(p.rank), who, f"{p.score_s * 1e3:.4g}", f"{p.score_s / places[0].score_s:.3f}")
    PlainConsole().print(table)


def submit(
    url: UrlArgument,
    file: Annotated[Path, typer.Argument(parser=path, help="A .cu file that starts with a plan.")],
    mode: ModeOption = "test",
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--configuration", metavar="NAME=VALUE", help="A tunable's value; others take their first."
        ),
    ] = None,
    wait: WaitOption = False,
) -> int:
    """Send a kernel to a board. The same kernel, configuration and mode again are the same submission."""
    template, asked = read_template(file), _mode(mode)
    candidate = Candidate(template, Configuration(dict(_value(text) for text in values or [])))

    async def send(board: LocalBoard) -> tuple[Sent, Result]:
        sent = await board.submit(candidate, asked, candidate.id)
        return sent, await (board.ended(sent) if wait else board.result(sent))

    sent, result = _with_board(url, send, _token(url))
    print(sent.submission)
    return _told(result, wait=wait)


def status(
    url: UrlArgument,
    submission: Annotated[str, typer.Argument(help="What 'board submit' printed.")],
    wait: WaitOption = False,
) -> int:
    """Where a submission stands."""
    if not SUBMISSION.fullmatch(submission):
        raise UserError(f"{submission[:80]!r}: a submission's id is needed, as 'board submit' printed it")
    sent = Sent(submission, Mode.TEST, "")
    result = _with_board(
        url, lambda board: board.ended(sent) if wait else board.result(sent), find_token(url)
    )
    return _told(result, wait=wait)


def fetch(
    url: UrlArgument,
    folder: Annotated[Path, typer.Option("--output", "-o", parser=path, help="A folder that is made.")],
) -> None:
    """Get a board's problem as a folder, to begin a campaign with. No token is sent."""
    texts = _with_board(url, lambda board: board.files(), None)
    files = {name: text.encode(errors="surrogatepass") for name, text in texts.items()}
    place_folder(folder, files, lambda made: _usable(made, url))
    print(
        f"{folder}: {load_problem(folder).name}; its reference.py is others' code and runs in the sandbox only"
    )


def seed(
    url: UrlArgument,
    count: Annotated[int, typer.Option(min=1, max=1000, help="Entries in the table.")] = 57,
    problem: Annotated[
        str | None, typer.Option("--problem", "-p", help="Whose catalogue; by default the bundled one's.")
    ] = None,
    draw: Annotated[int, typer.Option("--seed", min=0, help="Of the draw of configurations.")] = 0,
) -> None:
    """Fill a board with real entries: the baseline and the catalogue at many configurations, all measured there."""
    from kernelwright.leaderboard.seeding import fill

    async def filled(board: LocalBoard) -> int:
        kernels = load_problem(board.problem if problem is None else problem)
        return await fill(board, kernels, count, random.Random(draw), print)  # noqa: S311 - a draw to repeat

    print(f"{_with_board(url, filled, _token(url))} entries")


def _usable(folder: Path, url: str) -> None:
    """Raises UserError with the board's address: the folder is going away again."""
    try:
        problem = load_problem(folder)
        problem.baseline()
        _readable(problem.reference_source)
        _same_name(problem.name, LocalBoard(url).problem)
    except UserError as error:
        fault = str(error)
        for shown in (folder.resolve(), folder):
            fault = fault.replace(f"{shown}/", "").replace(str(shown), "the folder")
        raise UserError(f"{url}: its problem cannot be used: {fault}") from None


def _same_name(sent: str, asked: str) -> None:
    if sent != asked:
        raise UserError(f"problem.toml: name: is {sent}, and {asked} was asked for")


def _readable(reference: str) -> None:
    """Parsed, not run."""
    try:
        ast.parse(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise UserError(f"reference.py{f':{line}' if line else ''}: is no Python that can be read") from None


def _with_board(url: str, ask: Callable[[LocalBoard], Awaitable[T]], given: str | None) -> T:
    async def asked() -> T:
        board = LocalBoard(url, given)
        try:
            return await ask(board)
        finally:
            await board.close()

    with asking():
        return asyncio.run(asked())


def _token(url: str) -> str:
    if (given := find_token(url)) is None:
        raise UserError(HOW_TO_GIVE_ONE)
    return given


def _told(result: Result, *, wait: bool) -> int:
    score = f", score {result.score_s * 1e3:.4g} ms" if result.score_s is not None else ""
    print(f"{result.state}{score}{': ' + result.reason if result.reason else ''}")
    return int(wait and result.state is not State.PASSED)


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        raise UserError(f"--mode {text}: use {', '.join(Mode)}") from None


def _value(text: str) -> tuple[str, bool | int | str]:
    name, found, value = text.partition("=")
    if not found or not name or not value:
        raise UserError(f"--configuration {text}: NAME=VALUE is needed, such as BM=64")
    if value in {"true", "false"}:
        return name, value == "true"
    return name, int(value) if value.removeprefix("-").isdecimal() and len(value) < 16 else value
