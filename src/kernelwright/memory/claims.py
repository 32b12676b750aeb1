"""Who runs a campaign right now: locks that the operating system frees when their process ends, however it ends."""

import fcntl
import os
import struct
from pathlib import Path
from typing import BinaryIO, Final

from kernelwright.memory.database import one_line

BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_FLOCK: Final = "hhqqi4x"
"""``struct flock`` of 64-bit Linux: type, whence, start, length, process."""


def this_process() -> str:
    """A name that no other process has: the running kernel's, a number, a start. Empty where the system tells none."""
    try:
        boot = BOOT.read_text(encoding="ascii").strip()
        started = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, ValueError, IndexError):
        return ""
    return f"{boot} {os.getpid()} {started}"


class Claims:
    """One lock file beside the memory; each campaign is one byte of it, by its row.

    The memory's own file must not be used for this: closing any handle of it would drop SQLite's locks
    (fcntl(2), "advisory record locking").
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def claim(self, row: int) -> bool:
        """Take the row until :meth:`release`; false when another process has it."""
        with one_line(self._path):
            if self._file is None:
                self._file = self._path.open("wb")
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, row)
            except BlockingIOError:
                return False
        return True

    def gone(self, row: int, holder: str) -> bool:
        """Whether the process that had the row has surely let go of it; ``holder`` is its :func:`this_process`.

        Another machine's locks may not be seen from here, so its processes are never called gone.
        """
        here = this_process()
        if holder == here or not here or holder.partition(" ")[0] != here.partition(" ")[0]:
            return False  # this very process must not even look: closing the file would drop its locks
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, row, 1, 0)
        try:
            with self._path.open("rb") as file:
                found = fcntl.fcntl(file, fcntl.F_GETLK, asked)
        except OSError:
            return False
        return bool(struct.unpack(_FLOCK, found)[0] == fcntl.F_UNLCK)

    def release(self) -> None:
        """Let go of everything."""
        if self._file is not None:
            self._file.close()
            self._file = None
