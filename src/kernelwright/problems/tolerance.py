"""Is a tolerance what the baseline needs? Judged by the baseline's own error against the float64 reference."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kernelwright.core.case import Array
from kernelwright.problems.spec import ProblemSpec

LOOSE: Final = 1 / 50
"""A baseline whose worst error is below this share of the tolerance does not need it that wide."""
TIGHT: Final = 0.5
"""A baseline above this share leaves no room for other orders of operations."""


@dataclass(frozen=True)
class Fit:
    """How a tolerance fits: ``worst`` is the baseline's worst error in multiples of it, on the case ``case``."""

    worst: float
    case: str
    warning: str = ""
    mend: str = ""


def fit(spec: ProblemSpec, errors: Mapping[str, float]) -> Fit:
    """Judge a tolerance by the baseline's worst error of each case, in multiples of the tolerance."""
    case = max(errors, key=lambda name: errors[name])
    worst = errors[case]
    if worst > TIGHT:
        warning = f"the baseline's own error is {worst:.2g} tolerances: honest candidates may be refused"
        return Fit(
            worst, case, warning, f"widen the tolerance {worst / 0.1:.2g} times, or make the baseline exact"
        )
    if 0 < worst < LOOSE and not _is_exact(spec):
        warning = f"the tolerance is {1 / worst:.0f} times the baseline's own worst error"
        return Fit(worst, case, warning, "tighten it unless larger cases need it")
    return Fit(worst, case)


def _is_exact(spec: ProblemSpec) -> bool:
    used = [a.tolerance or spec.tolerance for a in spec.arguments if a.is_output]
    return not any(tolerance.rtol or tolerance.atol or tolerance.rms for tolerance in used)


def is_single_precision(spec: ProblemSpec) -> bool:
    """Whether all that is read and written in floating point has 32 bits or more: nothing excuses a downgrade."""
    floats = [a.dtype for a in spec.arrays if "float" in a.dtype]
    return bool(floats) and "float16" not in floats


def tf32(values: Array) -> Array:
    """Float32 values rounded to the 10 bits of mantissa that tf32 keeps, to nearest even (PTX ISA, cvt.rn.tf32)."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & np.uint32(0xFFFF_E000)
    return rounded.view(np.float32).reshape(np.shape(values))


def bfloat16(values: Array) -> Array:
    """Float32 values rounded to the 7 bits of mantissa that bfloat16 keeps, to nearest even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF_0000)
    return rounded.view(np.float32).reshape(np.shape(values))


def float16(values: Array) -> Array:
    """Float32 values rounded to float16; what does not fit becomes infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float32).astype(np.float16).astype(np.float32)


DOWNGRADES: Final = {"tf32": tf32, "bfloat16": bfloat16, "float16": float16}
