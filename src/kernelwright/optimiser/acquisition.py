"""Expected improvement, in logarithms: numbers far below the smallest float still have an order."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

_LOG_ROOT_2PI = 0.9189385332046727
_TAIL = -6.0


def log_expected_improvement(
    mean: npt.NDArray[Any], deviation: npt.NDArray[Any], best: npt.NDArray[Any] | float
) -> npt.NDArray[Any]:
    """``log E[max(0, best - f)]`` for normal beliefs [m] (Ament et al. 2023, with an asymptotic tail)."""
    u = (best - mean) / deviation
    log_density = -0.5 * u * u - _LOG_ROOT_2PI
    near = np.maximum(u, _TAIL)
    direct = np.log(near * ndtr(near) + np.exp(-0.5 * near * near - _LOG_ROOT_2PI))
    tail = log_density - 2 * np.log(np.maximum(-u, 1.0))
    return np.asarray(np.log(deviation) + np.where(u > _TAIL, direct, tail))
