"""Tolerances let honest fp32 through and refuse lower precision and lost work."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from kernelwright.problems.loader import Case, load_problem
from kernelwright.problems.source import ProblemSource

Floats = npt.NDArray[np.float32]


def tf32(x: Floats) -> Floats:
    """Round to 10 bits of mantissa, as tensor cores do with fp32 operands."""
    bits = x.view(np.uint32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)).view(np.float32)


def bf16(x: Floats) -> Floats:
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def fp16(x: Floats) -> Floats:
    return x.astype(np.float16).astype(np.float32)


def sequential(a: Floats, b: Floats) -> Floats:
    """One fp32 accumulator an element, in order of k: the worst honest kernel."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k : k + 1, :]
    return total


def worst(name: str, case: Case, index: int, compute: Callable[..., Floats]) -> float:
    """Largest error of an output in units of its tolerance; above 1 is refused."""
    problem = load_problem(name)
    source = ProblemSource(problem, seed=9, slow=False)
    inputs = problem.make_inputs(case, index, 9)
    (output, expected), *rest = problem.reference(case, inputs, np).items()
    assert not rest
    rms = float(np.sqrt(np.mean(expected**2)))
    tolerance = source.tolerance(case.id, output, rms)
    error = np.abs(compute(*inputs.values()).astype(np.float64) - expected)
    return float(np.max(error / (tolerance.atol + tolerance.rtol * np.abs(expected))))


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("k", [64, 515, 4096])
def test_gemm_accepts_fp32_with_margin_and_refuses_less(k: int, index: int) -> None:
    case = Case(id="x", sizes={"M": 48, "N": 56, "K": k})
    assert worst("gemm", case, index, sequential) < 0.3
    for rounded in (tf32, bf16, fp16):
        assert worst("gemm", case, index, lambda a, b, r=rounded: sequential(r(a), r(b))) > 3, (
            rounded.__name__
        )


@pytest.mark.parametrize("index", [0, 1, 2])
def test_gemm_refuses_a_lost_product(index: int) -> None:
    case = Case(id="x", sizes={"M": 48, "N": 56, "K": 4096})
    assert worst("gemm", case, index, lambda a, b: a[:, 1:] @ b[1:, :]) > 3


@pytest.mark.parametrize("index", [0, 1, 2])
def test_reduce_sum_accepts_a_tree_and_refuses_lost_elements(index: int) -> None:
    case = Case(id="x", sizes={"N": 2**20})
    assert worst("reduce_sum", case, index, lambda x: x.sum(keepdims=True)) < 0.1
    assert worst("reduce_sum", case, index, lambda x: x[:-64].sum(keepdims=True)) > 1
    assert worst("reduce_sum", case, index, lambda x: 2 * x[::2].sum(keepdims=True)) > 1


@pytest.mark.parametrize("index", [0, 1, 2])
def test_softmax_accepts_fp32_and_refuses_half(index: int) -> None:
    case = Case(id="x", sizes={"R": 32, "C": 4096})

    def softmax(x: Floats) -> Floats:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    assert worst("softmax", case, index, softmax) < 0.3
    assert worst("softmax", case, index, lambda x: softmax(fp16(x))) > 3
    assert worst("softmax", case, index, lambda x: fp16(softmax(x))) > 3


@pytest.mark.parametrize("index", [0, 1, 2])
def test_nbody_accepts_fp32_and_refuses_half(index: int) -> None:
    case = Case(id="x", sizes={"N": 512})

    def nbody(bodies: Floats) -> Floats:
        d = bodies[None, :, :3] - bodies[:, None, :3]
        weight = bodies[None, :, 3] / ((d**2).sum(axis=2) + np.float32(0.001)) ** np.float32(1.5)
        out = np.zeros_like(bodies)
        out[:, :3] = (weight[:, :, None] * d).sum(axis=1)
        return out

    assert worst("nbody", case, index, nbody) < 0.5
    assert worst("nbody", case, index, lambda bodies: nbody(fp16(bodies))) > 3


@pytest.mark.parametrize("index", [0, 1, 2])
def test_conv2d_accepts_fp32_and_refuses_tf32(index: int) -> None:
    case = Case(id="x", sizes={"B": 1, "C": 64, "H": 14, "W": 14, "F": 32})

    def conv(x: Floats, weights: Floats) -> Floats:
        padded = np.pad(x[0], ((0, 0), (1, 1), (1, 1)))
        total = np.zeros((32, 14, 14), np.float32)
        for i in range(3):
            for j in range(3):
                total += np.tensordot(weights[:, :, i, j], padded[:, i : i + 14, j : j + 14], axes=1)
        return total[None]

    assert worst("conv2d", case, index, conv) < 0.3
    assert worst("conv2d", case, index, lambda x, w: conv(tf32(x), tf32(w))) > 3


@pytest.mark.parametrize("index", [0, 1, 2])
def test_transpose_and_vector_add_are_exact_and_nearly_so(index: int) -> None:
    problem = load_problem("transpose")
    assert ProblemSource(problem, 1, slow=False).tolerance("x", "B", 1.0) == ProblemSource(
        problem, 1, slow=True
    ).tolerance("x", "B", 2.0)
    assert ProblemSource(problem, 1, slow=False).tolerance("x", "B", 1.0).atol == 0
    case = Case(id="x", sizes={"N": 1000})
    assert worst("vector_add", case, index, lambda a, b: a + b) < 0.2
    assert worst("vector_add", case, index, lambda a, b: tf32(a) + b) > 3
