"""Entry point: what loads the commands, and the one place where errors become an exit code.

Exit codes: 0 done, 1 the answer is no (a check failed), 2 bad input (one line on stderr), 3 the harness or the
device failed, 70 a fault of ours, 130 interrupted, 141 nobody reads the output any more (as of any command that
SIGPIPE ends).
"""

import errno
import logging
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

from kernelwright.cli.ending import ENDING, end_as_interrupts_do
from kernelwright.cli.streams import see_to_streams
from kernelwright.core.errors import HarnessError, KernelwrightError, UserError
from kernelwright.core.text import one_line
from kernelwright.harness.limits import TO_LOAD, refuse_narrow_limits

INTERRUPTED: Final = "kernelwright: interrupted"
INTERRUPTED_CODE: Final = 130
UNREAD_CODE: Final = 128 + signal.SIGPIPE
LEAST_COLUMNS: Final = 40
FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
"""What an output says that can take nothing more."""
CLOSED: Final = {errno.EACCES, errno.EPERM, errno.EROFS}
"""What a file or a folder says that this user may not use."""
TOO_MANY_FILES: Final = {errno.EMFILE, errno.ENFILE}


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit. Bad input is one line on stderr and exit code 2."""
    own = arguments is None and threading.current_thread() is threading.main_thread()
    if own:
        end_as_interrupts_do()
    code = _run(arguments)
    if own:
        # The process ends now, as it was told: a signal would only spoil the exit code.
        for number in (signal.SIGINT, *ENDING):
            signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    try:
        return _code(arguments)
    except (BrokenPipeError, SystemExit) as error:
        # Rich and typer make exit code 1 of it, "the answer is no".
        if not isinstance(error.__context__ if isinstance(error, SystemExit) else error, BrokenPipeError):
            raise
        return _stop_writing()


def _code(arguments: list[str] | None) -> int:
    see_to_streams()
    _see_to_width()
    # It warns of a child whose end its own transport saw before its watcher did, which happens when all is ended at once.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    try:
        refuse_narrow_limits(TO_LOAD)
        code = _commands()(args=arguments, prog_name="kernelwright", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        return _fail(2, error)
    except HarnessError as error:
        return _fail(3, error)
    except KernelwrightError as error:
        return _fail(1, error)
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:  # noqa: BLE001 - the process boundary: a bug of ours still ends in one readable line
        return _other(error)
    if code == INTERRUPTED_CODE:  # of a campaign; some versions of typer make it of any KeyboardInterrupt
        return _interrupted()
    return code if isinstance(code, int) else 0


def _commands() -> Callable[..., object]:
    """The commands. Ctrl-C while they are loaded ends the process at once.

    An exception in the middle of an import would come out as any other, or not at all.
    """
    quiet = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if quiet:
        signal.signal(signal.SIGINT, _leave)
    try:
        from kernelwright.cli.app import app
    finally:
        if quiet:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    return app


def _leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal's handler
    """Nothing was begun that would have to be put away."""
    os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(INTERRUPTED_CODE)


def _interrupted() -> int:
    print(INTERRUPTED, file=sys.stderr)
    return INTERRUPTED_CODE


def _other(error: Exception) -> int:
    """Ways in which commands end, a command line that cannot be parsed, or a fault of ours."""
    if _lacks_files(error):  # also what the next import would open
        return _fail(2, UserError("too many open files: raise the limit (ulimit -n 1024), or close some"))
    if isinstance(error, OSError):
        return _of_system(error)
    import typer

    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, typer.Abort):
        return _interrupted()
    return _usage(error) if hasattr(error, "format_message") else _fault(error)


def _lacks_files(error: BaseException) -> bool:
    """Whether the system's limit is behind an error, at whatever remove (an import, a group, a cause)."""
    for each in _behind(error):
        if isinstance(each, OSError) and each.errno in TOO_MANY_FILES:
            return True
        if isinstance(each, ImportError) and os.strerror(errno.EMFILE) in str(each):
            return True
    return False


def _behind(error: BaseException) -> Iterator[BaseException]:
    """An error and all that led to it, each once: one that was taken out of its group leads back to itself."""
    found: list[BaseException | None] = [error]
    seen: set[int] = set()
    while found:
        each = found.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        found.append(each.__cause__ or each.__context__)
        if isinstance(each, BaseExceptionGroup):
            found += each.exceptions


def _see_to_width() -> None:
    """A terminal that calls itself narrower than a word would see nothing at all."""
    if os.environ.get("COLUMNS", "").isdigit() and int(os.environ["COLUMNS"]) < LEAST_COLUMNS:
        os.environ["COLUMNS"] = str(LEAST_COLUMNS)


def _of_system(error: OSError) -> int:
    """Nobody reads any more; the output can take nothing more, nor at exit, when Python flushes; or a fault of ours."""
    if isinstance(error, BrokenPipeError) and _unread():
        return _stop_writing()
    if error.errno in CLOSED and error.filename:
        return _fail(
            2, UserError(f"{os.fsdecode(error.filename)}: {error.strerror}: give yourself the right to it")
        )
    if error.errno not in FULL or error.filename:
        return _fault(error)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    print(f"kernelwright: error: the output cannot be written: {error.strerror}", file=sys.stderr)
    return 2


def _unread() -> list[int]:
    """Which of the outputs nobody reads any more (``head`` has seen enough)."""
    watch = select.poll()
    for number in (1, 2):
        watch.register(number, 0)
    return [number for number, events in watch.poll(0) if events & (select.POLLERR | select.POLLHUP)]


def _stop_writing() -> int:
    """Quietly, also at exit, when Python flushes."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in _unread():
        os.dup2(nowhere, number)
    return UNREAD_CODE


def _fail(code: int, error: Exception) -> int:
    print(f"kernelwright: error: {one_line(str(error))}", file=sys.stderr)
    return code


def _usage(error: Exception) -> int:
    """A command line that cannot be parsed: click's message, on one line like every bad input."""
    message = getattr(error, "format_message", lambda: str(error))()
    command = getattr(getattr(error, "ctx", None), "command_path", "kernelwright")
    print(f"kernelwright: error: {one_line(message)} (see {command} --help)", file=sys.stderr)
    return 2


def _fault(error: Exception) -> int:
    traceback.print_exception(error)
    print(
        "kernelwright: this is a fault of kernelwright, not of your input: please report it", file=sys.stderr
    )
    return 70
