"""``board list`` and ``board show``: what GPU MODE's server ranks. Its texts are shown as data."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Final, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from kernelwright.cli.asking import asking
from kernelwright.cli.options import JsonOption
from kernelwright.cli.plain import PlainConsole
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import BoardInfo, Place, Refused
from kernelwright.leaderboard.kernelbot.address import SCHEME, base_url, parse_name
from kernelwright.leaderboard.kernelbot.answers import Leaderboard
from kernelwright.leaderboard.kernelbot.board import KernelbotBoard
from kernelwright.leaderboard.kernelbot.client import Client
from kernelwright.leaderboard.kernelbot.credentials import find_credential
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.untrusted import line

TOP: Final = 10
T = TypeVar("T")

BoardArgument = Annotated[str, typer.Argument(help="kernelbot:NAME@GPU.")]
ServerOption = Annotated[
    str | None, typer.Option("--server", help="GPU MODE's server; by default POPCORN_API_URL.")
]


def list_boards(
    url: Annotated[str, typer.Argument(help="kernelbot: is all that there is.")] = SCHEME,
    server: ServerOption = None,
    ended: Annotated[bool, typer.Option("--ended", help="Also boards past their deadline.")] = False,
    as_json: JsonOption = False,
) -> None:
    """The leaderboards of GPU MODE that take submissions, with their deadlines and GPUs."""
    if parse_name(url) != ("", ""):
        raise UserError(f"board list {url}: takes kernelbot: alone; kernelwright board show {url} shows one")
    boards = _asked(server, lambda client, _: client.leaderboards())
    now = time.time()
    shown = [board for board in boards if ended or board.deadline is None or board.deadline > now]
    shown.sort(key=lambda board: (board.deadline is None, board.deadline, board.name))
    if as_json:
        typer.echo(json.dumps([_row(board) for board in shown]))
        return
    table = Table("leaderboard", "deadline", "GPUs", "ranked by", box=None, pad_edge=False)
    for board in shown:
        row = _row(board)
        table.add_row(*(Text(str(row[key] or "")) for key in ("name", "deadline", "gpus", "ranking")))
    PlainConsole().print(table)


def show_board(url: BoardArgument, server: ServerOption = None, as_json: JsonOption = False) -> None:
    """One leaderboard on one GPU: its cases, limits and best entries."""
    name, gpu = parse_name(url)
    if not name or not gpu:
        raise UserError(
            f"board show {url}: use kernelbot:NAME@GPU; kernelwright board list {SCHEME} names all"
        )

    async def ask(client: Client, credential: Secret | None) -> tuple[BoardInfo, tuple[Place, ...]]:
        board = KernelbotBoard("", name, gpu, credential, _no_text, client=client)
        return await board.info(), await board.ranks(TOP)

    info, places = _asked(server, ask)
    if as_json:
        typer.echo(json.dumps({"board": asdict(info), "ranks": [asdict(place) for place in places]}))
        return
    _print(info, places)


def _asked(server: str | None, ask: Callable[[Client, Secret | None], Awaitable[T]]) -> T:
    async def asked() -> T:
        url = base_url(server)
        credential = find_credential(url, told=lambda text: typer.echo(text, err=True))
        client = Client(url, credential)
        try:
            return await ask(client, credential)
        finally:
            await client.close()

    with asking():
        return asyncio.run(asked())


def _no_text(_: object) -> str:
    raise Refused("this board was opened for reading only")


def _row(board: Leaderboard) -> dict[str, str | None]:
    ranking = board.task.get("ranking_by")
    return {
        "name": line(board.name, 100),
        "deadline": _day(board.deadline),
        "gpus": line(", ".join(board.gpu_types), 200),
        "ranking": line(ranking, 20) if isinstance(ranking, str) else "last",
    }


def _day(deadline: float | None) -> str | None:
    return None if deadline is None else f"{datetime.fromtimestamp(deadline, UTC):%Y-%m-%d %H:%M} UTC"


def _print(info: BoardInfo, places: tuple[Place, ...]) -> None:
    console = PlainConsole()
    until = f", until {_day(info.deadline)}" if info.deadline is not None else ""
    console.print(Text(f"{info.name} on {info.device}: ranked by {info.ranking}{until}", style="bold"))
    for case in info.cases:
        console.print(Text("  " + line(", ".join(f"{key} {value}" for key, value in case.items()))))
    table = Table("rank", "user", "seconds", "entry", box=None, pad_edge=False)
    for place in places:
        user = f"{place.user} (you)" if place.mine else place.user
        table.add_row(
            *(Text(cell) for cell in (str(place.rank), user, f"{place.score_s:.4g}", place.submission))
        )
    console.print(table)
