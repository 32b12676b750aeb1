"""Outputs that nobody computed: each must be refused by the comparison that judges candidates."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from kernelwright.core.case import Array, Buffer, Tolerance
from kernelwright.devices.compare import Comparison, compare, poison, root_mean_square, to_float64, to_storage
from kernelwright.problems.source import ProblemSource

_POISON_RUN: Final = 7


@dataclass(frozen=True)
class Answered:
    """One input set of a case with the right outputs, and those of another input set of equal distributions."""

    case: str
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]
    earlier: Mapping[str, Array]


@dataclass(frozen=True)
class Judge:
    """The comparison of candidates, for host arrays."""

    source: ProblemSource

    def tolerance(self, answered: Answered, output: str) -> Tolerance:
        """As a candidate gets it."""
        return self.source.tolerance(
            answered.case, output, root_mean_square(np.asarray(answered.expected[output]))
        )

    def compare(self, answered: Answered, buffer: Buffer, got: Array) -> Comparison:
        """One output in its storage dtype against the right one."""
        expected = np.asarray(answered.expected[buffer.name])
        pattern = poison(buffer.dtype, _POISON_RUN)
        return compare(got, expected, buffer.dtype, self.tolerance(answered, buffer.name), pattern)


def stored(values: npt.ArrayLike, buffer: Buffer) -> Array:
    """Values as an output of the buffer's dtype holds them."""
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.asarray(values, np.float64)
        if "float" not in buffer.dtype:
            array = np.nan_to_num(np.rint(array))
        return to_storage(np.broadcast_to(array, buffer.shape), buffer.dtype)


Variants = Iterator[Array]


def zeros(answered: Answered, buffer: Buffer) -> Variants:  # noqa: ARG001 - one signature for all
    """All 0."""
    yield stored(0.0, buffer)


def constant(answered: Answered, buffer: Buffer) -> Variants:  # noqa: ARG001 - one signature for all
    """All 1."""
    yield stored(1.0, buffer)


def mean(answered: Answered, buffer: Buffer) -> Variants:
    """The mean of right outputs, as it can be known from other inputs."""
    yield stored(np.mean(_finite(answered.earlier[buffer.name])), buffer)


def noise(answered: Answered, buffer: Buffer) -> Variants:
    """Noise of the mean and the deviation of right outputs."""
    like = _finite(answered.earlier[buffer.name])
    if like.size > 1:
        rng = np.random.default_rng(like.size)
        yield stored(np.mean(like) + np.std(like) * rng.standard_normal(buffer.shape), buffer)


def input_copy(answered: Answered, buffer: Buffer) -> Variants:
    """Each input, cut or repeated to the output's length."""
    for array in answered.inputs.values():
        yield stored(np.resize(array.astype(np.float64), buffer.shape), buffer)


def permuted(answered: Answered, buffer: Buffer) -> Variants:
    """The right output, shifted by one element and shuffled."""
    flat = np.asarray(answered.expected[buffer.name]).reshape(-1)
    if flat.size > 1:
        yield stored(np.roll(flat, 1).reshape(buffer.shape), buffer)
        order = np.random.default_rng(flat.size).permutation(flat.size)
        yield stored(flat[order].reshape(buffer.shape), buffer)


def earlier_output(answered: Answered, buffer: Buffer) -> Variants:
    """The right output of other inputs."""
    yield stored(answered.earlier[buffer.name], buffer)


def half_precision(answered: Answered, buffer: Buffer) -> Variants:
    """The right output rounded to float16 and to bfloat16; for outputs of 32 and 64 bits."""
    if buffer.dtype in {"float32", "float64"}:
        values = np.asarray(answered.expected[buffer.name], np.float64)
        for dtype in ("float16", "bfloat16"):
            with np.errstate(over="ignore"):
                yield stored(to_float64(to_storage(values, dtype), dtype), buffer)


def unwritten(answered: Answered, buffer: Buffer) -> Variants:
    """What was there before the run."""
    if buffer.role == "inout":
        yield to_storage(answered.inputs[buffer.name], buffer.dtype)
        return
    item = stored(0.0, buffer)
    pattern = np.array([poison(buffer.dtype, _POISON_RUN)], np.uint64).view(item.dtype)
    yield np.full(buffer.shape, pattern[0])


IMPOSTORS: Final[Mapping[str, Callable[[Answered, Buffer], Variants]]] = {
    "zeros": zeros,
    "constant 1": constant,
    "mean of right outputs": mean,
    "noise like right outputs": noise,
    "copy of an input": input_copy,
    "permuted output": permuted,
    "output of other inputs": earlier_output,
    "float16 rounding": half_precision,
    "nothing written": unwritten,
}
MAY_BE_RIGHT: Final = frozenset({"copy of an input", "permuted output", "float16 rounding"})
"""These are no impostors where they equal the right output bit by bit: a copy problem is answered by a copy."""


def _finite(values: Array) -> Array:
    values = np.asarray(values, np.float64)
    kept = values[np.isfinite(values)]
    return kept if kept.size else np.zeros(1)
