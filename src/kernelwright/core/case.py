"""Data of one case, as problems make it and devices use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy.typing as npt

Array = npt.NDArray[Any]
ITEM_BYTES: Final = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
}
"""Of all dtypes that arguments or a plan's scratch may have."""


@dataclass(frozen=True)
class Tolerance:
    """An output is right where ``|out - ref| <= atol + rtol * |ref|`` in float64 and finite masks agree."""

    rtol: float
    atol: float


@dataclass(frozen=True)
class Buffer:
    """One array argument of a case. ``role`` is ``in``, ``out`` or ``inout``; C-contiguous, dense."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str


@dataclass(frozen=True)
class CaseInputs:
    """One input set of a case: host arrays for ``in`` and ``inout`` arguments, in the problem's dtype."""

    arrays: Mapping[str, Array]
