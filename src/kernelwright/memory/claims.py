"""Who runs a campaign right now: locks that the operating system frees when their process ends, however it ends."""

import fcntl
from pathlib import Path
from typing import BinaryIO

from kernelwright.memory.database import one_line


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

    def release(self) -> None:
        """Let go of everything."""
        if self._file is not None:
            self._file.close()
            self._file = None
