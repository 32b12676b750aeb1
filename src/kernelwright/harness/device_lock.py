"""One harness at a time on a device, over all processes of a machine."""

import asyncio
import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

from kernelwright.core.errors import HarnessError

WAIT_S = 3600.0
POLL_S = 0.02


@contextlib.asynccontextmanager
async def device_lock(uuid: str, wait_s: float = WAIT_S) -> AsyncIterator[None]:
    """Hold the device; two processes timing on one GPU at once would double every figure.

    Raises HarnessError when another process keeps it longer than ``wait_s``.
    """
    handle = os.open(lock_path(uuid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    start = monotonic()
    try:
        while not _taken(handle):
            if monotonic() - start > wait_s:
                raise HarnessError(f"the device {uuid} was kept by another process for {wait_s:g} s")
            await asyncio.sleep(POLL_S)
        yield
    finally:
        os.close(handle)


def lock_path(uuid: str) -> Path:
    """The lock's file: one for all users of the machine."""
    return Path(tempfile.gettempdir()) / f"kernelwright-device-{re.sub(r'[^A-Za-z0-9]+', '-', uuid)}.lock"


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
