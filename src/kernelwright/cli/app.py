"""The commands. Loading this loads them all, which takes a moment: see :mod:`kernelwright.cli.main`."""

from typing import Annotated

import typer

from kernelwright import __version__
from kernelwright.cli import (
    bench,
    board,
    certificate,
    check,
    detached,
    doctor,
    exchange,
    gauntlet,
    problems,
    profile,
    replay,
    report,
    run,
    show,
)

app = typer.Typer(
    name="kernelwright",
    help="An autonomous engineer for CUDA kernels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("show")(show.show)
app.command("report")(report.report)
app.command("replay")(replay.replay)
app.command("check")(check.check)
app.command("profile")(profile.profile)
app.command("certificate")(certificate.certificate)
app.command("gauntlet")(gauntlet.gauntlet)
app.command("doctor")(doctor.doctor)
app.command("export-batch")(detached.export_batch)
app.command("evaluate-batch")(detached.evaluate_batch)
app.command("import-batch")(detached.import_batch)
app.command("export")(exchange.export)
app.command("import-space")(exchange.import_space)
app.command("import-results")(exchange.import_results)
app.add_typer(problems.app, name="problem")
app.add_typer(problems.app, name="problems", hidden=True)  # its name in version 0.1.0
app.add_typer(bench.app, name="bench")
app.add_typer(board.app, name="board")


def _version(show_it: bool) -> None:
    if show_it:
        typer.echo(f"kernelwright {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """An autonomous engineer for CUDA kernels."""
