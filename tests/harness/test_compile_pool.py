"""Which compile worker gets a request."""

import asyncio
from pathlib import Path

import pytest

from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Status
from kernelwright.devices.base import BuildResult
from kernelwright.harness.compile_pool import CompilePool
from kernelwright.harness.scratch import Artifacts
from kernelwright.harness.wire import Reply, Request


class Worker:
    """Answers when it is let go on."""

    def __init__(self) -> None:
        self.asked = 0
        self.go_on = asyncio.Event()

    async def ask(self, request: Request, timeout_s: float) -> Reply:
        self.asked += 1
        await self.go_on.wait()
        return Reply(0, built=BuildResult(status=Status.COMPILE_FAILED, reason="no kernel"))


@pytest.mark.parametrize(("at_once", "asked"), [(1, [3, 0]), (2, [3, 3])])
async def test_a_worker_starts_when_those_that_run_are_busy(
    at_once: int, asked: list[int], tmp_path: Path
) -> None:
    workers = [Worker(), Worker()]
    pool = CompilePool(workers, Artifacts(tmp_path), 9.0)  # type: ignore[arg-type]
    request = BuildRequest("", {}, {}, ("k",), "")
    for _ in range(3):
        for worker in workers:
            worker.go_on.clear()
        builds = [asyncio.create_task(pool.build(request)) for _ in range(at_once)]
        await asyncio.sleep(0)
        for worker in workers:
            worker.go_on.set()
        assert {result.status for result in await asyncio.gather(*builds)} == {Status.COMPILE_FAILED}
    assert [worker.asked for worker in workers] == asked
