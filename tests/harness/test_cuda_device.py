"""The real cuda device through the harness: what kills a context does not touch the next candidate."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Status
from kernelwright.devices.cuda import probe
from kernelwright.harness.local import LocalHarness, Timeouts
from tests.harness.test_cpu_device import RIGHT, kernel, outcome_of

DRIVER = probe()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not DRIVER.usable, reason=f"needs a GPU: {DRIVER.reason}"),
    pytest.mark.timeout(300),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalHarness]:
    root = tmp_path_factory.mktemp("scratch")
    limits = Timeouts(run_s=3.0)
    async with LocalHarness(
        "vector_add", "cuda:0", compile_workers=2, slow_cases=True, scratch_root=root, timeouts=limits
    ) as started:
        yield started


async def test_the_baseline_is_right_and_timed(harness: LocalHarness) -> None:
    template = parse_template(harness.problem.baseline_source)
    outcome = await outcome_of(harness, Candidate(template, Configuration()))
    assert outcome.status is Status.MEASURED, outcome.reason
    assert outcome.static is not None
    assert outcome.static.kernels[0].theoretical_occupancy
    assert harness.ceilings.bytes_per_s > 1e10


async def test_it_works_behind_the_walls(harness: LocalHarness) -> None:
    layers = {layer.name: layer for layer in harness.sandbox.layers}
    assert layers["single thread"].holds, layers
    assert layers["capabilities"].holds, layers


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("this is not C++;", Status.COMPILE_FAILED, "line 11"),
        ("while (clock64() != 1) {} " + RIGHT, Status.TIMED_OUT, "N="),
        ("*(volatile float*)(size_t)64 = 1.0f; " + RIGHT, Status.CRASHED, "N="),
        ("if (i < N) C[i] = A[i];", Status.WRONG, "N="),
        ("C[i + 4096] = A[i];", Status.WRONG, "N="),
        ('asm volatile("trap;"); ' + RIGHT, Status.CRASHED, "N="),
        ("if (!threadIdx.x) while (malloc(1 << 20)) {} " + RIGHT, Status.RULE_BROKEN, "malloc"),
        ('printf("%d", i); ' + RIGHT, Status.RULE_BROKEN, "printf"),
    ],
    ids=["syntax", "endless", "illegal address", "wrong sum", "bounds", "trap", "malloc", "print"],
)  # fmt: skip
async def test_a_bad_candidate_has_its_status_and_the_next_is_right(
    harness: LocalHarness, body: str, status: Status, reason: str
) -> None:
    outcome = await outcome_of(harness, kernel(body))
    after = await outcome_of(harness, kernel(RIGHT))
    assert after.status is Status.MEASURED, after.reason
    assert outcome.status is status, outcome
    assert reason in outcome.reason
