"""Where buffers lie in the memory files that the runner maps."""

import mmap
import secrets
from dataclasses import dataclass, field
from hashlib import shake_128
from math import prod

from kernelwright.devices.base import Buffer
from kernelwright.devices.compare import storage_dtype

ALIGNMENT = 64
"""Buffers begin at a multiple of this: the widest vector access of any CPU or GPU."""


@dataclass(frozen=True)
class Region:
    """One buffer in a file. It ends, up to its alignment, at the end of its last page: a guard page follows.

    ``canary`` is the key of the bytes before and behind the buffer, which differ from place to place. It stays in
    this process, which writes and looks at them: a candidate can neither compute nor copy what belongs there.
    All other fields are as the runner reads them (native/runtime/job.h).
    """

    name: str
    dtype: str
    file_offset: int
    map_bytes: int
    data_offset: int
    nbytes: int
    writable: bool
    required: bool
    canary: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)

    @property
    def start(self) -> int:
        """Offset of the first byte of the buffer in the file."""
        return self.file_offset + self.data_offset

    @property
    def element_bytes(self) -> int:
        """Size of one element."""
        return storage_dtype(self.dtype).itemsize

    def write_canaries(self, memory: memoryview) -> None:
        """Into the mapped file, before a run."""
        before, behind = self._around()
        memory[before], memory[behind] = self._canaries()

    def canaries_intact(self, memory: memoryview) -> bool:
        """Whether nobody wrote around the buffer in the mapped file."""
        before, behind = self._around()
        return (bytes(memory[before]), bytes(memory[behind])) == self._canaries()

    def _around(self) -> tuple[slice, slice]:
        return slice(self.file_offset, self.start), slice(
            self.start + self.nbytes, self.file_offset + self.map_bytes
        )

    def _canaries(self) -> tuple[bytes, bytes]:
        stream = shake_128(self.canary).digest(self.map_bytes - self.nbytes)
        return stream[: self.data_offset], stream[self.data_offset :]

    def line(self, fd: int) -> str:
        """The region in a job."""
        return (
            f"region {self.name} {self.dtype} {fd} {self.file_offset} {self.map_bytes} {self.data_offset}"
            f" {self.nbytes} {self.element_bytes} {int(self.writable)} {int(self.required)}"
        )


class FileLayout:
    """Places buffers one behind the other in a file."""

    def __init__(self) -> None:
        self.size = 0
        self.regions: list[Region] = []

    def add(self, buffer: Buffer, *, writable: bool) -> Region:
        """Place a buffer at the end of the file."""
        nbytes = prod(buffer.shape) * storage_dtype(buffer.dtype).itemsize
        room = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
        mapped = -(-room // mmap.PAGESIZE) * mmap.PAGESIZE
        region = Region(
            buffer.name,
            buffer.dtype,
            self.size,
            mapped,
            mapped - room,
            nbytes,
            writable,
            buffer.role == "out",
        )
        self.size += mapped
        self.regions.append(region)
        return region
