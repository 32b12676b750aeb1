"""Data of one case, as problems make it and devices use it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


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
