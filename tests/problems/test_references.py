"""Every bundled reference against another way to compute the same."""

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest
from scipy import signal, special

from kernelwright.problems.loader import Case, load_problem

Array = npt.NDArray[np.float64]
Inputs = Mapping[str, Array]


def conv2d(inputs: Inputs, sizes: Mapping[str, int]) -> Array:
    out = np.zeros((sizes["B"], sizes["F"], sizes["H"], sizes["W"]))
    for b, f, c in itertools.product(range(sizes["B"]), range(sizes["F"]), range(sizes["C"])):
        out[b, f] += signal.correlate2d(inputs["X"][b, c], inputs["weights"][f, c], mode="same")
    return out


def nbody(inputs: Inputs, sizes: Mapping[str, int]) -> Array:
    bodies, softening = inputs["bodies"], float(np.float32(0.001))
    out = np.zeros((sizes["N"], 4))
    for i in range(sizes["N"]):
        d = bodies[:, :3] - bodies[i, :3]
        weight = bodies[:, 3] / ((d**2).sum(axis=1) + softening) ** 1.5
        out[i, :3] = (weight[:, None] * d).sum(axis=0)
    return out


ANSWERS: dict[str, tuple[str, dict[str, int], Callable[[Inputs, Mapping[str, int]], Array]]] = {
    "vector_add": ("C", {"N": 101}, lambda x, _: np.add(x["A"], x["B"])),
    "transpose": (
        "B",
        {"R": 7, "C": 13},
        lambda x, _: np.array([[x["A"][r, c] for r in range(7)] for c in range(13)]),
    ),
    "reduce_sum": ("out", {"N": 1003}, lambda x, _: np.array([math.fsum(x["X"].tolist())])),
    "softmax": ("Y", {"R": 5, "C": 33}, lambda x, _: special.softmax(x["X"], axis=1)),
    "gemm": ("C", {"M": 5, "N": 7, "K": 11}, lambda x, _: np.einsum("mk,kn->mn", x["A"], x["B"])),
    "nbody": ("acceleration", {"N": 57}, nbody),
    "conv2d": ("Y", {"B": 2, "C": 3, "H": 5, "W": 9, "F": 4}, conv2d),
}


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_reference_agrees_with_an_independent_answer(name: str, index: int) -> None:
    output, sizes, answer = ANSWERS[name]
    problem = load_problem(name)
    assert tuple(sizes) == problem.spec.size_names
    case = Case(id="small", sizes=sizes)
    inputs = problem.make_inputs(case, index, seed=5)
    found = problem.reference(case, inputs, np)[output]
    wide = {key: value.astype(np.float64) for key, value in inputs.items()}
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, answer(wide, sizes), rtol=1e-9, atol=1e-9)


def test_the_nbody_reference_is_the_same_in_chunks() -> None:
    problem = load_problem("nbody")
    case = Case(id="chunks", sizes={"N": 4100})  # more than one chunk of rows
    inputs = problem.make_inputs(case, 0, seed=5)
    found = problem.reference(case, inputs, np)["acceleration"]
    bodies = inputs["bodies"].astype(np.float64)
    for i in (0, 1, 2048, 4091, 4092, 4099):
        d = bodies[:, :3] - bodies[i, :3]
        weight = bodies[:, 3] / ((d**2).sum(axis=1) + float(np.float32(0.001))) ** 1.5
        np.testing.assert_allclose(found[i, :3], (weight[:, None] * d).sum(axis=0), rtol=1e-8)
