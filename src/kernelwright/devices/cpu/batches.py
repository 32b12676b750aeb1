"""Which runs of a case share a process, and whether the machine has the memory for them."""

import os
import re
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path

from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import Buffer
from kernelwright.devices.cpu.data import set_bytes
from kernelwright.devices.cpu.job import PlannedRun
from kernelwright.devices.cpu.verdict import Verdict

_COPIES = (
    4  # float64 arrays as large as all buffers, alive at once while inputs are made and outputs compared
)


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


def memory_fault(case: str, buffers: Sequence[Buffer], output_bytes: int, new_sets: int) -> Verdict | None:
    """Why a batch does not fit in memory: inputs that do not are no fault of the candidate."""
    available = available_memory()
    inputs = new_sets * set_bytes(buffers) + _COPIES * 8 * sum(prod(b.shape) for b in buffers)
    if new_sets and inputs > available:
        reason = f"not run: case {case}: inputs and right outputs need {inputs} bytes of memory, {available} are free"
        return Verdict(Status.NOT_RUN, reason)
    if output_bytes > available:
        reason = (
            f"case {case}: out of memory: outputs and scratch need {output_bytes} bytes, {available} are free"
        )
        return Verdict(Status.CRASHED, reason, Check.RUN_LIMITS)
    return None


def available_memory() -> int:
    """Bytes that can be had without swapping, as the kernel estimates; all memory where it does not tell."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
