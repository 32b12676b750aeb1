"""Inputs and right outputs of the cases, kept on the device across candidates, least recently used first out."""

import math
import secrets
import struct
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod
from typing import Final

import numpy as np

from kernelwright.core.case import ITEM_BYTES, CaseInputs
from kernelwright.core.errors import ProblemError
from kernelwright.devices.base import Array, Buffer, CaseSource, Tolerance
from kernelwright.devices.cuda.buffers import PAGE, Guarded
from kernelwright.devices.cuda.gpu import SETTLE_S, Gpu
from kernelwright.devices.cuda.reference import Reference, bytes_of
from kernelwright.devices.cuda.trusted import Hidden

MOVED: Final = 64 << 20
"""Up to this many bytes an input is moved between duels; where a larger one lies averages out over its pages."""
APART: Final = 1 << 30
"""At most so far from where they were, in bytes."""
DRAWN_AT_ONCE: Final = 4
"""Input sets: more would hold too much of the host's memory for large cases."""


def buffer_bytes(buffer: Buffer) -> int:
    """Bytes of a dense buffer. Raises ProblemError for a dtype that the device does not know."""
    if buffer.dtype not in ITEM_BYTES:
        known = ", ".join(ITEM_BYTES)
        raise ProblemError(
            f"argument {buffer.name!r} has dtype {buffer.dtype!r}; the cuda device knows {known}"
        )
    return prod(buffer.shape) * ITEM_BYTES[buffer.dtype]


@dataclass(frozen=True)
class InputSet:
    """One input set on the device: pristine inputs with their fingerprints, hidden right outputs, tolerances."""

    arrays: dict[str, Guarded]
    fingerprints: dict[str, int]
    expected: dict[str, Hidden]
    tolerance: dict[str, Tolerance]

    @cached_property
    def keys(self) -> tuple[bytes, ...]:
        """Keys of the outputs: hashes of outputs can be compared under the same keys only."""
        return tuple(hidden.key for hidden in self.expected.values())


@dataclass
class CaseData:
    """All that is kept of one case."""

    case: str
    buffers: tuple[Buffer, ...]
    sets: list[InputSet] = field(default_factory=list)

    @cached_property
    def outputs(self) -> tuple[Buffer, ...]:
        """Arguments that a candidate writes."""
        return tuple(b for b in self.buffers if b.role in {"out", "inout"})

    @property
    def nbytes(self) -> int:
        """Device bytes held."""
        held = sum(bytes_of(s.expected, self.buffers) for s in self.sets)
        return held + sum(a.total for s in self.sets for a in s.arrays.values())


class CaseStore:
    """Cases by name, for one source at a time; another source empties it."""

    def __init__(self, gpu: Gpu, reference: Reference) -> None:
        self.gpu = gpu
        self.reference = reference
        self._source: CaseSource | None = None
        self._cases: OrderedDict[str, CaseData] = OrderedDict()
        self._current = ""
        gpu.pool.make_room = self._make_room

    def get(self, source: CaseSource, case: str, sets: int) -> CaseData:
        """The case with at least ``sets`` input sets. Raises ProblemError when the problem's data do not fit."""
        if source is not self._source:
            self.clear()
            self._source = source
        self._current = case
        data = self._cases.get(case)
        if data is None:
            data = self._cases[case] = CaseData(case, source.buffers(case))
        self._cases.move_to_end(case)
        for inputs in _drawn(source, case, range(len(data.sets), sets)):
            data.sets.append(self._prepare(source, data, inputs))
            self._shrink()
        return data

    def move(self, case: str) -> None:
        """Put the inputs of a case elsewhere on the device, where there is memory: where they lie is luck.

        On an H200 medians of a matrix product of odd sizes differed by 0.7 % between processes, by the order in which
        these had allocated. No session may be at work on the case.
        """
        data = self._cases.get(case)
        if data is None:
            return
        with self._spaced():
            old = []
            for index, entry in enumerate(data.sets):
                moved = {name: self._copied(held) for name, held in entry.arrays.items()}
                old += [held.base for name, held in entry.arrays.items() if moved[name] is not held]
                data.sets[index] = replace(entry, arrays=moved)
        for base in old:
            self.gpu.driver.free(base)

    @contextmanager
    def _spaced(self) -> Iterator[None]:
        """Memory of a random size is taken meanwhile: what is allocated behind it lies at other places every time."""
        most = min(APART, self.gpu.driver.free_bytes() // 4) // PAGE
        gap = self.gpu.pool.spare(PAGE * secrets.randbelow(most + 1))
        try:
            yield
        finally:
            if gap is not None:
                self.gpu.driver.free(gap.base)

    def _copied(self, held: Guarded) -> Guarded:
        copy = self.gpu.pool.spare(held.nbytes) if held.nbytes <= MOVED else None
        if copy is None:
            return held
        self.gpu.driver.copy(copy.pointer, held.pointer, held.nbytes)
        return copy

    def drop(self, case: str) -> None:
        """Forget a case: its inputs were changed."""
        data = self._cases.pop(case, None)
        for entry in data.sets if data else ():
            for array in entry.arrays.values():
                self.gpu.driver.free(array.base)
            for hidden in entry.expected.values():
                self.gpu.driver.free(hidden.pointer)

    def clear(self) -> None:
        """Forget all cases."""
        for case in list(self._cases):
            self.drop(case)

    def _make_room(self) -> bool:
        others = [case for case in self._cases if case != self._current]
        for case in others:
            self.drop(case)
        return bool(others)

    def _shrink(self) -> None:
        while sum(d.nbytes for d in self._cases.values()) > self.gpu.budget and len(self._cases) > 1:
            oldest = next(case for case in self._cases if case != self._current)
            self.drop(oldest)

    def _prepare(self, source: CaseSource, data: CaseData, inputs: CaseInputs) -> InputSet:
        arrays: dict[str, Guarded] = {}
        for buffer in data.buffers:
            if buffer.role in {"in", "inout"}:
                if buffer.name not in inputs.arrays:
                    raise ProblemError(f"the inputs of case {data.case} lack {buffer.name!r}")
                arrays[buffer.name] = self._upload(inputs.arrays[buffer.name], buffer, data.case)
        fingerprints = dict(zip(arrays, self.gpu.fingerprints(list(arrays.values())), strict=True))
        expected = self.reference.expected(source, data.case, data.buffers, inputs)
        tolerance = {
            b.name: source.tolerance(data.case, b.name, self._rms(expected[b.name], prod(b.shape)))
            for b in data.outputs
        }
        return InputSet(arrays, fingerprints, expected, tolerance)

    def _upload(self, array: Array, buffer: Buffer, case: str) -> Guarded:
        dense = np.ascontiguousarray(array)
        nbytes = buffer_bytes(buffer)
        if dense.nbytes != nbytes:
            raise ProblemError(
                f"input {buffer.name!r} of case {case} has {dense.nbytes} bytes,"
                f" {nbytes} are needed ({buffer.dtype} {list(buffer.shape)})"
            )
        held = self.gpu.pool.fresh(nbytes)
        self.gpu.driver.upload(held.pointer, dense.ctypes.data, nbytes)
        return held

    def _rms(self, hidden: Hidden, count: int) -> float:
        gpu = self.gpu
        operations = [gpu.zero_rows(1), gpu.trusted.squares(hidden, count, gpu.row(0)), gpu.fetch_rows(1)]
        gpu.run(operations, SETTLE_S, gated=False)
        row = gpu.read_rows(1)[0]
        finite = int(row["first_inverted"])
        total = struct.unpack("<d", struct.pack("<Q", int(row["bad"])))[0]
        return math.sqrt(total / finite) if finite else 0.0


def _drawn(source: CaseSource, case: str, indices: range) -> Iterator[CaseInputs]:
    """Input sets in order, drawn side by side: numpy lets go of the interpreter while it draws."""
    if len(indices) < 2:
        yield from (source.inputs(case, index) for index in indices)
        return
    with ThreadPoolExecutor(min(len(indices), DRAWN_AT_ONCE)) as pool:
        yield from pool.map(partial(source.inputs, case), indices)
