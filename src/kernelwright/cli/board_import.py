"""``board import``: a problem of GPU MODE becomes a problem folder."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import JsonValue

from kernelwright.cli.asking import asking
from kernelwright.cli.options import JsonOption, given, path, pick_device
from kernelwright.core.errors import UserError
from kernelwright.harness.enclosure import told
from kernelwright.harness.official import describe_inputs
from kernelwright.leaderboard.board_file import BoardFile, read_board_file
from kernelwright.leaderboard.gpumode.described import read_described
from kernelwright.leaderboard.gpumode.files import pick_task, read_task_folder, read_task_json
from kernelwright.leaderboard.gpumode.folder import Written, problem_name, write_problem_folder
from kernelwright.leaderboard.gpumode.inputs_read import Returned
from kernelwright.leaderboard.gpumode.task import Task
from kernelwright.leaderboard.gpumode.user_tables import UserTables, read_user_tables
from kernelwright.leaderboard.kernelbot.address import SCHEME, base_url, parse_name
from kernelwright.leaderboard.kernelbot.client import Client
from kernelwright.leaderboard.untrusted import read

MOST_DESCRIBED: Final = 8
"""Cases for which generate_input is called: enough to tell sizes apart."""


def import_board(
    source: Annotated[
        str,
        typer.Argument(
            parser=given,
            help="A folder with a task.yml, a saved answer of /leaderboards (.json), or kernelbot:NAME.",
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option("-o", "--output", parser=path, help="Folder to make; by default the board's name."),
    ] = None,
    leaderboard: Annotated[
        str, typer.Option(help="The leaderboard's name, where the files do not tell it.")
    ] = "",
    baseline: Annotated[
        Path | None, typer.Option(parser=path, help="A simple kernel that is right: becomes baseline.cu.")
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(parser=path, help="A reference.py of ours, where the board's cannot be translated."),
    ] = None,
    arguments: Annotated[
        Path | None,
        typer.Option(
            parser=path, help="TOML that says what cannot be read: arguments, inputs, tolerance, abi, ..."
        ),
    ] = None,
    run_inputs: Annotated[
        bool, typer.Option("--run-inputs", help="Call the board's generate_input, in the sandbox.")
    ] = False,
    root: Annotated[
        Path | None, typer.Option(parser=path, help="Files of a task lie in here; by default its repository.")
    ] = None,
    server: Annotated[str | None, typer.Option(help="GPU MODE's server; by default POPCORN_API_URL.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Import a problem of GPU MODE. Its Python is read, not run."""
    user = read_user_tables(arguments) if arguments else UserTables()
    task = _task(source, leaderboard, root, server)
    described = asyncio.run(_described(task)) if run_inputs else None
    target = to or Path(problem_name(task.name))
    written = write_problem_folder(
        task,
        target,
        baseline=baseline,
        reference=reference,
        user=user,
        said=str(arguments or "--arguments"),
        described=described,
    )
    board = read_board_file(written.folder)
    if as_json:
        typer.echo(json.dumps(_as_data(written, board)))
    else:
        _print(written, board)


def _task(source: str, leaderboard: str, root: Path | None, server: str | None) -> Task:
    if source.startswith(SCHEME):
        name, _ = parse_name(source)
        if not name:
            raise UserError(f"{source}: which one? 'kernelwright board list' names them: kernelbot:NAME")
        with asking():
            return asyncio.run(_asked(name, server))
    file = Path(source)
    if file.suffix == ".json":
        return read_task_json(file, name=leaderboard)
    return read_task_folder(file, root=root, name=leaderboard)


async def _asked(name: str, server: str | None) -> Task:
    """The list is public: no credential is sent."""
    url = base_url(server)
    client = Client(url)
    try:
        boards = read(list[JsonValue], await client.get("/leaderboards", catalogue=True), url)
        return pick_task(boards, url, name)
    finally:
        await client.close()


async def _described(task: Task) -> Returned:
    """Small cases where there are some."""
    cases = (task.tests or task.benchmarks)[:MOST_DESCRIBED]
    ran = await describe_inputs(dict(task.sources), cases, device=pick_device("auto"))
    if lacking := told(ran.missing):
        typer.echo(lacking, err=True)
    return read_described(ran.said, cases)


def _as_data(written: Written, board: BoardFile) -> dict[str, object]:
    return {
        "folder": str(written.folder),
        "leaderboard": board.leaderboard,
        "gpus": board.gpus,
        "ranking": board.ranking,
        "cases": [case.case for case in board.cases],
        "missing": written.missing,
        "notes": written.notes,
    }


def _print(written: Written, board: BoardFile) -> None:
    gpus = f" on {', '.join(board.gpus)}" if board.gpus else ""
    typer.echo(
        f"{written.folder}: {board.leaderboard}{gpus}, {len(board.cases)} cases, ranked by {board.ranking}"
    )
    for note in written.notes:
        typer.echo(f"- {note}")
    for name in written.missing:
        typer.echo(f"- {name} is still missing: write {written.folder / name} as docs/problems.md describes")
