import numpy as np
import pytest

from kernelwright.devices.cuda.buffers import GUARD, Guarded
from kernelwright.devices.cuda.gpu import ROW
from kernelwright.devices.cuda.trusted import POISON
from kernelwright.devices.cuda.verdict import Mismatch, Sample, decode, is_poison, outside_write, wrong_values


def test_mismatch_from_a_row() -> None:
    row = np.array([(3, 2**64 - 1 - 17, 2.5, 1, 99, 2)], ROW)[0]
    assert Mismatch.of(row) == Mismatch(bad=3, first=17, worst=2.5, non_finite=1, unwritten=2)


def test_wrong_values() -> None:
    text = wrong_values(
        "case n=127 run 3", "C", (127, 127), Mismatch(12, 388, 310.0, 0), Sample(1.5, 2.25, unwritten=False)
    )
    assert text == (
        "case n=127 run 3: 12 of 16129 values of C wrong, first at [3, 7]: got 1.5, expected 2.25;"
        " worst error 3.1e+02 x tolerance"
    )


def test_wrong_values_without_sample_and_special_cases() -> None:
    assert wrong_values("p", "s", (), Mismatch(1, 0, 1e308, 0)) == (
        "p: 1 of 1 values of s wrong, first at [0]; worst error infinitely far off"
    )
    unwritten = wrong_values("p", "C", (4,), Mismatch(2, 2, 0, 2), Sample(float("nan"), 1.0, unwritten=True))
    assert "got nothing (never written), expected 1" in unwritten
    assert "2 are NaN or infinite on one side only" in unwritten
    assert "worst" not in unwritten
    # Values that a later run has overwritten cannot be shown; how many were never written is known all the same.
    assert wrong_values("p", "C", (4,), Mismatch(3, 2, 9.0, 0, 2)).endswith(
        "2 were never written; worst error 9 x tolerance"
    )


@pytest.mark.parametrize(
    ("first", "where"),
    [(GUARD - 8, "from 8 bytes before its beginning"), (GUARD + 100, "from 0 bytes after its end")],
)
def test_outside_write(first: int, where: str) -> None:
    text = outside_write("case n=1", "output 'C'", Guarded(0, 100, 256), 4, first)
    assert text == f"case n=1: wrote outside output 'C' (100 bytes): 4 bytes changed {where}"


@pytest.mark.parametrize(("word", "is_nan"), list(zip(POISON, (True, False), strict=True)))
def test_poison_is_nan_in_every_float_or_finite_in_every_float(word: int, is_nan: bool) -> None:
    raw = word.to_bytes(4, "little") * 2
    for dtype, nbytes in (("float16", 2), ("bfloat16", 2), ("float32", 4), ("float64", 8)):
        assert np.isnan(decode(raw[:nbytes], dtype)) == is_nan
        assert np.isfinite(decode(raw[:nbytes], dtype)) != is_nan
        assert is_poison(raw[:nbytes])


def test_poison_is_never_the_same_integer() -> None:
    assert len({word.to_bytes(4, "little")[at] for word in POISON for at in (0, 1)}) == 2 * len(POISON)
    assert not is_poison(b"\xf9")
    assert not is_poison(b"\0\0\0\0")


def test_decode() -> None:
    assert decode(np.float32(1.5).tobytes(), "float32") == 1.5
    assert decode(np.int64(-7).tobytes(), "int64") == -7
    assert decode(b"\x80\x3f", "bfloat16") == 1.0
