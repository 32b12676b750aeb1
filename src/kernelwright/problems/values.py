"""Whether the numbers of a problem.toml are numbers of the dtype that they are for."""

from collections.abc import Iterator

import numpy as np

from kernelwright.core.toml_words import shown
from kernelwright.problems.inputs import (
    Constant,
    Distribution,
    Ends,
    Integers,
    Large,
    Negative,
    Normal,
    OneHot,
    Structured,
    Ties,
    Tiny,
    Uniform,
)

EXACT = 2**24
"""Up to here float32, in which constants are made, holds every integer."""


def scalar_fault(value: float, dtype: str) -> str:
    """What is wrong with a scalar's value; empty for nothing."""
    if "float" not in dtype and isinstance(value, float) and not value.is_integer():
        return f"{value} is no {dtype}: use an integer or a float dtype"
    if not _fits(value, dtype):
        return f"{shown(value)} is no {dtype} ({_range(dtype)}): choose another dtype"
    if value and not np.dtype(dtype).type(value):
        return f"{shown(value)} is 0 as {dtype}: choose another dtype"
    return ""


def distribution_fault(item: Distribution, dtype: str) -> str:
    """What is wrong with drawing an input of ``dtype`` from a distribution; empty for nothing."""
    if isinstance(item, Uniform | Integers) and item.low >= item.high:
        return f"low {shown(item.low)} is not below high {shown(item.high)}"
    name = repr(item.distribution)
    constant = item.value if isinstance(item, OneHot | Constant) and "float" not in dtype else 0.0
    if not constant.is_integer() or abs(constant) > EXACT:
        return f"{name} makes whole numbers up to {EXACT} only, not {constant:g}: use integers"
    for value in _drawn(item):
        if not _fits(value, dtype):
            return f"{name} draws {value:.12g}, which is no {dtype} ({_range(dtype)}): narrow it"
        if not isinstance(item, Integers | Ties) and not _fits(value, "float32"):
            return f"{name} draws {value:g}, but values are made in float32 ({_range('float32')}): narrow it"
    if isinstance(item, Uniform) and not _fits(item.high - item.low, "float32"):
        return f"{name} from {item.low:g} to {item.high:g} is wider than float32 ({_range('float32')}): narrow it"
    return ""


def _drawn(item: Distribution) -> Iterator[float]:
    """The outermost values; of what has no bounds, those that are drawn often."""
    match item:
        case Uniform():
            yield from (item.low, item.high)
        case Integers():
            yield from (item.low, item.high - 1)
        case Ties():
            yield item.levels - 1
        case OneHot() | Ends() | Constant():
            yield item.value
        case Normal():
            yield from (item.mean - item.std, item.mean + item.std)
        case Negative():
            yield -1.0 - item.std
        case Large() | Tiny():
            yield item.std
        case Structured():
            yield 1.0


def _fits(value: float, dtype: str) -> bool:
    if "float" not in dtype:
        limits = np.iinfo(dtype)
        return bool(limits.min <= value <= limits.max)
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.dtype(dtype).type(float(value))))
    except OverflowError:  # an integer beyond all floats
        return False


def _range(dtype: str) -> str:
    if "float" not in dtype:
        return f"{np.iinfo(dtype).min} to {np.iinfo(dtype).max}"
    return f"at most {float(np.finfo(dtype).max):.6g}"
