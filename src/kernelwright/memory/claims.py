"""Who runs a campaign right now: locks that the operating system frees when their process ends, however it ends."""

import fcntl
import hashlib
import os
import socket
import struct
from contextlib import suppress
from dataclasses import astuple, dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final, Self

from kernelwright.memory.database import one_line

BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
MACHINE: Final = Path("/etc/machine-id")
_NOTHING: Final = "-"
_FLOCK: Final = "hhqqi4x"
"""``struct flock`` of 64-bit Linux: type, whence, start, length, process."""


class Standing(StrEnum):
    """What can be told of a campaign's process. ``UNSEEN``: from here, whether it is still there cannot."""

    RUNNING = "running"
    GONE = "gone"
    UNSEEN = "unseen"


@dataclass(frozen=True)
class Holder:
    """A process as no other is called, where it ran, and the lock file that it held; empty what is not known.

    Notes of older versions end with ``started``.
    """

    boot: str
    process: str
    started: str
    namespace: str = ""
    machine: str = ""
    device: str = ""
    inode: str = ""

    @classmethod
    def here(cls, lock: os.stat_result | None = None) -> Self | None:
        """The process that asks; ``None`` where the system does not tell."""
        try:
            boot = BOOT.read_text(encoding="ascii").strip()
            begun = started("self")
            namespace = f"{Path('/proc/self/ns/pid').stat().st_ino}"
        except (OSError, ValueError, IndexError):
            return None
        place = (f"{lock.st_dev}", f"{lock.st_ino}") if lock else ("", "")
        return cls(boot, f"{os.getpid()}", begun, namespace, _machine(), *place)

    @classmethod
    def read(cls, note: str) -> Self | None:
        """As :meth:`__str__` wrote it."""
        words = ["" if word == _NOTHING else word for word in note.split()]
        return cls(*words[:7]) if len(words) >= 3 else None

    def __str__(self) -> str:
        return " ".join(word or _NOTHING for word in astuple(self))

    def is_same(self, other: "Holder") -> bool:
        """Whether both are one process."""
        mine, its = ((each.boot, each.process, each.started) for each in (self, other))
        return mine == its and self.namespace in {other.namespace, ""}

    @property
    def lives(self) -> bool:
        """Whether the process is there, for one that counts processes as this one does."""
        try:
            os.kill(int(self.process), 0)
        except ProcessLookupError:
            return False
        except (PermissionError, ValueError, OverflowError):
            pass
        with suppress(OSError, ValueError, IndexError):
            return started(self.process) == self.started
        return True


def started(process: str) -> str:
    """When it was started, in ticks since the boot (proc(5))."""
    return (
        Path(f"/proc/{process}/stat")
        .read_text(encoding="utf-8", errors="replace")
        .rpartition(")")[2]
        .split()[19]
    )


def _machine() -> str:
    """The same after a boot, and nothing of it can be read. Empty in most containers, which have no name of their own."""
    try:
        name = MACHINE.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    known = len(name) == 32  # "uninitialized" is no name
    return (
        hashlib.sha256(f"kernelwright {name} {socket.gethostname()}".encode()).hexdigest()[:16]
        if known
        else ""
    )


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

    def holder(self) -> str:
        """What is to be noted of this process when it has claimed a row. Empty where the system does not tell."""
        here = Holder.here(os.fstat(self._file.fileno()) if self._file else None)
        return str(here or "")

    def standing(self, row: int, note: str) -> Standing:
        """What became of the process that had the row; ``note`` is its :meth:`holder`.

        A lock that is seen is held. One that is not may be held on another machine, or in a file that this one is
        a copy of: its process is gone when it ran here, on this very file, or under a number that is free now.
        """
        noted, here = Holder.read(note), Holder.here()
        if noted is None or here is None:
            return Standing.UNSEEN
        if noted.is_same(here):
            return (
                Standing.RUNNING
            )  # this very process must not even look: closing the file would drop its locks
        locked, lock = self._look(row)
        if locked:
            return Standing.RUNNING
        return Standing.GONE if _is_gone(noted, here, lock) else Standing.UNSEEN

    def _look(self, row: int) -> tuple[bool, os.stat_result | None]:
        """Whether another process is seen to have the row, and the lock file, if there is one."""
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, row, 1, 0)
        try:
            with self._path.open("rb") as file:
                found = fcntl.fcntl(file, fcntl.F_GETLK, asked)
                return struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK, os.fstat(file.fileno())
        except OSError:
            return False, None

    def release(self) -> None:
        """Let go of everything."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _is_gone(noted: Holder, here: Holder, lock: os.stat_result | None) -> bool:
    """Whether the process is surely gone, when nobody is seen to have its lock."""
    same_file = lock is not None and noted.inode == f"{lock.st_ino}"
    if noted.boot != here.boot:  # devices may have other numbers since
        return same_file and noted.machine != "" and noted.machine == here.machine
    if lock is not None and (noted.inode == "" or (same_file and noted.device == f"{lock.st_dev}")):
        return True
    return noted.namespace == here.namespace and not noted.lives
