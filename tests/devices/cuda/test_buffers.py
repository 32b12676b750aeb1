"""Buffers between guard bands, and the pool that hands them out."""

import itertools

import pytest

from kernelwright.devices.cuda.buffers import ALIGNMENT, GUARD, LARGE, PAGE, BufferPool
from kernelwright.devices.cuda.driver import OUT_OF_MEMORY, CudaError


class Driver:
    """Hands out addresses on pages."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}

    def allocate(self, nbytes: int) -> int:
        base = PAGE * (1 + sum(-(-size // PAGE) for size in self.sizes.values()))
        self.sizes[base] = nbytes
        return base


@pytest.mark.parametrize("nbytes", [0, 1, 4, 4000, LARGE - 1, LARGE, LARGE + 4, 64 << 20, (64 << 20) + 256])
def test_all_that_is_mapped_for_a_buffer_is_its_own_or_watched(nbytes: int) -> None:
    driver = Driver()
    held = BufferPool(driver, 1 << 30).acquire(nbytes)  # type: ignore[arg-type]
    assert driver.sizes[held.base] == held.total
    large = nbytes >= LARGE
    assert held.pointer % (PAGE if large else ALIGNMENT) == 0
    assert held.total % (PAGE if large else ALIGNMENT) == 0
    assert held.base + GUARD <= held.pointer
    assert held.pointer + held.nbytes + GUARD <= held.base + held.total


def test_a_released_buffer_waits_before_it_is_used_again() -> None:
    pool = BufferPool(Driver(), 1 << 30)  # type: ignore[arg-type]
    first = [pool.acquire(5000) for _ in range(3)]
    for held in first:
        pool.release(held)
    again = list(itertools.islice(iter(lambda: pool.acquire(5000), None), 3))
    assert again[0].base == first[0].base
    assert again[1].base == first[1].base
    assert again[2].base not in {held.base for held in first}


def test_a_spare_buffer_takes_only_what_is_free() -> None:
    class Full(Driver):
        def __init__(self, code: int) -> None:
            super().__init__()
            self.code = code

        def allocate(self, nbytes: int) -> int:
            raise CudaError(self.code, "CUDA_ERROR", f"allocating {nbytes} bytes")

    def nobody() -> bool:
        raise AssertionError("others had to make room")

    pool = BufferPool(Full(OUT_OF_MEMORY), 1 << 30)  # type: ignore[arg-type]
    pool.make_room = nobody
    assert pool.spare(5000) is None
    with pytest.raises(CudaError, match="allocating"):
        BufferPool(Full(719), 1 << 30).spare(5000)  # type: ignore[arg-type]
    room = BufferPool(Driver(), 1 << 30).spare(5000)  # type: ignore[arg-type]
    assert room is not None
    assert room.nbytes == 5000
