"""Ceilings of a real GPU: of the right size, and the same again."""

import pytest

from kernelwright.devices.cuda import CudaRunner, probe
from kernelwright.devices.cuda.ceilings import measure_ceilings
from kernelwright.devices.cuda.tensor_rate import LOOPS
from tests.gpu.workbench import tell

PROBE = probe()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not PROBE.usable, reason=PROBE.reason),
]
DATA_SHEET = {"A100": 312e12, "H100": 989e12, "H200": 989e12}
"""Dense float16 operations per second of the tensor units (NVIDIA's data sheets; SXM)."""


def test_ceilings_are_of_the_right_size_and_steady(runner: CudaRunner) -> None:
    copied, fp32, tensor = measure_ceilings(runner.gpu)
    tell(
        f"\n{copied / 1e12:.3g} TB/s copied, {fp32 / 1e12:.4g} TFLOP/s fp32, {tensor / 1e12:.4g} TFLOP/s float16"
    )
    assert copied > 1e11
    assert fp32 > 1e12
    if runner.facts.arch not in LOOPS:
        assert tensor == 0.0
        return
    assert tensor > 3 * fp32
    for model, peak in DATA_SHEET.items():
        if model in runner.facts.model:
            # Clocks fall under full load; a candidate reaches less still.
            assert 0.55 * peak < tensor < 1.1 * peak
    assert measure_ceilings(runner.gpu)[2] == pytest.approx(tensor, rel=0.1)
