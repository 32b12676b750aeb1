"""Which runs of a case share a process, and whether the machine has the memory and the files for them."""

import mmap
import os
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path

from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import Buffer
from kernelwright.devices.cpu.data import set_bytes
from kernelwright.devices.cpu.job import PlannedRun, bytes_per_run, shadow_bytes
from kernelwright.devices.cpu.verdict import Verdict

# Float64 arrays as large as all buffers that are alive at once while inputs are made and outputs compared.
_COPIES = 2
_EDGES = 1 << 20  # bytes that the ends of pages may add to a file


def batches(runs: Sequence[PlannedRun], most_runs: int, most_sets: int) -> Iterator[list[PlannedRun]]:
    """Runs in batches of at most ``most_runs``, each on at most ``most_sets`` input sets.

    Where not all sets fit, the runs on a set follow each other, so that it is made once.
    """
    if len({run.input_set for run in runs}) > most_sets:
        runs = sorted(runs, key=lambda run: run.input_set)
    batch: list[PlannedRun] = []
    for run in runs:
        sets = {r.input_set for r in batch} | {run.input_set}
        if len(batch) == most_runs or len(sets) > most_sets:
            yield batch
            batch = []
        batch.append(run)
    if batch:
        yield batch


def memory_fault(
    case: str, buffers: Sequence[Buffer], output_bytes: int, new_sets: int, *, checked: bool = False
) -> Verdict | None:
    """Why a batch fits neither memory nor files: what a problem needs itself is no fault of the candidate."""
    available, largest = available_memory(), largest_file()
    inputs = new_sets * (set_bytes(buffers) + _COPIES * 8 * sum(prod(b.shape) for b in buffers))
    needs = (
        ("inputs and right outputs", "bytes of memory", inputs, available),
        ("the checked mode", "bytes of memory", shadow_bytes(buffers) if checked else 0, available),
        ("inputs", "bytes in a file", set_bytes(buffers, outputs=False), largest),
        ("outputs", "bytes in a file", bytes_per_run(buffers), largest),
    )
    for who, what, needed, limit in needs:
        if needed > limit:
            reason = f"not run: case {case}: {who}: {needed} {what} are needed, {limit} are to be had"
            return Verdict(Status.NOT_RUN, reason)
    if output_bytes > min(available, largest + _EDGES):
        free = min(available, largest)
        reason = f"case {case}: out of memory: outputs and scratch need {output_bytes} bytes, {free} are free"
        return Verdict(Status.CRASHED, reason, Check.RUN_LIMITS)
    return None


def available_memory() -> int:
    """Bytes that can be had without swapping, as the kernel estimates, and within this process's own limits."""
    size, data = _taken()
    room = [_free_memory()]
    for kind, used in ((resource.RLIMIT_AS, size), (resource.RLIMIT_DATA, data)):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            room.append(max(0, soft - used))
    return min(room)


def _taken() -> tuple[int, int]:
    """Bytes of this process's address space, and of what is private in it; 0 where ``/proc`` does not tell."""
    try:
        pages = [int(number) for number in Path("/proc/self/statm").read_text().split()]
    except OSError:
        return 0, 0
    return pages[0] * mmap.PAGESIZE, pages[5] * mmap.PAGESIZE


def largest_file() -> int:
    """Bytes that a file of arrays may have: the limit on files holds for those in memory too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(0, soft - _EDGES)


def _free_memory() -> int:
    """What the kernel estimates; all memory where it does not tell."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
