"""Vendor libraries on a real GPU: every problem that names one is checked and timed in turn with its baseline."""

import importlib.util
from pathlib import Path

import pytest

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Status
from kernelwright.devices.cuda import probe
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import Built
from kernelwright.problems.loader import bundled_names, load_problem

PROBE = probe()
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "layer_norm")
NAMED = [name for name in (*bundled_names(), EXAMPLE) if load_problem(name).library_source]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore"),  # array libraries warn about each other's versions
    pytest.mark.skipif(not PROBE.usable, reason=PROBE.reason),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
    pytest.mark.timeout(300),
]


@pytest.mark.parametrize("name", NAMED)
async def test_the_library_is_right_and_timed_like_a_candidate(name: str) -> None:
    problem = load_problem(name)
    async with LocalHarness(problem.folder, "cuda:0", compile_workers=1) as harness:
        baseline = Candidate(parse_template(problem.baseline_source, "baseline.cu"), Configuration())
        compiled = await harness.compile(baseline)
        assert compiled.status is None, compiled.reason
        result = await harness.against_library(Built(baseline, compiled), 8)
        assert result.status is Status.MEASURED, result
        assert result.library.startswith("PyTorch ")
        assert {case.case for case in result.cases} == {case.id for case in problem.cases(slow=False)}
        for case in result.cases:
            assert min(case.incumbent_ms) > 0
            print(f"{problem.name} {case.case} {case.method}: {sorted(case.incumbent_ms)[4] * 1e3:.2f} us")  # noqa: T201 - for people
