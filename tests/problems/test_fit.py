"""How a tolerance fits the baseline, and what rounding to fewer bits is."""

import numpy as np
import pytest

from kernelwright.problems.loader import load_problem
from kernelwright.problems.tolerance import bfloat16, fit, float16, is_single_precision, tf32

SPEC = load_problem("gemm").spec


@pytest.mark.parametrize(
    ("worst", "words"),
    [(0.001, "1000 times"), (0.019, "53 times"), (0.6, "0.6 tolerances"), (3.0, "3 tolerances")],
)
def test_a_tolerance_far_from_the_baselines_error_is_told(worst: float, words: str) -> None:
    found = fit(SPEC, {"a": worst / 2, "b": worst})
    assert found.case == "b"
    assert words in found.warning
    assert found.mend


@pytest.mark.parametrize("worst", [0.0, 0.03, 0.5])
def test_a_fitting_tolerance_is_none(worst: float) -> None:
    assert fit(SPEC, {"a": worst}).warning == ""


def test_roundings_keep_the_bits_they_say() -> None:
    one = np.float32(1.0)
    for rounded, bits in ((tf32, 10), (bfloat16, 7), (float16, 10)):
        step = np.float32(2.0**-bits)
        assert rounded(np.array([one + step]))[0] == one + step
        assert rounded(np.array([one + step / 2]))[0] == one  # a tie goes to the even neighbour
        assert rounded(np.array([one + 3 * step / 2]))[0] == one + 2 * step
        assert rounded(np.array([[one + step * np.float32(0.51)]]))[0, 0] == one + step
    assert np.isinf(float16(np.array([1e6], np.float32)))[0]


def test_single_precision_is_told_from_half() -> None:
    assert is_single_precision(SPEC)
    half = SPEC.arguments[0].model_copy(update={"dtype": "float16"})
    assert not is_single_precision(SPEC.model_copy(update={"arguments": (half, *SPEC.arguments[1:])}))
