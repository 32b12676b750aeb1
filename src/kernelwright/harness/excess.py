"""What a child takes beyond its bounds, seen from the parent.

Resource limits bind each process for itself and do not count shared memory; here the whole tree is summed, and
what lies in its scratch. Looked at while a child works: some file reads, twice a second.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelwright.harness.setup import Role

PERIOD_S: Final = 0.5
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_BLOCK: Final = 512


@dataclass(frozen=True)
class Bounds:
    """Of a child and everything below it. Pages that processes share count once for each."""

    memory_bytes: int
    disk_bytes: int
    files: int = 20_000
    processes: int = 1024

    @classmethod
    def on(cls, scratch: Path, memory_bytes: int, disk_bytes: int) -> "Bounds":
        """With half of what is free on the disk of ``scratch`` at most."""
        free = shutil.disk_usage(scratch).free if scratch.exists() else 0
        return cls(memory_bytes, min(disk_bytes, free // 2))


def memory_share(role: Role, compile_workers: int) -> int:
    """Bytes that a child may take: the device worker most of the machine's, compile workers half of it together."""
    total = _PAGE * os.sysconf("SC_PHYS_PAGES")
    if role == "compile":
        return max(2 << 30, min(8 << 30, total // (2 * compile_workers)))
    return max(4 << 30, total * 3 // 4)


def excess(process: int, scratch: Path, bounds: Bounds) -> str:
    """What is too much; empty when nothing is."""
    tree = list(_tree(process))
    if len(tree) > bounds.processes:
        return f"it started more than {bounds.processes} processes"
    memory = sum(map(_resident, tree))
    if memory > bounds.memory_bytes:
        return f"it took {memory >> 20} MiB of memory, {bounds.memory_bytes >> 20} are allowed"
    return _excess_on_disk(scratch, bounds)


def killed_for_memory(counters: Path = Path("/proc/vmstat")) -> int | None:
    """How many processes Linux has ended for lack of memory, in any group; ``None`` where it does not tell."""
    try:
        found = re.search(r"^oom_kill (\d+)$", counters.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None


def _tree(process: int) -> Iterator[int]:
    """Process numbers, parents first."""
    waiting = [process]
    while waiting:
        yield (current := waiting.pop())
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{current}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):  # ended meanwhile
        return 0


def _excess_on_disk(scratch: Path, bounds: Bounds) -> str:
    files = size = 0
    waiting = [str(scratch)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files += 1
                if files > bounds.files:
                    return f"it made more than {bounds.files} files"
                with contextlib.suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    if size > bounds.disk_bytes:
        return f"it wrote {size >> 20} MiB, {bounds.disk_bytes >> 20} are allowed"
    return ""
