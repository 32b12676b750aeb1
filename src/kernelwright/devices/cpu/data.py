"""Inputs and right outputs of a problem's cases, kept between candidates."""

import fcntl
import os
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod

import numpy as np

from kernelwright.core.errors import HarnessError
from kernelwright.devices.base import Array, Buffer, CaseSource
from kernelwright.devices.compare import storage_dtype, to_storage
from kernelwright.devices.cpu.layout import FileLayout, Region

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


@dataclass(frozen=True)
class CaseData:
    """One input set of a case. ``fd`` is a sealed memory file: nobody, the candidate included, can change it.

    ``inputs`` says where each ``in`` and ``inout`` array lies in it; ``expected`` are the right outputs.
    """

    fd: int
    inputs: Mapping[str, Region]
    expected: Mapping[str, Array]
    nbytes: int


class DataCache:
    """Input sets by case and index, the least recently used dropped beyond ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._source: CaseSource | None = None
        self._kept: OrderedDict[tuple[str, int], CaseData] = OrderedDict()

    def get(self, source: CaseSource, case: str, indexes: Collection[int]) -> dict[int, CaseData]:
        """Data of input sets, made on first use and kept at least until the next call. Another source empties the cache.

        What is asked for at once is never dropped for one another, even beyond ``max_bytes``: a dropped set's
        file is closed, and its number may come to stand for another file.
        """
        if source is not self._source:
            self.clear()
            self._source = source
        wanted = {(case, index) for index in indexes}
        self._make_room(set_bytes(source.buffers(case)) * len(wanted - self._kept.keys()), wanted)
        for key in sorted(wanted):
            if key not in self._kept:
                self._kept[key] = _make(source, *key)
            self._kept.move_to_end(key)
        return {index: self._kept[case, index] for index in indexes}

    def fitting(self, buffers: Sequence[Buffer]) -> int:
        """How many input sets of a case with these buffers are kept at once."""
        return max(1, self._max_bytes // max(1, set_bytes(buffers)))

    def missing(self, source: CaseSource, case: str, indexes: Collection[int]) -> int:
        """How many of these input sets would have to be made."""
        return sum(source is not self._source or (case, index) not in self._kept for index in set(indexes))

    def _make_room(self, nbytes: int, wanted: AbstractSet[tuple[str, int]]) -> None:
        """Drop the least recently used, but none that is wanted, until ``nbytes`` more fit."""
        for key in [key for key in self._kept if key not in wanted]:
            if sum(d.nbytes for d in self._kept.values()) + nbytes <= self._max_bytes:
                return
            os.close(self._kept.pop(key).fd)

    def clear(self) -> None:
        """Drop everything."""
        for data in self._kept.values():
            os.close(data.fd)
        self._kept.clear()
        self._source = None


def set_bytes(buffers: Sequence[Buffer], *, outputs: bool = True) -> int:
    """Bytes that one input set of a case takes: inputs as the device gets them, right outputs in float64."""
    layout = FileLayout()
    for buffer in buffers:
        if buffer.role in {"in", "inout"}:
            layout.add(buffer, writable=False)
    return layout.size + sum(prod(b.shape) * 8 for b in buffers if outputs and b.role in {"out", "inout"})


def _make(source: CaseSource, case: str, index: int) -> CaseData:
    buffers = source.buffers(case)
    inputs = source.inputs(case, index)
    wanted = {b.name: b for b in buffers if b.role in {"in", "inout"}}
    arrays = {name: _checked(inputs.arrays, buffer) for name, buffer in wanted.items()}
    expected = source.expected(case, inputs.arrays, np)
    outputs = {b.name: _expected(expected, b) for b in buffers if b.role in {"out", "inout"}}
    layout = FileLayout()
    regions = {name: layout.add(buffer, writable=False) for name, buffer in wanted.items()}
    fd = os.memfd_create("kernelwright-inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, layout.size)
    for name, array in arrays.items():
        write_all(fd, array.reshape(-1).view(np.uint8).data, regions[name].start)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    return CaseData(fd, regions, outputs, layout.size + sum(a.nbytes for a in outputs.values()))


def _checked(arrays: Mapping[str, Array], buffer: Buffer) -> Array:
    if buffer.name not in arrays:
        raise HarnessError(f"the problem gives no input {buffer.name!r}")
    array = to_storage(arrays[buffer.name], buffer.dtype)
    if array.shape != buffer.shape:
        raise HarnessError(f"input {buffer.name!r} has shape {array.shape}, {buffer.shape} expected")
    return array


def _expected(expected: Mapping[str, Array], buffer: Buffer) -> Array:
    if buffer.name not in expected:
        raise HarnessError(f"the problem's reference gives no output {buffer.name!r}")
    array = np.asarray(expected[buffer.name], np.float64)
    if array.shape != buffer.shape:
        raise HarnessError(
            f"the reference's {buffer.name!r} has shape {array.shape}, {buffer.shape} expected"
        )
    return array


def write_all(fd: int, data: memoryview, offset: int) -> None:
    """Write all of ``data``; one call to the kernel writes at most 2 GiB."""
    while data:
        written = os.pwrite(fd, data, offset)
        data, offset = data[written:], offset + written


def read_array(memory: memoryview, region: Region, buffer: Buffer) -> Array:
    """View of a buffer in a mapped file."""
    dtype = storage_dtype(buffer.dtype)
    count = region.nbytes // dtype.itemsize
    return np.frombuffer(memory, dtype, count, region.start).reshape(buffer.shape)
