"""Run a compiler on untrusted input: limits on time, memory and file sizes, output cut while it is read."""

import os
import re
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAX_OUTPUT_BYTES = 64 * 1024
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_KILLED = re.compile(
    r"^[^\n]*: (?:(?:Killed|Terminated|Interrupt|Hangup|Quit) signal terminated program"
    r"|\S+ terminated with signal (?:9|15|2|1|3)\b)",
    re.MULTILINE,
)

# ulimit takes KiB for memory and 512-byte blocks for files (POSIX); dash takes one limit a call.
_LIMITED = 'ulimit -t "$1" && ulimit -v "$2" && ulimit -f "$3" && ulimit -c 0 && shift 3 && exec "$@"'


@dataclass(frozen=True)
class Limits:
    """Bounds of one compile: wall and CPU seconds, bytes of address space, bytes of one written file."""

    seconds: float = 30.0
    memory_bytes: int = 2 << 30
    file_bytes: int = 256 << 20


@dataclass(frozen=True)
class Finished:
    """How a bounded process ended. ``output`` is its stderr, cut at 64 KiB."""

    returncode: int
    output: str
    timed_out: bool
    seconds: float


def run_bounded(command: Sequence[str], folder: Path, limits: Limits) -> Finished:
    """Run ``command`` in ``folder`` with an empty environment but PATH, in a session of its own.

    Raises FileNotFoundError only when /bin/sh is missing; a missing command is return code 127.
    """
    begin = time.monotonic()
    seconds = _within(resource.RLIMIT_CPU, int(limits.seconds) + 1)
    memory = _within(resource.RLIMIT_AS, limits.memory_bytes) // 1024
    size = _within(resource.RLIMIT_FSIZE, limits.file_bytes) // 512
    process = subprocess.Popen(
        ["/bin/sh", "-c", _LIMITED, "sh", str(seconds), str(memory), str(size), *command],
        cwd=folder,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        try:
            output, timed_out = _read_bounded(process, begin + limits.seconds)
        finally:
            kill_session(process)
    return Finished(process.returncode, output, timed_out, time.monotonic() - begin)


def was_killed(done: Finished) -> bool:
    """Whether something outside ended it, or a program that it ran: a person, or the system for lack of memory.

    What g++ and its linker print of theirs is the only trace; a source that makes them print it gains a second try.
    """
    return -done.returncode in _FROM_OUTSIDE or (done.returncode > 0 and bool(_KILLED.search(done.output)))


def _within(kind: int, wanted: int) -> int:
    """``wanted``, or the hard limit where that is less: nobody may set a limit above it."""
    _, hard = resource.getrlimit(kind)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _read_bounded(process: subprocess.Popen[bytes], deadline: float) -> tuple[str, bool]:
    assert process.stderr is not None
    kept = bytearray()
    timed_out = False
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                timed_out = True
                break
            data = os.read(process.stderr.fileno(), 65536)
            if not data:
                break
            kept += data[: MAX_OUTPUT_BYTES - len(kept)]
    if not timed_out:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            timed_out = True
    return kept.decode(errors="replace"), timed_out


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, and everything it started there, also where the process itself has ended.

    Until it is waited for, nobody else has its number.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
