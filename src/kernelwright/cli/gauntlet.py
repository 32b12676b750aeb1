"""``gauntlet [DIR]``: cheats that must be caught by a named check, and honest candidates that must pass."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import kernelwright
from kernelwright.cli.options import DeviceOption, JsonOption, SlowOption, path, pick_device, use_slow_cases
from kernelwright.cli.plain import PlainConsole
from kernelwright.cli.telling import Count, teller
from kernelwright.core.errors import UserError
from kernelwright.core.looking import is_folder
from kernelwright.gauntlet import Report, Row, Verdict, load_entries, run_gauntlet
from kernelwright.gauntlet.judge import FAILURES

INTERRUPTED_CODE = 130
_STYLE = {Verdict.CAUGHT: "green", Verdict.HONEST: "green", Verdict.NOT_RUN: "dim"}


def gauntlet(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            parser=path,
            help="Folder of .cu files; by default the one of the source checkout.",
        ),
    ] = None,
    device: DeviceOption = "auto",
    only: Annotated[str, typer.Option("--only", help="Only files whose path holds this text.")] = "",
    slow_cases: SlowOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the inputs.")] = 0,
    strict: Annotated[bool, typer.Option("--strict", help="A file that could not run is a failure.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table as markdown.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Prove the harness: every cheat is caught by the check it names, no honest candidate is refused.

    Exit code 0 when that holds, 1 when not. Ctrl-C shows what is known by then, exit code 130.
    """
    if as_json and markdown:
        raise UserError("--json and --markdown: choose one")
    entries = tuple(entry for entry in load_entries(folder or _default_folder()) if only in entry.file)
    if not entries:
        raise UserError(f"--only {only}: no file's path holds this text")
    name = pick_device(device)
    console = PlainConsole(stderr=True)
    count = Count(
        len(entries),
        lambda line: console.print(line, style="dim", soft_wrap=True),
        all_lines=console.is_terminal,
    )
    report = asyncio.run(
        run_gauntlet(
            entries,
            name,
            slow_cases=use_slow_cases(name, chosen=slow_cases),
            seed=seed,
            notify=lambda row: count.add(_line(row), bad=row.verdict in FAILURES),
            tell=teller(),
        )
    )
    if as_json:
        typer.echo(json.dumps(report.as_json()))
    elif markdown:
        typer.echo(as_markdown(report))
    else:
        _print(PlainConsole(), report)
    if report.interrupted:
        return INTERRUPTED_CODE
    return int(bool(report.failures) or (strict and report.count(Verdict.NOT_RUN) > 0))


def _default_folder() -> Path:
    folder = Path(kernelwright.__file__).resolve().parents[2] / "tests" / "gauntlet"
    if not is_folder(folder):
        raise UserError(
            "gauntlet: this is no source checkout: name a folder of .cu files, 'kernelwright gauntlet DIR'"
        )
    return folder


def _line(row: Row) -> str:
    return f"{row.verdict}: {row.file}" + (f" ({row.check})" if row.check else "")


def _summary(report: Report) -> str:
    counts = report.as_json()
    return (
        f"{report.device} ({report.model}): {counts['cheats']} cheats, {counts['caught']} caught, "
        f"{counts['passed']} passed, {counts['wrong_check']} caught by another check than named; "
        f"{counts['honest']} honest, {counts['false_alarms']} false alarms; "
        f"{counts['not_run']} not run, {counts['errors']} failures of the harness"
        + ("; interrupted" if report.interrupted else "")
    )


def _print(console: Console, report: Report) -> None:
    table = Table("file", "plays", "verdict", "check", "s", box=None, pad_edge=False)
    for row in report.rows:
        table.add_row(
            row.file,
            row.row,
            str(row.verdict),
            row.check,
            f"{row.seconds:.1f}",
            style=_STYLE.get(row.verdict, "red"),
        )
    console.print(table)
    for row in report.rows:
        if row.verdict in FAILURES:
            console.print(f"{row.verdict}: {row.file}: {row.status}: {row.reason}", style="red", markup=False)
    console.print(_summary(report), style="bold", markup=False)


def as_markdown(report: Report) -> str:
    """The report as a markdown table for the documentation."""
    lines = [_summary(report), "", "| file | plays | verdict | check | status |", "|---|---|---|---|---|"]
    lines += [
        f"| {_cell(row.file)} | {_cell(row.row)} | {row.verdict} | {row.check} | {row.status} |"
        for row in report.rows
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
