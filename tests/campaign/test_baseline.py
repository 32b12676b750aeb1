"""A campaign whose baseline fails, from its start to what a person is told when it is to go on."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from kernelwright.campaign.baseline import BaselineFailed, failed
from kernelwright.campaign.events import Silent
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.sitting import _record, _tell_timing, resume_campaign, start_campaign
from kernelwright.core.outcome import Outcome, Status
from kernelwright.devices.base import TimingProtocol
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem
from kernelwright.report import as_json, build_report
from tests.problems.folders import BASELINE, write_problem

from .fakes import FakeHarness

BROKEN = BASELINE.replace("factor * X[i]", "factor * Z[i]")


async def test_it_is_recorded_shown_and_not_gone_on_with(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / "baseline.cu").write_text(BROKEN)
    settings = Settings(problem=str(folder), device="cpu", seconds=5.0, evaluations=1, slow_cases=True)
    with pytest.raises(BaselineFailed, match="scale: the baseline does not pass on cpu: compile_failed: "):
        await start_campaign(settings, tmp_path, Silent())
    with Memory.open(tmp_path / "memory.db", read_only=True) as memory:
        record = memory.campaign("last")
        (experiment,) = memory.experiments(record.id)
        report = as_json(build_report(memory, record))
    assert record.state == "failed"
    assert experiment.outcome.reason.startswith("candidate.cu:12: ")
    assert "candidate.cu:12: " in report
    with pytest.raises(
        BaselineFailed, match=f"^{record.id}: its baseline does not pass .*start a new campaign$"
    ):
        await resume_campaign("last", tmp_path, Silent(), {"seconds": 10.0})


def test_a_long_name_does_not_fill_the_id() -> None:
    problem = load_problem("vector_add")
    named = replace(problem, spec=problem.spec.model_copy(update={"name": "a" * 500}))
    record = _record(named, Settings(problem="p", device="cpu"), FakeHarness({}))
    assert record.id.startswith("a" * 40 + "-2")
    assert len(record.id) < 70


class Timed:
    """A harness of today."""

    timing = TimingProtocol()


def test_a_campaign_that_was_timed_otherwise_is_told_so() -> None:
    listener, told = Silent(), list[str]()
    listener.note = told.append  # type: ignore[method-assign]
    today = asdict(TimingProtocol())
    older = {key: value for key, value in today.items() if key != "queue_group"}
    for before in (None, json.dumps(today), json.dumps(older)):
        _tell_timing(before, Timed(), listener)  # type: ignore[arg-type]
    assert [text.partition(":")[0] for text in told] == [
        "this version times otherwise than the one that began the campaign"
    ]


@pytest.mark.parametrize(("slow", "hinted"), [(False, True), (True, False)])
def test_a_slow_device_that_got_all_cases_is_told_of_the_small_ones(slow: bool, hinted: bool) -> None:
    """Who starts a campaign whose device is elsewhere need not know what that is."""
    outcome = Outcome(Status.TIMED_OUT, "case N=1: still running when its 30 s were over")
    error = failed(load_problem("vector_add"), FakeHarness({}).facts, outcome, slow_cases=slow)
    assert "its 30 s were over" in str(error)
    assert ("--slow-cases" in str(error)) == hinted
