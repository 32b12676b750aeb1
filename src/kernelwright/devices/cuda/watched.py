"""What a candidate must leave alone: guard bands around every buffer, contents of inputs, bits of equal runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelwright.core.outcome import Check, Status
from kernelwright.devices.cuda.buffers import Guarded
from kernelwright.devices.cuda.casedata import InputSet
from kernelwright.devices.cuda.gpu import Gpu, Rows
from kernelwright.devices.cuda.module import Constant
from kernelwright.devices.cuda.operations import CandidateFailed, Operation
from kernelwright.devices.cuda.verdict import Mismatch, outside_write


@dataclass(frozen=True)
class Slot:
    """Buffers of one run and the plan's launches on them. ``written``: outputs, ``inout`` copies, scratch."""

    index: int
    inputs: InputSet
    written: Mapping[str, Guarded]
    launches: tuple[Operation, ...]


class Watched:
    """Guard bands and inputs of some slots, and a module's constants, which are taken for inputs here.

    Its result rows: one a guarded buffer, then one an input. Bands stay damaged, so that they are looked at once, at the
    end. What an input held is known to who reads it, and can be put back: inputs are looked at after runs too.
    """

    def __init__(
        self, slots: Sequence[Slot], outputs: Sequence[str], constants: Sequence[Constant] = ()
    ) -> None:
        self._guarded: dict[int, tuple[str, Guarded]] = {}
        self._inputs: dict[int, tuple[str, Guarded, int]] = {}
        for slot in slots:
            for name, held in slot.written.items():
                self._add(f"{'output' if name in outputs else 'scratch'} {name!r}", held)
            for name, held in slot.inputs.arrays.items():
                self._add(f"input {name!r}", held)
                self._inputs[held.base] = (f"input {name!r}", held, slot.inputs.fingerprints[name])
        for name, held, fingerprint in constants:
            self._inputs[held.base] = (f"constant {name!r}", held, fingerprint)

    def __len__(self) -> int:
        """Number of result rows."""
        return len(self._guarded) + len(self._inputs)

    def fill(self, gpu: Gpu, canary: bytes) -> list[Operation]:
        """Write canaries around every buffer."""
        return gpu.trusted.guard_fill(self._held, canary)

    @property
    def inputs(self) -> int:
        """Number of result rows of the inputs alone."""
        return len(self._inputs)

    @cached_property
    def input_bytes(self) -> int:
        """Bytes of all inputs."""
        return sum(held.nbytes for _, held, _ in self._inputs.values())

    def look(self, gpu: Gpu, row: int) -> list[Operation]:
        """Look at the inputs alone; the result rows begin at ``row``."""
        return gpu.trusted.hash([held for _, held, _ in self._inputs.values()], gpu.row(row))

    def operations(self, gpu: Gpu, canary: bytes, row: int) -> list[Operation]:
        """Look for damage; the result rows begin at ``row``."""
        bands = gpu.trusted.guard_check(self._held, canary, gpu.row(row))
        return bands + self.look(gpu, row + len(self._guarded))

    def judge(self, rows: Rows, place: str, side: str) -> None:
        """Raise CandidateFailed when something was changed."""
        bands, inputs = rows[: len(self._guarded)], rows[len(self._guarded) :]
        if not bands["bad"].any():
            self.judge_inputs(inputs, place, side)
            return
        for (label, held), row in zip(self._guarded.values(), bands, strict=True):
            found = Mismatch.of(row)
            if found.bad:
                reason = outside_write(place, label, held, found.bad, found.first)
                raise CandidateFailed(Status.WRONG, reason, Check.GUARD_BANDS, side)

    def judge_inputs(self, rows: Rows, place: str, side: str) -> None:
        """Raise CandidateFailed when an input was changed."""
        if np.array_equal(rows["bad"], self._fingerprints):
            return
        for (label, _, fingerprint), row in zip(self._inputs.values(), rows, strict=True):
            if int(row["bad"]) != fingerprint:
                reason = f"{place}: changed its {label}"
                raise CandidateFailed(Status.WRONG, reason, Check.INPUTS_UNCHANGED, side)

    @cached_property
    def _fingerprints(self) -> Rows:
        return np.array([fingerprint for _, _, fingerprint in self._inputs.values()], dtype=np.uint64)

    @cached_property
    def _held(self) -> list[Guarded]:
        return [held for _, held in self._guarded.values()]

    def _add(self, label: str, held: Guarded) -> None:
        """Runs share inputs and large outputs: once each."""
        self._guarded.setdefault(held.base, (label, held))


class Repeats:
    """Hashes of one candidate's outputs: equal inputs must give equal bits, whatever buffers held before.

    Poison in outputs and scratch, canaries around buffers and addresses differ between the runs compared, so an
    output that depends on memory never written, on what lies outside its buffers, or on a race, shows.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[bytes, ...], tuple[list[int], str]] = {}

    def judge(self, slot: Slot, hashes: list[int], place: str, side: str) -> None:
        """Compare with the first run on the same input set. Raises CandidateFailed."""
        first, where = self._seen.setdefault(slot.inputs.keys, (hashes, place))
        if first == hashes:
            return
        reason = (
            f"{place}: other output than in {where} on the same inputs: a race, a read of memory never written or"
            " outside a buffer, or atomics in float (then say atomic_noise = true in the plan)"
        )
        raise CandidateFailed(Status.UNSTABLE, reason, Check.REPEAT, side)
