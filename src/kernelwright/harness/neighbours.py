"""Foreign processes on the GPU: timings beside them mean nothing, so one waits for their end, and then refuses."""

import asyncio
import os
from collections.abc import Callable, Collection
from pathlib import Path
from time import monotonic
from typing import Final

from kernelwright.core.errors import HarnessError
from kernelwright.harness.device_lock import silent

LOOK_EVERY_S: Final = 5.0
WAIT_S: Final = 300.0
_POLL_S: Final = 1.0
_WORKERS: Final = b"kernelwright.harness.worker"
_ON_GPU: Final = (b'"role": "device"', b'"device": "cuda')
"""What a device worker's setup says in its command."""

Lister = Callable[[], Collection[int] | None]


class Neighbours:
    """Looks for other users of one device. ``processes`` lists process ids on it, or ``None`` where nobody can tell.

    Workers of other harnesses are no neighbours: they keep still while this one holds the device's lock.
    """

    def __init__(
        self,
        device: str,
        processes: Lister,
        *,
        notify: Callable[[str], None] = silent,
        wait_s: float = WAIT_S,
        poll_s: float = _POLL_S,
    ) -> None:
        self._device = device
        self._processes = processes
        self._notify = notify
        self._wait_s = wait_s
        self._poll_s = poll_s
        self._looked = float("-inf")
        self._told_unknown = False

    async def wait(self) -> None:
        """Return when the device is ours alone; looks at most every :data:`LOOK_EVERY_S` seconds.

        Raises HarnessError with the process ids when that lasts too long.
        """
        if monotonic() - self._looked < LOOK_EVERY_S:
            return
        start = monotonic()
        told = False
        while others := self._others():
            names = ", ".join(map(str, sorted(others)))
            if monotonic() - start >= self._wait_s:
                raise HarnessError(
                    f"{self._device}: other processes use the GPU (pid {names}): end them, or choose another device"
                )
            if not told:
                told = True
                self._notify(f"{self._device}: waiting for other processes on the GPU (pid {names})")
            await asyncio.sleep(self._poll_s)
        self._looked = monotonic()

    def _others(self) -> set[int]:
        listed = self._processes()
        if listed is None:
            if not self._told_unknown:
                self._told_unknown = True
                self._notify(f"{self._device}: whether other processes use the GPU cannot be told here")
            return set()
        return foreign(set(listed), own_processes(), device_workers())


def foreign(listed: set[int], own: set[int], workers: int = 1) -> set[int]:
    """Those of the listed processes that are others'.

    In a container the list may count in the host's namespace. When none of ours is in it, as many of the unknown as
    there are device workers here (ours, a leaderboard's beside a campaign) are believed to be these, so that nobody is
    refused the device because of himself.
    """
    unknown = {process for process in listed - own if not _is_worker(process)}
    if not listed & own and len(unknown) <= max(1, workers):
        return set()
    return unknown


def device_workers() -> int:
    """How many workers of harnesses on this machine, as far as it is seen from here, have a GPU."""
    return sum(map(_has_gpu, (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdecimal())))


def own_processes() -> set[int]:
    """The calling process and everything below it."""
    parents: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                text = Path(entry.path, "stat").read_text(errors="replace")
                parents[int(entry.name)] = int(text.rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    own = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    return own


def _is_worker(process: int) -> bool:
    return _WORKERS in _command(process)


def _has_gpu(process: int) -> bool:
    """Not the sandbox's own process around a worker: its command has that of the worker in it."""
    command = _command(process)
    program = command.partition(b"\0")[0].rpartition(b"/")[2]
    return program.startswith(b"python") and all(part in command for part in (_WORKERS, *_ON_GPU))


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
