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
        return foreign(set(listed), own_processes())


def foreign(listed: set[int], own: set[int]) -> set[int]:
    """Those of the listed processes that are others'.

    In a container the list may count in the host's namespace. When none of ours is in it, one of the unknown must be
    our own worker: a single one is believed to be it, so that nobody is refused the device because of himself.
    """
    unknown = {process for process in listed - own if not _is_worker(process)}
    if not listed & own and len(unknown) == 1:
        return set()
    return unknown


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
    try:
        return _WORKERS in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
