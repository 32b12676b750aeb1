"""Input sets that are drawn side by side are those that would be drawn one by one."""

import threading
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

from kernelwright.core.case import CaseInputs
from kernelwright.devices.cuda.casedata import DRAWN_AT_ONCE, _drawn
from kernelwright.problems import loader
from kernelwright.problems.loader import load_problem


class Source:
    """Sets that are drawn together wait for each other."""

    def __init__(self, together: int) -> None:
        self.barrier = threading.Barrier(together)

    def inputs(self, case: str, index: int) -> CaseInputs:
        self.barrier.wait(20)
        return CaseInputs({"A": np.array([index])})


def numbers(drawn: Iterator[CaseInputs]) -> list[int]:
    return [int(inputs.arrays["A"][0]) for inputs in drawn]


def test_sets_are_drawn_side_by_side_and_come_in_order() -> None:
    assert numbers(_drawn(Source(3), "c", range(2, 5))) == [2, 3, 4]  # type: ignore[arg-type]
    assert numbers(_drawn(Source(DRAWN_AT_ONCE), "c", range(2 * DRAWN_AT_ONCE))) == [
        *range(2 * DRAWN_AT_ONCE)
    ]  # type: ignore[arg-type]
    assert numbers(_drawn(Source(1), "c", range(3, 4))) == [3]  # type: ignore[arg-type]
    assert numbers(_drawn(Source(1), "c", range(3, 3))) == []  # type: ignore[arg-type]


def test_a_fault_in_one_is_a_fault() -> None:
    class Faulty:
        def inputs(self, case: str, index: int) -> CaseInputs:
            if index == 1:
                raise ValueError("no such set")
            return CaseInputs({"A": np.array([index])})

    drawn = _drawn(Faulty(), "c", range(3))  # type: ignore[arg-type]
    assert numbers(islice(drawn, 1)) == [0]
    with pytest.raises(ValueError, match="no such set"):
        next(drawn)


def test_arrays_of_a_set_do_not_depend_on_how_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load_problem("gemm")
    case = problem.cases(slow=True)[0]
    one_by_one = problem.make_inputs(case, 1, 7)
    monkeypatch.setattr(loader, "LARGE_BYTES", 0)
    together = problem.make_inputs(case, 1, 7)
    assert list(together) == list(one_by_one) == ["A", "B"]
    for name, array in together.items():
        np.testing.assert_array_equal(array, one_by_one[name])
