"""Entry point: the commands, and the one place where errors become an exit code.

Exit codes: 0 done, 1 the answer is no (a check failed), 2 bad input (one line on stderr), 3 the harness or the
device failed, 70 a fault of ours, 130 interrupted.
"""

import errno
import os
import sys
import traceback
from typing import Annotated, Final

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
from kernelwright.core.errors import HarnessError, KernelwrightError, UserError

LEAST_COLUMNS: Final = 40
FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
"""What an output says that can take nothing more."""

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


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit. Bad input is one line on stderr and exit code 2."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    _see_to_width()
    try:
        code = app(args=arguments, prog_name="kernelwright", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        return _fail(2, error)
    except HarnessError as error:
        return _fail(3, error)
    except KernelwrightError as error:
        return _fail(1, error)
    except (KeyboardInterrupt, typer.Abort):
        print("kernelwright: interrupted", file=sys.stderr)
        return 130
    except typer.Exit as done:
        return done.exit_code
    except OSError as error:
        return _of_system(error)
    except Exception as error:  # noqa: BLE001 - the process boundary: a bug of ours still ends in one readable line
        return _usage(error) if hasattr(error, "format_message") else _fault(error)
    return code if isinstance(code, int) else 0


def _see_to_width() -> None:
    """A terminal that calls itself narrower than a word would see nothing at all."""
    if os.environ.get("COLUMNS", "").isdigit() and int(os.environ["COLUMNS"]) < LEAST_COLUMNS:
        os.environ["COLUMNS"] = str(LEAST_COLUMNS)


def _of_system(error: OSError) -> int:
    """Nobody reads any more; the output can take nothing more, nor at exit, when Python flushes; or a fault of ours."""
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()
        return 0
    if error.errno not in FULL or error.filename:
        return _fault(error)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    print(f"kernelwright: error: the output cannot be written: {error.strerror}", file=sys.stderr)
    return 2


def _fail(code: int, error: Exception) -> int:
    print(f"kernelwright: error: {' '.join(str(error).split())}", file=sys.stderr)
    return code


def _usage(error: Exception) -> int:
    """A command line that cannot be parsed: click's message, on one line like every bad input."""
    message = getattr(error, "format_message", lambda: str(error))()
    command = getattr(getattr(error, "ctx", None), "command_path", "kernelwright")
    print(f"kernelwright: error: {message} (see {command} --help)", file=sys.stderr)
    return 2


def _fault(error: Exception) -> int:
    traceback.print_exception(error)
    print(
        "kernelwright: this is a fault of kernelwright, not of your input: please report it", file=sys.stderr
    )
    return 70
