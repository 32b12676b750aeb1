"""One harness at a time on a device, over all processes of a machine."""

import asyncio
import contextlib
import fcntl
import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final

from kernelwright.core.errors import HarnessError
from kernelwright.core.looking import is_there

WAIT_S: Final = 3600.0
_POLL_S: Final = 0.02
FOLDERS: Final = (Path("/tmp"), Path("/var/lock"), Path("/dev/shm"))  # noqa: S108 - everybody's, as the lock is
"""Where locks are: in the first that this user may write, or where the device's lock is already."""


def silent(message: str) -> None:
    """Hears a message and does nothing."""


def told_once(tell: Callable[[str], None]) -> Callable[[str], None]:
    """Passes a message on the first time only: two processes that share a device wait for each other all the time."""
    known: set[str] = set()

    def hear(message: str) -> None:
        if message not in known:
            known.add(message)
            tell(message)

    return hear


@contextlib.asynccontextmanager
async def device_lock(
    uuid: str,
    *,
    shared: bool = False,
    wait_s: float = WAIT_S,
    waiting: Callable[[str], None] = silent,
    folder: Path | None = None,
) -> AsyncIterator[None]:
    """Hold the device; two processes timing on one GPU at once would double every figure.

    Those who time nothing may hold it ``shared`` with each other. Who waits has the next turn: one that lets go and
    asks again at once stands behind it, so that a campaign and a leaderboard on one device both get on.

    ``waiting`` hears once that another process has it. Raises HarnessError when that lasts longer than
    ``wait_s`` seconds, or when the lock's file cannot be opened.
    """
    path = lock_path(uuid, folder)
    patience = _Patience(f"{uuid}", path, wait_s, waiting)
    turn = _open(path.with_suffix(".turn"))
    try:
        await patience.take(turn, fcntl.LOCK_EX)
        handle = _open(path)
        try:
            await patience.take(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except BaseException:
            os.close(handle)
            raise
    finally:
        os.close(turn)
    try:
        yield
    finally:
        os.close(handle)


@dataclass
class _Patience:
    """Waits for locks of one device, ``wait_s`` seconds in all."""

    uuid: str
    path: Path
    wait_s: float
    waiting: Callable[[str], None]
    told: bool = False
    start: float = field(default_factory=monotonic)

    async def take(self, handle: int, kind: int) -> None:
        """Until it is ours."""
        while not _taken(handle, kind):
            if not self.told:
                self.told = True
                self.waiting(f"another process measures on the device {self.uuid}: waiting for {self.path}")
            if monotonic() - self.start > self.wait_s:
                raise HarnessError(
                    f"the device {self.uuid} was kept by another process for {self.wait_s:g} s ({self.path})"
                )
            await asyncio.sleep(_POLL_S)


def lock_path(uuid: str, folder: Path | None = None) -> Path:
    """The lock's file: one for all users of the machine, so no variable of a user's environment has a say in it."""
    name = f"kernelwright-device-{re.sub(r'[^A-Za-z0-9]+', '-', uuid)}.lock"
    if folder is None:
        usable = (each for each in FOLDERS if os.access(each, os.W_OK | os.X_OK) or is_there(each / name))
        folder = next(usable, FOLDERS[0])
    return folder / name


def _open(path: Path) -> int:
    """Reading is enough for flock, and another user's file may not be written; a pipe there is not waited for."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            return os.open(path, flags | os.O_CREAT, 0o644)
    except OSError as error:
        raise HarnessError(f"{path}: the device's lock cannot be opened: {error.strerror}") from None


def _taken(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
