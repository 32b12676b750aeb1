"""Which compile worker gets a request, and what is said when it dies twice."""

import asyncio
import signal
from pathlib import Path

import pytest

from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import BuildResult
from kernelwright.harness import compile_pool
from kernelwright.harness.child import ChildDied
from kernelwright.harness.compile_pool import CompilePool
from kernelwright.harness.scratch import Artifacts
from kernelwright.harness.wire import OUT_OF_MEMORY, Reply, Request


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


class Dying:
    """Dies whenever it is asked."""

    def __init__(self, death: ChildDied) -> None:
        self._death = death

    async def ask(self, request: Request, timeout_s: float) -> Reply:
        raise self._death


KILLED = ChildDied("ended with signal 9", signal.SIGKILL, "warning: unused variable")
TOO_MUCH = "the compile worker was ended: it took 9000 MiB of memory, 8192 are allowed"
DISK = "the compile worker was ended: it wrote 5000 MiB, 4096 are allowed"


@pytest.mark.parametrize(
    ("death", "counts", "reason"),
    [
        (KILLED, (4, 6), OUT_OF_MEMORY),
        (
            KILLED,
            (4, 4),
            "the compiler was killed twice by somebody: the system ended nothing for lack of memory",
        ),
        (KILLED, (None, None), "the compiler was killed twice (out of memory, or by somebody)"),
        (ChildDied("", signal.SIGKILL, "cc1plus: out of memory"), (4, 4), OUT_OF_MEMORY),
        (ChildDied("", signal.SIGABRT, "std::bad_alloc"), (4, 4), OUT_OF_MEMORY),
        (ChildDied(TOO_MUCH, signal.SIGKILL, excess=True), (4, 4), OUT_OF_MEMORY),
        (ChildDied(DISK, signal.SIGKILL, excess=True), (4, 4), f"the compiler took too much: {DISK}"),
        (ChildDied("ended with code 3"), (4, 4), "the compiler crashed: ended with code 3"),
    ],
)
async def test_who_killed_a_compiler_is_told_as_far_as_it_is_known(
    death: ChildDied,
    counts: tuple[int | None, ...],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compile_pool, "killed_for_memory", iter(counts).__next__)
    pool = CompilePool([Dying(death)], Artifacts(tmp_path), 9.0)  # type: ignore[list-item]
    built = await pool.build(BuildRequest("", {}, {}, ("k",), ""))
    assert (built.status, built.check) == (Status.COMPILE_FAILED, Check.COMPILE_LIMITS)
    assert built.reason == reason
