"""Where buffers lie in the memory files that the runner maps."""

import mmap
import secrets
import sys
from dataclasses import dataclass
from math import prod

from kernelwright.devices.base import Buffer
from kernelwright.devices.compare import storage_dtype

ALIGNMENT = 64
"""Buffers begin at a multiple of this: the widest vector access of any CPU or GPU."""


@dataclass(frozen=True)
class Region:
    """One buffer in a file. It ends, up to its alignment, at the end of its last page: a guard page follows.

    ``canary`` are 8 bytes that are repeated before and behind the buffer: random, so that no constant passes.
    All fields but ``start`` are as the runner reads them (native/runtime/job.h).
    """

    name: str
    dtype: str
    file_offset: int
    map_bytes: int
    data_offset: int
    nbytes: int
    writable: bool
    required: bool
    canary: int

    @property
    def start(self) -> int:
        """Offset of the first byte of the buffer in the file."""
        return self.file_offset + self.data_offset

    @property
    def element_bytes(self) -> int:
        """Size of one element."""
        return storage_dtype(self.dtype).itemsize

    def canaries_intact(self, memory: memoryview) -> bool:
        """Whether nobody wrote around the buffer in the mapped file."""
        end = self.start + self.nbytes
        around = (memory[self.file_offset : self.start], memory[end : self.file_offset + self.map_bytes])
        return all(part == self._canaries(len(part)) for part in around)

    def _canaries(self, count: int) -> bytes:
        return (self.canary.to_bytes(8, sys.byteorder) * (-(-count // 8)))[:count]

    def line(self, fd: int) -> str:
        """The region in a job."""
        return (
            f"region {self.name} {self.dtype} {fd} {self.file_offset} {self.map_bytes} {self.data_offset}"
            f" {self.nbytes} {self.element_bytes} {int(self.writable)} {int(self.required)} {self.canary}"
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
            secrets.randbits(64),
        )
        self.size += mapped
        self.regions.append(region)
        return region
