"""Problem folders for tests: one good problem, changed text by text."""

from pathlib import Path

GOOD = """name = "scale"
title = "Scaled copy"
description = "Y = factor * X"
tolerance = { rtol = 1e-6 }
inputs = { X = ["normal", { distribution = "uniform", low = 0.0, high = 2.0 }] }
work = { bytes = "8 * N", flops = "N" }
arguments = [
    { name = "X", dtype = "float32", shape = ["N"], role = "in" },
    { name = "factor", dtype = "float32", role = "scalar", value = 0.1 },
    { name = "Y", dtype = "float32", shape = ["N"], role = "out" },
]
cases = [{ sizes = { N = 100 } }, { id = "big", sizes = { N = 1000 } }]
slow_cases = [{ sizes = { N = 10 } }]
"""
REFERENCE = "def reference(xp, sizes, X, factor):\n    return {'Y': factor * X}\n"
BASELINE = """/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 128)"]
block = [128]
args = ["X", "factor", "Y", "N"]
*/
extern "C" __global__ void scale(const float* X, float factor, float* Y, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        Y[i] = factor * X[i];
}
"""


def write_problem(folder: Path, toml: str = GOOD, reference: str = REFERENCE) -> Path:
    """A problem folder with these texts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "problem.toml").write_text(toml)
    (folder / "reference.py").write_text(reference)
    (folder / "baseline.cu").write_text(BASELINE)
    return folder
