"""Result rows of the trusted kernels become a reason that a model can act on. Plain Python, no CUDA."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelwright.devices.cuda.buffers import Guarded
from kernelwright.devices.cuda.trusted import POISON

_ALL_ONES = (1 << 64) - 1


@dataclass(frozen=True)
class Mismatch:
    """What a comparison found. ``worst`` is the largest error in multiples of the tolerance.

    ``non_finite`` counts values that are finite on one side only, ``unwritten`` wrong values that are still poison.
    """

    bad: int
    first: int
    worst: float
    non_finite: int
    unwritten: int = 0

    @classmethod
    def of(cls, row: np.void) -> "Mismatch":
        """From a result row."""
        first = _ALL_ONES - int(row["first_inverted"])
        return cls(
            int(row["bad"]), first, float(row["worst"]), int(row["mask"]), unwritten=int(row["unwritten"])
        )


@dataclass(frozen=True)
class Sample:
    """The first wrong value: what the candidate gave, what is right, whether it is still the poison."""

    got: float
    expected: float
    unwritten: bool


def wrong_values(
    place: str, name: str, shape: Sequence[int], mismatch: Mismatch, sample: Sample | None = None
) -> str:
    """One line: how many values of which output are wrong, where the first is, how far off."""
    count = math.prod(shape)
    index = [int(i) for i in np.unravel_index(mismatch.first, tuple(shape) or (1,))]
    text = f"{place}: {mismatch.bad} of {count} values of {name} wrong, first at {index}"
    if sample:
        got = "nothing (never written)" if sample.unwritten else f"{sample.got:.9g}"
        text += f": got {got}, expected {sample.expected:.9g}"
    if mismatch.non_finite:
        text += f"; {mismatch.non_finite} are NaN or infinite on one side only"
    if mismatch.unwritten:
        text += f"; {mismatch.unwritten} were never written"
    if mismatch.non_finite < mismatch.bad:
        far = "infinitely far off" if mismatch.worst > 1e300 else f"{mismatch.worst:.2g} x tolerance"
        text += f"; worst error {far}"
    return text


def outside_write(place: str, label: str, buffer: Guarded, damaged: int, first: int) -> str:
    """One line about damaged guard bytes; ``first`` counts from the buffer's base."""
    if first < buffer.lead:
        where = f"from {buffer.lead - first} bytes before its beginning"
    else:
        where = f"from {first - buffer.lead - buffer.nbytes} bytes after its end"
    return f"{place}: wrote outside {label} ({buffer.nbytes} bytes): {damaged} bytes changed {where}"


def decode(raw: bytes, dtype: str) -> float:
    """Value of one element as the device holds it."""
    if dtype == "bfloat16":
        return float((np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")[0])
    return float(np.frombuffer(raw, np.dtype(dtype).newbyteorder("<"))[0])


def is_poison(raw: bytes) -> bool:
    """Whether an element of at least two bytes still holds a poison pattern."""
    words = [pattern.to_bytes(4, "little") * 2 for pattern in POISON]
    return len(raw) > 1 and any(raw == word[: len(raw)] for word in words)
