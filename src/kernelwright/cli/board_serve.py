"""``board serve`` and ``board token``: for whoever serves a board. The server's packages are imported where used."""

import asyncio
import importlib
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, TypeVarTuple

import typer

from kernelwright.cli.options import SlowOption, StrictOption, path, pick_device, use_slow_cases
from kernelwright.core.errors import MissingError, UserError
from kernelwright.core.objective import ObjectiveName
from kernelwright.leaderboard.wire import INSTALL

DEFAULT_DATA: Final = Path(".kernelwright/board.db")

_Words = TypeVarTuple("_Words")
DataOption = Annotated[Path, typer.Option("--data", parser=path, help="The board's file.")]


def serve(
    problems: Annotated[list[str], typer.Argument(metavar="PROBLEM...", help="Bundled problems or folders.")],
    devices: Annotated[
        list[str] | None,
        typer.Option("--device", "-d", help="auto, cuda:N or cpu; several times for several."),
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 for a whole network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    data: DataOption = DEFAULT_DATA,
    deadline: Annotated[
        str | None,
        typer.Option(
            help="ISO time, here's unless it names a zone. From then on users may read ranked sources. "
            "The file keeps it; it can be changed until it has passed."
        ),
    ] = None,
    ranked_per_hour: Annotated[int, typer.Option(min=0, help="Ranked submissions of one user.")] = 60,
    test_per_hour: Annotated[int, typer.Option(min=0, help="Test submissions of one user.")] = 240,
    ranking: Annotated[
        ObjectiveName | None, typer.Option(help="How times make a score; by default the problem's objective.")
    ] = None,
    slow_cases: SlowOption = None,
    strict: StrictOption = False,
) -> None:
    """Serve a leaderboard: the harness measures every submission here, with inputs that nobody knows."""
    names = _devices(devices or ["auto"], slow_cases)
    until = None if deadline is None else _moment(deadline)
    running, records = _server()
    listings = [
        records.Listing.of(
            name, slow_cases=use_slow_cases(names[0], chosen=slow_cases), ranking=ranking
        )
        for name in problems
    ]  # fmt: skip
    rules = records.Rules(test_per_hour, ranked_per_hour, until)
    settings = running.Settings(listings, names, data, host, port, rules, strict)
    loop = _Loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(running.serve(settings, lambda text: print(text, file=sys.stderr, flush=True)))
    if loop.interrupted:
        raise KeyboardInterrupt


class _Loop(asyncio.SelectorEventLoop):
    """Remembers Ctrl-C, which a server takes for itself: it ends in order, but it was interrupted."""

    interrupted = False

    def add_signal_handler(self, sig: int, callback: Callable[[*_Words], object], *args: *_Words) -> None:
        """As any loop does."""
        super().add_signal_handler(sig, self._hear, sig, callback, *args)

    def _hear(self, sig: int, callback: Callable[[*_Words], object], *args: *_Words) -> None:
        self.interrupted |= sig == signal.SIGINT
        callback(*args)


def token(
    name: Annotated[str, typer.Argument(help="Of the user: letters, digits, . _ -")],
    data: DataOption = DEFAULT_DATA,
    seeder: Annotated[
        bool,
        typer.Option("--seeder", help="May name many entries, without an hourly limit: to fill a board."),
    ] = False,
) -> None:
    """Make a user's token and print it, once. An older one of the same user ends when that was written out."""
    from kernelwright.board_server.requests import USER_NAME
    from kernelwright.board_server.store import Store

    if not USER_NAME.match(name):
        raise UserError(f"{name!r}: a user's name has up to 40 letters, digits, '.', '_' and '-'")
    new = not data.exists()
    store = Store.open(data)
    if new:
        print(f"{data}: a new board file", file=sys.stderr)
    try:
        store.new_token(name, seeder=seeder, told=_print_out)
    finally:
        store.close()


def _print_out(made: str) -> None:
    """Raises UserError while the older one is still valid."""
    fault = "there is no output" if sys.stdout is None else ""  # the command may begin without one
    try:
        print(made, flush=True)
    except OSError as error:
        fault = str(error.strerror)
    if fault:
        raise UserError(f"the new token cannot be written out ({fault}): an older one stays valid")


def _server() -> tuple[Any, Any]:
    try:
        importlib.import_module("python_multipart")  # starlette asks for it when the first form comes
        from kernelwright.board_server import records, running
    except ImportError as error:
        raise MissingError(f"serving a board needs {error.name}: {INSTALL}") from None
    return running, records


def _devices(given: list[str], slow_cases: bool | None) -> list[str]:
    names = [pick_device(name) for name in given]
    kinds = {name.partition(":")[0] for name in names}
    if not kinds <= {"cpu", "cuda"}:
        raise UserError("--device: a board measures on this machine's devices: use auto, cpu or cuda:N")
    if len(kinds) > 1 and slow_cases is None:
        raise UserError("--device: for a GPU beside the cpu say --slow-cases or --full-cases")
    return names


def _moment(text: str) -> float:
    try:
        # Through UTC: what is shown there and here must be a date as well.
        return datetime.fromisoformat(text).astimezone(UTC).astimezone().timestamp()
    except (ValueError, OverflowError):
        raise UserError(f"--deadline {text}: is no time: use such as 2026-12-24T18:00+01:00") from None
