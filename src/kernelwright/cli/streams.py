"""The three streams that a process begins with, which whoever starts it may have closed."""

import fcntl
import os
import sys
from typing import Final

STREAMS: Final = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


def see_to_streams() -> None:
    """What is closed, or an output that takes nothing, becomes /dev/null: the next file that is opened would take its number, and be written into."""
    for number, name, mode in STREAMS:
        if not _usable(number, mode):
            handle = os.open(os.devnull, os.O_RDWR)
            os.dup2(handle, number)
            os.set_inheritable(number, True)
            if handle != number:
                os.close(handle)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _usable(number: int, mode: str) -> bool:
    try:
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
    except OSError:
        return False
    return mode == "r" or flags & os.O_ACCMODE != os.O_RDONLY
