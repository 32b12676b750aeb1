"""Input generators: named distributions with parameters, seeded, drawn directly in the argument's dtype."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from kernelwright.core.toml_words import Real, Whole, shown

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
SHORT_ROW = 16


class _Distribution(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def is_short_row(shape: Shape) -> bool:
    """Whether the last axis is so short that its ends are no ends of anything."""
    return shape[-1] < SHORT_ROW


class Normal(_Distribution):
    """Gaussian; ``mean`` and ``std``."""

    distribution: Literal["normal"] = "normal"
    mean: Real = 0.0
    std: Real = Field(1.0, ge=0)

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Float array."""
        return _affine(rng.standard_normal(shape, dtype=np.float32), self.std, self.mean)


class Uniform(_Distribution):
    """Uniform in ``[low, high)``."""

    distribution: Literal["uniform"] = "uniform"
    low: Real = -1.0
    high: Real = 1.0

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Float array."""
        return _affine(rng.random(shape, dtype=np.float32), self.high - self.low, self.low)


class Large(_Distribution):
    """Gaussian of a large ``std``: finds overflow, such as an exponential without its shift."""

    distribution: Literal["large"] = "large"
    std: Real = Field(1.0e3, gt=0)

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Float array."""
        return _affine(rng.standard_normal(shape, dtype=np.float32), self.std, 0.0)


class Tiny(_Distribution):
    """Gaussian of a tiny ``std``: finds absolute thresholds and flushes to zero."""

    distribution: Literal["tiny"] = "tiny"
    std: Real = Field(1.0e-6, gt=0)

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Float array."""
        return _affine(rng.standard_normal(shape, dtype=np.float32), self.std, 0.0)


class Negative(_Distribution):
    """``-(1 + |Gaussian| * std)``, all below -1: finds maxima that start at 0."""

    distribution: Literal["negative"] = "negative"
    std: Real = Field(1.0, ge=0)

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Float array."""
        values = rng.standard_normal(shape, dtype=np.float32)
        return _affine(np.abs(values, out=values), -self.std, -1.0)


class Ties(_Distribution):
    """Integers ``0 .. levels - 1``: many equal values."""

    distribution: Literal["ties"] = "ties"
    levels: Whole = Field(4, ge=1, le=2**31 - 1)

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Int32 array."""
        return rng.integers(0, self.levels, shape, dtype=np.int32)


class Integers(_Distribution):
    """Integers ``low .. high - 1``."""

    distribution: Literal["integers"] = "integers"
    low: Whole = Field(0, ge=-(2**63))
    high: Whole = Field(100, le=2**63 - 1)

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Int64 array."""
        return rng.integers(self.low, self.high, shape, dtype=np.int64)


class OneHot(_Distribution):
    """Zeros, and one ``value`` in every row (the last axis), at a random place."""

    distribution: Literal["one_hot"] = "one_hot"
    value: Real = 1.0

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Float array."""
        values = np.zeros(shape, np.float32)
        rows = values.reshape(-1, shape[-1])
        rows[np.arange(len(rows)), rng.integers(0, shape[-1], len(rows))] = self.value
        return values


class Ends(_Distribution):
    """Zeros, and ``value`` at both ends of every row (the last axis); where rows are short, of the whole array.

    Finds ends left out: a sum of ordinary values hides one of many addends within its tolerance.
    """

    distribution: Literal["ends"] = "ends"
    value: Real = 1.0

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:  # noqa: ARG002 - one signature for all
        """Float array."""
        values = np.zeros(shape, np.float32)
        # Short rows are records, such as a body's: nobody leaves an end of them out.
        rows = values.reshape(-1, values.size if is_short_row(shape) else shape[-1])
        rows[:, [0, -1]] = self.value
        return values


class Structured(_Distribution):
    """A saw-tooth over the linear index, ``((index + random start) mod period) / period``.

    Neighbours always differ: finds swapped, skipped and repeated elements. Below 2**24 periods are exact.
    """

    distribution: Literal["structured"] = "structured"
    period: Whole = Field(2**20 - 3, ge=2, le=2**24)

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Float array."""
        tooth = np.arange(self.period, dtype=np.float32) / np.float32(self.period)
        return np.resize(np.roll(tooth, int(rng.integers(self.period))), shape)


class Constant(_Distribution):
    """The same ``value`` everywhere."""

    distribution: Literal["constant"] = "constant"
    value: Real

    def draw(self, rng: np.random.Generator, shape: Shape) -> Array:  # noqa: ARG002 - one signature for all
        """Float array."""
        return np.full(shape, self.value, np.float32)


def _by_name(value: Any) -> Any:
    if isinstance(value, str):
        return {"distribution": value}
    if isinstance(value, dict | _Distribution):
        return value
    raise ValueError(f'must be a name such as "normal", a table, or a list of these, not {shown(value)}')


Distribution = Annotated[
    Annotated[
        Normal | Uniform | Large | Tiny | Negative | Ties | Integers | OneHot | Ends | Structured | Constant,
        Field(discriminator="distribution"),
    ],
    BeforeValidator(_by_name, json_schema_input_type=str | dict[str, Any]),
]
"""A distribution by name (``"normal"``) or with parameters (``{ distribution = "normal", std = 2.0 }``)."""

INTEGER_DISTRIBUTIONS = (Ties, Integers, OneHot, Constant)
"""What integer arguments may use."""


def generator(seed: int, *parts: str | int) -> np.random.Generator:
    """Generator for a campaign's ``seed`` and what it is for (case, set, argument): same parts, same stream.

    SFC64 is numpy's fastest generator; the seed goes through SeedSequence, so that neighbours are unrelated.
    """
    label = "\0".join(str(part) for part in parts).encode()
    words = np.frombuffer(sha256(label).digest(), np.uint32)
    entropy: Sequence[int] = [seed & (2**64 - 1), *(int(word) for word in words)]
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(entropy)))


def draw(distribution: Distribution, rng: np.random.Generator, shape: Shape, dtype: str) -> Array:
    """C-contiguous array of ``shape`` and ``dtype``."""
    return np.ascontiguousarray(distribution.draw(rng, shape).astype(dtype, copy=False))


def change_a_few(array: Array, rng: np.random.Generator) -> None:
    """Give at most four elements of a float array, at random places, other values of its own size."""
    flat = array.reshape(-1)
    scale = max(abs(float(flat.max())), abs(float(flat.min()))) or 1.0
    places = rng.integers(0, flat.size, min(4, flat.size))
    flat[places] = scale * (0.25 + 0.5 * rng.random(len(places)))


def _affine(values: Array, scale: float, shift: float) -> Array:
    """``values * scale + shift`` in place: inputs of 256 MB should not be copied for nothing."""
    if scale != 1.0:
        values *= np.float32(scale)
    if shift != 0.0:
        values += np.float32(shift)
    return values
