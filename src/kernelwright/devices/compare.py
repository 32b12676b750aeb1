"""Comparing an output with the right values, and saying what is wrong in one line. Host arrays only."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isnan, nan
from random import SystemRandom
from typing import Final

import numpy as np
import numpy.typing as npt

from kernelwright.devices.base import Array, Tolerance

# Bits of a value, a quiet NaN, a huge finite number; the low 6 bits are free for a payload.
_POISONED_FLOATS: Final = {
    "float64": (64, 0x7FF8_0000_0000_0000, 0x7FE0_0000_0000_0000),
    "float32": (32, 0x7FC0_0000, 0x7F00_0000),
    "float16": (16, 0x7E00, 0x7B80),
    "bfloat16": (16, 0x7FC0, 0x7F00),
}
_CHUNK = 1 << 20  # elements compared at once: bounds the float64 temporaries
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Comparison:
    """Result for one output. ``wrong`` counts values out of tolerance; ``first`` is the index of the first.

    ``max_error`` is the largest absolute error over values that are finite on both sides, ``worst`` the largest
    in multiples of the tolerance.
    """

    total: int
    wrong: int
    unwritten: int
    max_error: float
    first: tuple[int, ...] = ()
    got: float = nan
    expected: float = nan
    worst: float = 0.0

    @property
    def nothing_written(self) -> bool:
        """Whether every value is what was there before the run."""
        return 0 < self.total == self.unwritten

    def message(self, output: str) -> str:
        """What is wrong, for a model to act on; empty when nothing is."""
        if self.wrong == 0:
            return ""
        if self.nothing_written:
            return f"none of the {self.total} values of {output} was ever written"
        place = ", ".join(map(str, self.first))
        text = (
            f"{self.wrong} of {self.total} values of {output} wrong, first at [{place}]: "
            f"got {self.got:.6g}, expected {self.expected:.6g}; worst error {self.max_error:.3g}"
        )
        if self.unwritten:
            text += f"; {self.unwritten} values were never written"
        return text


def storage_dtype(dtype: str) -> np.dtype[np.generic]:
    """NumPy dtype that holds a buffer of ``dtype``: bfloat16, which NumPy lacks, is held as its bits."""
    return np.dtype(np.uint16 if dtype == "bfloat16" else dtype)


def to_storage(array: Array, dtype: str) -> Array:
    """C-contiguous host array in the storage dtype; floats become bfloat16 by rounding to nearest even."""
    array = np.asarray(array)
    if dtype == "bfloat16" and array.dtype != np.uint16:
        if (
            array.dtype.itemsize == 2 and array.dtype.kind != "f"
        ):  # an extension type such as ml_dtypes.bfloat16
            array = array.view(np.uint16)
        else:
            bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
            rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
            array = np.where(np.isnan(array), np.uint16(0x7FC0), rounded)
    return np.ascontiguousarray(array, storage_dtype(dtype))


def to_float64(array: Array, dtype: str) -> npt.NDArray[np.float64]:
    """Values of a buffer in float64."""
    if dtype == "bfloat16" and array.dtype == np.uint16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


POISONS: Final = 3
"""Kinds of patterns that :func:`poison` gives: NaN, very large, very negative."""
_PAYLOADS: Final = 61  # of each kind


def draw_poisons(input_sets: Iterable[int]) -> list[int]:
    """Numbers for :func:`poison`, one for a run on each of these input sets.

    Drawn, so that no run can be told by what lies in its outputs; but no two runs get the same payload while there are
    others, and both runs on equal inputs and few runs on any get all kinds.
    """
    draw = SystemRandom()
    payloads: list[int] = []
    kinds: dict[int, list[int]] = {}
    numbers: list[int] = []
    used = [0] * POISONS
    for input_set in input_sets:
        left = kinds.setdefault(input_set, [])
        left += [] if left else draw.sample(range(POISONS), POISONS)
        payloads += [] if payloads else draw.sample(range(_PAYLOADS), _PAYLOADS)
        kind = min(left, key=used.__getitem__)
        left.remove(kind)
        used[kind] += 1
        numbers.append(kind * _PAYLOADS + payloads.pop())
    return numbers


def poison(dtype: str, number: int) -> int:
    """An 8-byte pattern that fills an output before a run, by a number that :func:`draw_poisons` gives.

    Floats get NaN, a huge or a hugely negative number: a maximum ignores NaN and a minimum a huge number, so one kind
    alone would let them use what nobody wrote.
    """
    kind, payload = number // _PAYLOADS % POISONS, number % _PAYLOADS + 1
    if dtype not in _POISONED_FLOATS:
        return (0xA5 ^ payload) * 0x0101_0101_0101_0101
    bits, nan, huge = _POISONED_FLOATS[dtype]
    value = (nan, huge, huge | 1 << (bits - 1))[kind] | payload
    repeated: int = value * (((1 << 64) - 1) // ((1 << bits) - 1))
    return repeated


def compare(
    got: Array, expected: Array, dtype: str, tolerance: Tolerance, poison_pattern: int | None = None
) -> Comparison:
    """Compare one output with its right values under ``tolerance``, in float64.

    A value is right where ``|got - expected| <= atol + rtol * |expected|``; where the expected value is not
    finite, the value must not be finite either. ``poison_pattern`` is what :func:`poison` gave before the run.
    Raises ValueError when the shapes differ: the harness gave the wrong arrays.
    """
    if got.shape != np.shape(expected):
        raise ValueError(f"an output of shape {got.shape} is compared with shape {np.shape(expected)}")
    flat_got, flat_expected = got.reshape(-1), np.asarray(expected).reshape(-1)
    marker = None
    if poison_pattern is not None:
        marker = np.array([poison_pattern], np.uint64).view(f"u{got.dtype.itemsize}")[0]
    wrong = unwritten = 0
    largest = worst = 0.0
    first = -1
    for at in range(0, flat_got.size, _CHUNK):
        raw = flat_got[at : at + _CHUNK]
        bad, error, multiple = _wrong_values(
            to_float64(raw, dtype), flat_expected[at : at + _CHUNK], tolerance
        )
        largest, worst = max(largest, error), max(worst, multiple)
        count = int(np.count_nonzero(bad))
        if count and first < 0:
            first = at + int(np.argmax(bad))
        if count and marker is not None:
            unwritten += int(np.count_nonzero(bad & (raw.view(marker.dtype) == marker)))
        wrong += count
    if wrong == 0:
        return Comparison(flat_got.size, 0, 0, largest, worst=worst)
    index = tuple(int(i) for i in np.unravel_index(first, got.shape)) if got.shape else ()
    value = float(to_float64(flat_got[first : first + 1], dtype)[0])
    expected_value = float(flat_expected[first])
    return Comparison(flat_got.size, wrong, unwritten, largest, index, value, expected_value, worst)


def _wrong_values(got: Array, expected: Array, tolerance: Tolerance) -> tuple[Mask, float, float]:
    """Which values are wrong; the largest error, absolute and in multiples of what is allowed."""
    expected = expected.astype(np.float64, copy=False)
    finite, should = np.isfinite(got), np.isfinite(expected)
    both = finite & should
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = np.abs(got - expected)
        allowed = tolerance.atol + tolerance.rtol * np.abs(expected)
        bad = (finite != should) | (both & (error > allowed))
        multiples = np.where(error > 0, error / allowed, 0.0)
    largest, worst = (float(np.max(x, where=both, initial=0.0)) for x in (error, multiples))
    return bad, _number(largest), _number(worst)


def _number(value: float) -> float:
    return inf if isnan(value) else value  # NaN after an overflow


def root_mean_square(expected: Array) -> float:
    """RMS of the finite values, which some problems scale their tolerance by; 0 when there are none."""
    values = np.asarray(expected, np.float64)
    values = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
