"""The two lanes: compiling ahead in parallel, one candidate at a time on the device."""

import asyncio

import pytest

from kernelwright.campaign.policy import Work
from kernelwright.campaign.scheduler import Scheduler
from kernelwright.core.candidate import Candidate
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import HarnessError
from kernelwright.core.outcome import Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.generation.base import Proposal
from kernelwright.harness.protocol import CompileResult

from .fakes import FakeHarness, measured, template

TEMPLATE = template("t", values=100)
PROPOSAL = Proposal(TEMPLATE, "d", "test")


def scheduler(
    harness: FakeHarness, count: int, workers: int = 4, known: Outcome | None = None
) -> tuple[Scheduler, list[Outcome]]:
    work = [Work(Candidate(TEMPLATE, Configuration({"X": x})), PROPOSAL, "") for x in range(1, count + 1)]
    outcomes: list[Outcome] = []

    async def take() -> Work | None:
        return work.pop(0) if work else None

    async def done(work: Work, outcome: Outcome) -> None:
        outcomes.append(outcome)

    def twin(work: Work, compiled: CompileResult) -> Outcome | None:
        return known

    return Scheduler(harness, workers, take, twin, lambda work: None, done), outcomes


async def test_all_work_is_done_with_one_on_the_device_and_many_compiling() -> None:
    harness = FakeHarness({}, compile_seconds=0.01, device_seconds=0.002)
    lanes, outcomes = scheduler(harness, 30)
    await lanes.run(asyncio.Event())
    assert [outcome.status for outcome in outcomes] == [Status.MEASURED] * 30
    assert harness.most_on_device == 1
    assert harness.most_compiling >= 4


async def test_what_does_not_compile_never_reaches_the_device() -> None:
    harness = FakeHarness({("t", x): Status.COMPILE_FAILED for x in (1, 3)})
    lanes, outcomes = scheduler(harness, 4)
    await lanes.run(asyncio.Event())
    assert sorted(outcome.status for outcome in outcomes) == ["compile_failed"] * 2 + ["measured"] * 2
    assert len(harness.measured) == 2


async def test_a_known_binary_is_not_measured_again() -> None:
    harness = FakeHarness({})
    lanes, outcomes = scheduler(harness, 3, known=measured(5.0))
    await lanes.run(asyncio.Event())
    assert harness.measured == []
    assert len(outcomes) == 3


async def test_stopping_finishes_the_experiment_on_the_device_and_drops_the_rest() -> None:
    harness = FakeHarness({}, device_seconds=0.05)
    lanes, outcomes = scheduler(harness, 50)
    stop = asyncio.Event()
    running = asyncio.create_task(lanes.run(stop))
    while not harness.on_device:
        await asyncio.sleep(0)
    stop.set()
    await running
    assert len(harness.measured) == len(outcomes) == 1


async def test_stopping_does_not_wait_for_a_compiler() -> None:
    harness = FakeHarness({}, compile_seconds=60)
    lanes, outcomes = scheduler(harness, 5)
    stop = asyncio.Event()
    running = asyncio.create_task(lanes.run(stop))
    while not harness.compiling:
        await asyncio.sleep(0)
    stop.set()
    await asyncio.wait_for(running, 5)
    assert outcomes == []


async def test_a_fault_of_the_harness_ends_all_lanes() -> None:
    class Broken(FakeHarness):
        async def benchmark(
            self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
        ) -> Outcome:
            raise HarnessError("device lost")

    lanes, _ = scheduler(Broken({}), 10)
    with pytest.raises(HarnessError, match="device lost"):
        await lanes.run(asyncio.Event())


async def test_what_is_due_is_done_while_no_candidate_comes() -> None:
    stop, news, calls, busy = asyncio.Event(), [asyncio.Event()], list[bool](), [False]

    async def between() -> None:
        calls.append(scheduler.device.locked())

    scheduler = Scheduler(FakeHarness({}), 1, _none, _unknown, _ignored, _done, between=between)
    caring = asyncio.create_task(scheduler.care(stop, lambda: not busy[0], lambda: news[0]))

    async def something_happens() -> None:
        news[0].set()
        news[0] = asyncio.Event()
        await asyncio.sleep(0.02)

    await asyncio.sleep(0.02)
    assert calls == [True], "also before anything has happened, as after a kill"
    await something_happens()
    assert len(calls) == 2
    busy[0] = True
    await something_happens()
    assert len(calls) == 2
    stop.set()
    async with asyncio.timeout(1):
        await caring


async def _none() -> None:
    """No work."""


def _unknown(*_: object) -> None:
    """Nothing was measured before."""


def _ignored(_: object) -> None:
    """Nobody listens."""


async def _done(*_: object) -> None:
    """Nothing is kept."""
