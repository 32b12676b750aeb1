"""What goes wrong on the other machine and is no candidate's fault: items stay open, and who runs it again goes on."""

from pathlib import Path

import pytest

from kernelwright.core.errors import HarnessError
from kernelwright.core.outcome import Status
from kernelwright.harness.detached.evaluate import evaluate
from kernelwright.harness.detached.folder import read_results
from kernelwright.harness.detached.records import Result
from kernelwright.harness.local import LocalHarness

from .test_detached import MAKER, exchanged


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(LocalHarness, "benchmark", fail)


async def test_an_item_that_cannot_be_measured_stays_open_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await exchanged(tmp_path)
    batch, results, told = tmp_path / "r.json", tmp_path / "again.jsonl", list[str]()
    with monkeypatch.context() as broken:
        failing(broken, HarnessError("the device is gone"))
        count = await evaluate(batch, results, device="cpu", maker=MAKER, notify=told.append)
    assert [fault.partition(": ")[2] for fault in count.faults] == ["the device is gone"]
    assert any(line.endswith("stays open: the device is gone") for line in told)
    again = await evaluate(batch, results, device="cpu", maker=MAKER)
    assert (again.done, again.faults) == (1, [])
    found = [record for record in read_results(results).records if isinstance(record, Result)]
    assert [record.outcome and record.outcome.status for record in found] == [Status.MEASURED]


async def test_a_fault_of_ours_names_the_item_that_was_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await exchanged(tmp_path)
    failing(monkeypatch, RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug") as raised:
        await evaluate(tmp_path / "r.json", tmp_path / "again.jsonl", device="cpu", maker=MAKER)
    (note,) = raised.value.__notes__
    assert note.startswith("in flight: the item ")
    assert note.endswith("the same command goes on")
