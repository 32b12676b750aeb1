"""One harness at a time on a device, over all processes of a machine."""

import asyncio
import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import monotonic
from typing import Final

from kernelwright.core.errors import HarnessError

WAIT_S: Final = 3600.0
_POLL_S: Final = 0.02


def silent(message: str) -> None:
    """Hears a message and does nothing."""


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

    Those who time nothing may hold it ``shared`` with each other.

    ``waiting`` hears once that another process has it. Raises HarnessError when that lasts longer than
    ``wait_s`` seconds, or when the lock's file cannot be opened.
    """
    path = lock_path(uuid, folder)
    handle = _open(path)
    start = monotonic()
    told = False
    try:
        while not _taken(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            if not told:
                told = True
                waiting(f"another process measures on the device {uuid}: waiting for {path}")
            if monotonic() - start > wait_s:
                raise HarnessError(f"the device {uuid} was kept by another process for {wait_s:g} s ({path})")
            await asyncio.sleep(_POLL_S)
        yield
    finally:
        os.close(handle)


def lock_path(uuid: str, folder: Path | None = None) -> Path:
    """The lock's file: one for all users of the machine."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", uuid)
    return (folder or Path(tempfile.gettempdir())) / f"kernelwright-device-{name}.lock"


def _open(path: Path) -> int:
    """Reading is enough for flock, and another user's file may not be written."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
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
