"""The vendor library as a strong reference: asked at the beginning and the end, noted, told in prompts and certificates."""

import asyncio
import json
from collections.abc import Collection
from pathlib import Path

import pytest

from kernelwright.campaign import strongest
from kernelwright.campaign.strongest import STRONGEST, strongest_ms
from kernelwright.core.errors import HarnessError
from kernelwright.core.outcome import Status
from kernelwright.devices.base import DuelCase, DuelResult
from kernelwright.harness.protocol import Built
from kernelwright.memory.store import Memory

from .fakes import FakeHarness, key
from .test_campaign import TIMES, make


class WithLibrary(FakeHarness):
    """A device whose library takes 0.3 ms, or says why not."""

    refusal: DuelResult | HarnessError | None = None
    silent = False
    undisturbed = 1.0

    def __init__(self, *, exclusive: bool = True) -> None:
        super().__init__(TIMES, exclusive=exclusive)
        self.asked: list[tuple[str, int]] = []

    async def against_library(
        self, challenger: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        self.asked.append((str(challenger.candidate), rounds))
        if isinstance(self.refusal, HarnessError):
            raise self.refusal
        if self.refusal:
            return self.refusal
        if self.silent:
            await asyncio.Event().wait()
        rounds = int(self.undisturbed * rounds)
        time = self.true_times.get(key(challenger.candidate), TIMES[key(challenger.candidate)])
        assert not isinstance(time, Status)
        ours = tuple(time * (1 + 0.001 * (i % 5 - 2)) for i in range(rounds))
        theirs = tuple(0.3 * (1 + 0.001 * ((3 * i) % 5 - 2)) for i in range(rounds))
        return DuelResult(
            Status.MEASURED, cases=(DuelCase("n=1", ours, theirs, "clock"),), library="PyTorch 9.9"
        )


async def test_the_last_incumbent_is_compared_with_the_library(tmp_path: Path) -> None:
    harness = WithLibrary()
    with Memory.open(tmp_path / "memory.db") as memory:
        result = await make(memory, harness).run()
        notes = memory.notes("c1")
        note = json.loads(notes[STRONGEST])
        assert result.incumbent is not None
        assert {name for name, _ in harness.asked} == {
            harness.asked[0][0]
        }  # a short one asks at its end only
        best = min(time for time in TIMES.values() if isinstance(time, float))
        assert note["ratio"] == pytest.approx(best / 0.3, rel=0.01)
        assert note["low"] < note["ratio"] < note["high"]
        assert strongest_ms(notes) == ("PyTorch 9.9", {"n=1": pytest.approx(0.3, rel=0.01)})


async def test_a_long_campaign_knows_it_from_the_beginning(tmp_path: Path) -> None:
    harness = WithLibrary()
    with Memory.open(tmp_path / "memory.db") as memory:
        await make(memory, harness, seconds=strongest.WORTH_S, evaluations=6).run()
    assert harness.asked[0][0].startswith("baseline")
    assert [rounds for _, rounds in harness.asked[:1]] == [8]
    assert not harness.asked[-1][0].startswith("baseline")


@pytest.mark.parametrize(
    ("refusal", "asked"),
    [
        (DuelResult(Status.NOT_RUN, "PyTorch with CUDA is not usable here: pip install torch"), 1),
        (DuelResult(Status.WRONG, "C is wrong", "values", "incumbent"), 1),
        (DuelResult(Status.CRASHED, "the device worker died", "crash"), 1),
        (DuelResult(Status.WRONG, "C is wrong", "values", "challenger"), 2),
        (HarnessError("the device worker died twice"), 1),
    ],
)
async def test_no_library_is_no_fault_of_the_campaign(
    tmp_path: Path, refusal: DuelResult | HarnessError, asked: int
) -> None:
    harness = WithLibrary()
    harness.refusal = refusal
    with Memory.open(tmp_path / "memory.db") as memory:
        result = await make(memory, harness, seconds=strongest.WORTH_S, evaluations=6).run()
        assert result.state == "finished"
        assert STRONGEST not in memory.notes("c1")
    assert len(harness.asked) == asked


async def test_on_another_machine_it_is_one_trip_at_the_end(tmp_path: Path) -> None:
    harness = WithLibrary(exclusive=False)
    with Memory.open(tmp_path / "memory.db") as memory:
        result = await make(memory, harness, seconds=strongest.WORTH_S, evaluations=6).run()
        note = json.loads(memory.notes("c1")[STRONGEST])
    assert result.incumbent is not None
    assert harness.asked == [(result.incumbent.description, 16)]
    assert note["ratio"] == pytest.approx(0.25 / 0.3, rel=0.01)
    assert note["source"] == "16 paired rounds"


async def test_a_machine_that_never_answers_does_not_fail_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strongest, "AWAITED", 0.001)
    harness = WithLibrary(exclusive=False)
    harness.silent = True
    with Memory.open(tmp_path / "memory.db") as memory:
        result = await make(memory, harness).run()
        assert STRONGEST not in memory.notes("c1")
    assert (result.state, len(harness.asked)) == ("finished", 1)
    assert result.confirmation is not None


@pytest.mark.parametrize("exclusive", [True, False])
async def test_a_device_that_was_never_undisturbed_is_no_comparison(tmp_path: Path, exclusive: bool) -> None:
    harness = WithLibrary(exclusive=exclusive)
    harness.undisturbed = 0.05
    with Memory.open(tmp_path / "memory.db") as memory:
        result = await make(memory, harness).run()
        assert STRONGEST not in memory.notes("c1")
    assert result.state == "finished"
