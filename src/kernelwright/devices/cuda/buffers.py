"""Device buffers with guard bands on both sides, and a pool that hands out changing addresses."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelwright.devices.cuda.driver import OUT_OF_MEMORY, CudaError, Driver

GUARD = 4096
ALIGNMENT = 256
WORD = 4
PAGE = 2 << 20
"""Large buffers begin on a page of the GPU's memory, as allocations of users do: a buffer over one page more takes
longer to translate addresses for. The driver maps whole pages: theirs are allocated as a whole, so that all of them is
watched."""
LARGE = 1 << 20
SMALL = 1 << 16
"""Up to this many bytes a buffer's place matters: how long atomics to a few counters take depends on which parts of the
L2 cache they fall into (by 10 % for 2 KiB on an H200, docs/trust.md). Larger ones are spread over all parts."""


class OutOfDeviceMemory(CudaError):  # noqa: N818 - reads as what happened
    """No device memory left, even after the caches were given back."""


@dataclass(frozen=True)
class Guarded:
    """``nbytes`` for a candidate at ``pointer`` between two guard bands, in an allocation that begins at ``base``.

    ``pointer`` is aligned to 256 bytes, that of a large buffer to a page. The bands are all else of the allocation:
    ``lead`` bytes before the first byte, and from the very last one to ``base + total``.
    """

    base: int
    nbytes: int
    capacity: int

    @property
    def pointer(self) -> int:
        """Address that a candidate gets."""
        return self.base + self.lead

    @property
    def lead(self) -> int:
        """Bytes of the first band."""
        return PAGE if self.capacity >= LARGE else GUARD

    @property
    def total(self) -> int:
        """Bytes of the allocation."""
        return self.lead + self.capacity + GUARD


def lying_at(address: int, nbytes: int) -> Guarded:
    """Memory of somebody else, to be looked at as a buffer's contents are; there are no bands around it.

    Whole words are looked at: from the one on that the address lies in.
    """
    start = address - address % WORD
    return Guarded(start - GUARD, _round_up(address + nbytes - start, WORD), ALIGNMENT)


class BufferPool:
    """Guarded buffers. Released blocks are reused oldest first, so that addresses rotate.

    ``make_room`` is called once when memory runs out; it returns whether it gave anything back.
    """

    def __init__(self, driver: Driver, budget: int) -> None:
        self.driver = driver
        self.budget = budget
        self.cached = 0
        self.make_room: Callable[[], bool] = lambda: False
        self._free: dict[int, deque[int]] = {}

    def acquire(self, nbytes: int) -> Guarded:
        """A buffer whose contents are left over. Raises OutOfDeviceMemory."""
        capacity = _capacity(nbytes)
        blocks = self._free.get(capacity)
        # Two spare blocks are kept waiting: the next buffer is then not where the last one was.
        if blocks and len(blocks) > 1:
            self.cached -= capacity
            return Guarded(blocks.popleft(), nbytes, capacity)
        try:
            return self.fresh(nbytes)
        except OutOfDeviceMemory:
            if blocks:
                self.cached -= capacity
                return Guarded(blocks.popleft(), nbytes, capacity)
            raise

    def fresh(self, nbytes: int) -> Guarded:
        """A buffer in an allocation of its own, to be freed by its ``base``. Raises OutOfDeviceMemory."""
        planned = Guarded(0, nbytes, _capacity(nbytes))
        return replace(planned, base=self.allocate(planned.total))

    def spare(self, nbytes: int) -> Guarded | None:
        """As :meth:`fresh`, but only of what is free: nothing makes room for it."""
        planned = Guarded(0, nbytes, _capacity(nbytes))
        try:
            return replace(planned, base=self.driver.allocate(planned.total))
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            return None

    def release(self, buffer: Guarded) -> None:
        """Take a buffer back; nothing in the stream may use it any more."""
        if self.cached + buffer.capacity > self.budget:
            self.driver.free(buffer.base)
            return
        self.cached += buffer.capacity
        self._free.setdefault(buffer.capacity, deque()).append(buffer.base)

    def allocate(self, nbytes: int) -> int:
        """Plain device memory, after giving caches back where needed. Raises OutOfDeviceMemory."""
        try:
            return self.driver.allocate(nbytes)
        except CudaError as error:
            if error.code != OUT_OF_MEMORY:
                raise
        self.trim()
        self.make_room()
        try:
            return self.driver.allocate(nbytes)
        except CudaError as error:
            raise OutOfDeviceMemory(error.code, error.name, f"allocating {nbytes} bytes") from None

    def trim(self) -> None:
        """Free all waiting blocks."""
        for blocks in self._free.values():
            for base in blocks:
                self.driver.free(base)
        self._free.clear()
        self.cached = 0


def _capacity(nbytes: int) -> int:
    """Size class: powers of two for small buffers; large ones end with their second band on a page."""
    small = max(ALIGNMENT, 1 << max(nbytes - 1, 0).bit_length())
    return small if small < LARGE else _round_up(nbytes + GUARD, PAGE) - GUARD


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
