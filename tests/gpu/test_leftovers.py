"""No run may find what an earlier one left behind: kernels that are wrong where they find it, on a real GPU."""

from pathlib import Path

import pytest

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.core.outcome import Status
from kernelwright.core.screen import Screen
from kernelwright.devices.cuda import probe
from kernelwright.harness.local import LocalHarness

PROBE = probe()
LOST = Screen(Objective(ObjectiveName.MEAN), {"N=65536": 1e-9})
"""Nobody is about to lead: the cases are enough, without trials."""
FOLDER = Path(__file__).with_name("leftovers")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore"),  # array libraries warn about each other's versions
    pytest.mark.skipif(not PROBE.usable, reason=PROBE.reason),
    pytest.mark.timeout(300),
]


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.cu"))])
async def test_nothing_is_left(name: str) -> None:
    """In every configuration: how a multiprocessor's memory is parted follows from what a kernel asks for."""
    template = parse_template((FOLDER / f"{name}.cu").read_text(encoding="utf-8"), name)
    async with LocalHarness("reduce_sum", "cuda:0", compile_workers=1) as harness:
        space = template.plan.space(harness.facts)
        assert len(space)
        for number in range(len(space)):
            candidate = Candidate(template, space.configuration(number))
            compiled = await harness.compile(candidate)
            assert compiled.status is None, compiled.reason
            outcome = await harness.benchmark(candidate, compiled, LOST)
            assert outcome.status is Status.MEASURED, (candidate.configuration, outcome.reason)
