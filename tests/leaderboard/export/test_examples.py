"""The references of our problems of boards, against numpy's own words for the same."""

from pathlib import Path

import numpy as np
import pytest

from kernelwright.problems.loader import load_problem

BOARDS = Path(__file__).parents[3] / "examples" / "boards"
DIRECT = {
    "vectoradd": lambda x: {"C": np.add(x["A"], x["B"], dtype=np.float64)},
    "grayscale": lambda x: {"grey": np.dot(x["rgb"].astype(np.float64), [0.2989, 0.5870, 0.1140])},
    "histogram": lambda x: {"counts": np.bincount(x["values"], minlength=256)},
    "matmul": lambda x: {"C": np.einsum("mk,kn->mn", x["A"].astype(np.float64), x["B"].astype(np.float64))},
}


@pytest.mark.parametrize("name", DIRECT)
def test_references(name: str) -> None:
    problem = load_problem(BOARDS / name)
    case = problem.cases(slow=True)[0]
    for index in range(3):
        inputs = problem.make_inputs(case, index, 7)
        for output, wanted in DIRECT[name](inputs).items():
            got = problem.reference(case, inputs, np)[output]
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
