"""Whether runs on equal inputs left equal bits."""

from hashlib import blake2b

from kernelwright.devices.base import Array
from kernelwright.devices.cpu.job import PlannedRun


class Repeats:
    """Outputs of the runs of one case so far, by input set. The runs differ in poison and order of threads."""

    def __init__(self) -> None:
        self._first: dict[tuple[int, str], tuple[int, bytes]] = {}

    def difference(self, run: PlannedRun, output: str, got: Array) -> str:
        """Why this output is no repetition; empty when it is one, or the first of its input set."""
        digest = blake2b(got.data, digest_size=16).digest() if got.size else b""
        number, first = self._first.setdefault((run.input_set, output), (run.number, digest))
        if digest == first:
            return ""
        return (
            f"{output} differs in its bits from that of run {number}, which had equal inputs but other contents of"
            " outputs and scratch and another order of threads: a race, memory that nobody wrote, or atomics on"
            " floats (if it is these: atomic_noise = true in the plan)"
        )
