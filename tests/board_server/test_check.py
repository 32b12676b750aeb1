"""What a test submission asks of the harness: right or not on small cases, and nothing is timed."""

from pathlib import Path

from kernelwright.core.candidate import Candidate
from kernelwright.core.outcome import Status
from kernelwright.devices.base import RunResult
from kernelwright.harness.local import LocalHarness
from tests.harness.support import candidate, fake_harness


async def checked(harness: LocalHarness, work: Candidate) -> RunResult:
    return await harness.check(work, await harness.compile(work))


async def test_nothing_is_timed_and_a_crash_is_a_status(tmp_path: Path) -> None:
    async with fake_harness(tmp_path) as harness:
        assert await checked(harness, candidate("// plain")) == RunResult(Status.MEASURED)
        assert (await checked(harness, candidate("// run: pid"))).status is Status.WRONG
        assert (await checked(harness, candidate("// run: signal 11"))).status is Status.CRASHED
    async with fake_harness(tmp_path, checked=True) as harness:
        found = await checked(harness, candidate("// check: race"))
        assert (found.status, found.reason) == (Status.WRONG, f"race in {harness.cases[0].id}")
