# ruff: noqa: PTH123, PTH208 - pathlib takes longer to import than all else here
"""Keeps a command of the user's: nothing that it started outlives it, or outlives who asked for it.

``python -I -S keeper.py PARENT GRACE_S COMMAND...``, run as a file: it starts with every request and imports little.
What loses its parent below becomes a child of this process, whatever session it is in (prctl(2),
PR_SET_CHILD_SUBREAPER). SIGTERM ends everything, and comes by itself when the parent is gone, killed or not.
SIGUSR1 says that the reply has been read: nobody needs what is left when the command itself has ended.
"""

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress

_PDEATHSIG, _SUBREAPER = 1, 36  # linux/prctl.h
_END = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
_READ = signal.SIGUSR1
_AWAITED = _END | {_READ, signal.SIGCHLD}
_CANNOT_START = 127
_OF_A_SIGNAL = 128  # what shells add
_END_S = 5.0
"""How long the rest may take to end: another user's process, or one in the kernel, may not end at all."""


def keep(parent: int, grace_s: float, command: list[str]) -> int:
    """Run the command to its end; exit code, as shells give it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored ones leave no status
    prctl = ctypes.CDLL(None).prctl
    prctl(_SUBREAPER, 1)
    prctl(_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    child = os.fork()
    if child == 0:
        prctl(_PDEATHSIG, int(signal.SIGKILL))
        _become(command, mask)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # the pipes are the command's alone: their end is to be seen
        os.dup2(null, stream)
    status = _end_of(child, grace_s)
    end_children(_END_S)
    return -status + _OF_A_SIGNAL if status < 0 else status


def _become(command: list[str], mask: set[int]) -> None:
    """In the child: a session of its own, so that a signal to its group is none to its keeper."""
    os.setsid()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the user's own program
    except OSError as error:
        os.write(2, f"cannot be started: {error.strerror}".encode())
    os._exit(_CANNOT_START)


def _end_of(child: int, grace_s: float) -> int:
    """Status of the child when nothing is left, its others have used up their grace, or the end is ordered.

    The grace is for what the command started to write its reply, such as ``agent > >(tee log)``.
    """
    status, deadline = -int(signal.SIGTERM), None
    while True:
        ended, left = reap()
        if child in ended:
            status, deadline = os.waitstatus_to_exitcode(ended[child]), time.monotonic() + grace_s
        if not left:
            return status
        rest = 3600.0 if deadline is None else max(0.0, deadline - time.monotonic())
        told = signal.sigtimedwait(_AWAITED, rest)
        if told is None and deadline is not None:
            return status
        if told is not None and told.si_signo in _END:
            return status
        if told is not None and told.si_signo == _READ:
            grace_s, deadline = 0.0, None if deadline is None else time.monotonic()


def end_children(limit_s: float) -> None:
    """SIGKILL the children, and theirs, which become children then, until none is left."""
    until, left = time.monotonic() + limit_s, True
    while left and time.monotonic() < until:
        for process in children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.02)
        _, left = reap()


def reap() -> tuple[dict[int, int], bool]:
    """Wait statuses of the children that have ended, and whether any is left."""
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
        return ended, True
    return ended, False


def children(listed: str = "/proc/thread-self/children") -> list[int]:
    """The children, from a kernel that lists them, else from every process there is."""
    with suppress(FileNotFoundError), open(listed, encoding="ascii") as file:
        return [int(word) for word in file.read().split()]
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _parent(name) == os.getpid()]


def _parent(process: str) -> int:
    """The second field behind the name, which is in brackets."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


if __name__ == "__main__":
    sys.exit(keep(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
