"""Comparing outputs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.devices.base import Tolerance
from kernelwright.devices.compare import (
    compare,
    draw_poisons,
    poison,
    root_mean_square,
    storage_dtype,
    to_float64,
    to_storage,
)

EXACT = Tolerance(0.0, 0.0)


def test_the_message_says_what_where_and_how_far() -> None:
    got = np.array([[1.0, 2.0], [3.0, 1.5]], np.float32)
    found = compare(got, np.array([[1.0, 2.0], [3.0, 2.25]]), "float32", Tolerance(1e-3, 0.0))
    assert (
        found.message("C")
        == "1 of 4 values of C wrong, first at [1, 1]: got 1.5, expected 2.25; worst error 0.75"
    )
    assert compare(got, got.astype(float), "float32", EXACT).message("C") == ""


def test_tolerance_is_absolute_plus_relative() -> None:
    expected = np.array([100.0, 0.0])
    assert compare(np.array([101.0, 0.5]), expected, "float64", Tolerance(0.01, 0.5)).wrong == 0
    assert compare(np.array([101.6, 0.6]), expected, "float64", Tolerance(0.01, 0.5)).wrong == 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_finite_masks_must_agree(value: float) -> None:
    huge = Tolerance(1e9, 1e9)
    assert compare(np.array([value]), np.array([1.0]), "float64", huge).wrong == 1
    assert compare(np.array([1.0]), np.array([value]), "float64", huge).wrong == 1
    assert compare(np.array([value]), np.array([value]), "float64", EXACT).wrong == 0


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int32", "uint8", "int64"])
def test_poison_marks_what_was_never_written(dtype: str) -> None:
    for run in draw_poisons([0] * 9):
        pattern = poison(dtype, run)
        got = np.full(3, pattern, np.uint64).view(storage_dtype(dtype))
        expected = np.zeros(got.shape)
        found = compare(got, expected, dtype, EXACT, pattern)
        assert found.wrong == found.unwritten == got.size
        assert found.message("C") == f"none of the {got.size} values of C was ever written"
        got[0] = 0
        assert f"; {got.size - 1} values were never written" in compare(
            got, expected, dtype, EXACT, pattern
        ).message("C")


def kinds(numbers: list[int], dtype: str = "float32") -> set[str]:
    raw = np.array([poison(dtype, number) for number in numbers], np.uint64).view(storage_dtype(dtype))
    values = to_float64(raw, dtype)
    return {"nan" if np.isnan(v) else "high" if v > 6e4 else "low" if v < -6e4 else "small" for v in values}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("sets", [1, 2, 3, 4])
def test_equal_inputs_meet_every_kind_of_poison(dtype: str, sets: int) -> None:
    """NaN alone is ignored by a maximum, a huge number by a minimum."""
    drawn = draw_poisons(i % sets for i in range(3 * sets))
    assert all(kinds(drawn[i::sets], dtype) == {"nan", "high", "low"} for i in range(sets))
    assert len({poison("int32", number) for number in drawn}) == 3 * sets


def test_few_runs_meet_every_kind_of_poison() -> None:
    for _ in range(50):
        assert kinds(draw_poisons([0, 1, 0, 1])) == kinds(draw_poisons([0, 1, 2])) == {"nan", "high", "low"}


def test_poison_does_not_tell_which_run_it_is() -> None:
    """Any kind and any payload may be any run's."""
    first = [draw_poisons([0] * 3)[0] for _ in range(3000)]
    last = [draw_poisons([0, 1, 2, 0])[3] for _ in range(3000)]
    assert len(set(first)) > 170  # of 183
    assert len(set(last)) > 170
    assert kinds(first) == kinds(last) == {"nan", "high", "low"}


def test_a_scalar_output() -> None:
    found = compare(np.array(2.0), np.array(1.0), "float64", EXACT)
    assert found.message("s").startswith("1 of 1 values of s wrong, first at []: got 2")


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="shape"):
        compare(np.zeros(3), np.zeros(4), "float64", EXACT)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_bfloat16_rounds_to_nearest(values: list[float]) -> None:
    array = np.array(values, np.float32)
    bits = to_storage(array, "bfloat16")
    back = to_float64(bits, "bfloat16")
    finite = np.isfinite(back)
    assert np.all(
        np.abs(back - array.astype(float))[finite] <= np.abs(array.astype(float))[finite] * 2.0**-8 + 1e-40
    )
    assert np.array_equal(to_storage(bits, "bfloat16"), bits)


def test_large_arrays_are_compared_in_parts() -> None:
    got = np.zeros((3, 700_000), np.float32)
    got[2, 5] = 1
    found = compare(got, np.zeros(got.shape), "float32", EXACT)
    assert (found.wrong, found.first) == (1, (2, 5))


def test_root_mean_square() -> None:
    assert root_mean_square(np.array([3.0, 4.0, np.inf])) == pytest.approx(np.sqrt(12.5))
    assert root_mean_square(np.array([np.nan])) == 0.0
