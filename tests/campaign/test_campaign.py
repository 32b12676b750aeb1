"""A whole campaign on a harness that answers from a table."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.campaign.baseline import need_baseline
from kernelwright.campaign.budget import Budget
from kernelwright.campaign.campaign import BaselineFailed, Campaign
from kernelwright.campaign.events import Silent
from kernelwright.campaign.settings import Settings
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.errors import HarnessError
from kernelwright.core.outcome import KILLED, Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.generation.base import Proposal
from kernelwright.harness.protocol import CompileResult
from kernelwright.memory.records import CampaignRecord, ProblemRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem

from .fakes import DEVICE, FakeHarness, template

FAST = template("fast", values=6)
SLOW = template("slow", values=6)
TIMES: dict[tuple[str, int], float | Status] = {
    **{("slow", x): 3.0 + x for x in range(1, 7)},
    **{("fast", x): 1.0 / x for x in range(1, 7)},
    ("fast", 5): Status.WRONG,
    ("fast", 6): Status.COMPILE_FAILED,
    ("baseline", 0): 2.0,
}


class Proposals:
    def __init__(self, *templates: object) -> None:
        self.left = [Proposal(t, t.name, "test", f"about {t.name}") for t in templates]  # type: ignore[attr-defined, arg-type]

    async def propose(self) -> Proposal | None:
        return self.left.pop(0) if self.left else None


def make(
    memory: Memory, harness: FakeHarness, *, seconds: float = 60.0, evaluations: int | None = None
) -> Campaign:
    problem = load_problem("vector_add")
    settings = Settings(
        problem="vector_add", device="cpu", seconds=seconds, evaluations=evaluations, young_budget=2
    )
    record = CampaignRecord("c1", problem.id, settings.model_dump_json(), DEVICE, "seed", 0.0)
    if not memory.campaigns():
        memory.start_campaign(record, ProblemRecord(problem.id, problem.name, "", "", ""))
    return Campaign(
        id="c1", settings=settings, problem=problem, harness=harness, memory=memory,
        proposer=Proposals(SLOW, FAST), listener=Silent(), budget=Budget(seconds, evaluations),
    )  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


async def test_everything_is_tried_recorded_once_and_the_best_leads(memory: Memory) -> None:
    harness = FakeHarness(TIMES)
    campaign, notes = make(memory, harness), list[str]()
    campaign.listener.note = notes.append  # type: ignore[method-assign]
    result = await campaign.run()
    assert notes.count("every configuration of every template has been tried") == 1
    assert result.state == "finished"
    assert result.baseline.time_ms == 2.0
    assert result.incumbent.description == "fast [X=4]"
    assert result.ratio == pytest.approx(0.125)
    assert result.confirmation is not None
    assert result.confirmation.ratio == pytest.approx(0.125, rel=0.01)
    assert result.statuses == {"compile_failed": 1, "measured": 11, "wrong": 1}
    assert result.experiments == 13
    recorded = list(memory.experiments("c1"))
    assert len({e.candidate for e in recorded}) == len(recorded) == 13
    assert recorded[0].outcome.times_ms() == {"n=1": 2.0}
    assert memory.milestones("c1")[-1].ratio == pytest.approx(0.125)
    assert harness.most_on_device == 1


async def test_what_the_winner_was_tried_on_is_noted_with_the_sizes_of_its_seed(memory: Memory) -> None:
    await make(memory, FakeHarness(TIMES)).run()
    (note,) = (value for key, value in memory.notes("c1").items() if key.startswith("trials:"))
    trials = load_problem("vector_add").every_trial(slow=False, seed=0)
    assert [entry["id"] for entry in json.loads(note)] == [trial.id for trial in trials]
    assert any(trial.told for trial in trials)


async def test_the_budget_in_experiments_holds(memory: Memory) -> None:
    result = await make(memory, FakeHarness(TIMES), evaluations=5).run()
    assert result.experiments == 5


async def test_the_budget_in_seconds_holds(memory: Memory) -> None:
    result = await make(memory, FakeHarness(TIMES, device_seconds=0.3), seconds=1.5).run()
    assert result.state == "finished"
    assert 1 <= result.experiments < 13


@pytest.mark.parametrize("how", [Status.WRONG, Status.COMPILE_FAILED])
async def test_a_baseline_that_fails_is_the_first_experiment_and_the_last(
    memory: Memory, how: Status
) -> None:
    need_baseline(memory, "c1")  # nothing was tried yet
    with pytest.raises(BaselineFailed) as ended:
        await make(memory, FakeHarness({**TIMES, ("baseline", 0): how})).run()
    (experiment,) = memory.experiments("c1")
    assert experiment.outcome.status is how
    assert experiment.outcome.reason in str(ended.value)
    assert memory.templates("c1")[experiment.template].proposer == "baseline"
    assert memory.campaign("c1").state == "failed"
    assert memory.milestones("c1") == []
    with pytest.raises(
        BaselineFailed, match=f"c1: its baseline does not pass .{how}: .*start a new campaign"
    ):
        need_baseline(memory, "c1")


async def test_a_baseline_whose_worker_was_killed_is_recorded_of_nobody(memory: Memory) -> None:
    class Killed(FakeHarness):
        async def benchmark(
            self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
        ) -> Outcome:
            return Outcome(Status.NOT_RUN, "ended with signal 9 once more", check=KILLED)

    with pytest.raises(HarnessError, match="baseline could not be measured: ended with signal 9 once more"):
        await make(memory, Killed(TIMES)).run()
    assert list(memory.experiments("c1")) == []
    need_baseline(memory, "c1")
    assert (await make(memory, FakeHarness(TIMES)).run()).state == "finished"


async def test_a_candidate_whose_worker_was_killed_loses_nothing_else(memory: Memory) -> None:
    class Killed(FakeHarness):
        async def benchmark(
            self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
        ) -> Outcome:
            if candidate.id in self.measured:  # when it is checked in full at the end
                return Outcome(Status.NOT_RUN, "ended with signal 9 once more", check=KILLED)
            return await super().benchmark(candidate, compiled, screen)

    result = await make(memory, Killed(TIMES)).run()
    assert result.incumbent.description == "fast [X=4]"


async def test_a_baseline_that_does_not_pass_ends_it_with_one_line(memory: Memory) -> None:
    times = {**TIMES, ("baseline", 0): Status.WRONG}
    with pytest.raises(BaselineFailed, match="vector_add: the baseline does not pass on cpu: wrong: because"):
        await make(memory, FakeHarness(times)).run()


async def test_stopping_finishes_cleanly_and_resuming_goes_on_without_repeating(memory: Memory) -> None:
    harness = FakeHarness(TIMES, device_seconds=0.01)
    campaign = make(memory, harness)
    running = asyncio.create_task(campaign.run())
    while len(harness.measured) < 4:
        await asyncio.sleep(0)
    campaign.stop.set()
    first = await running
    assert first.state == memory.campaign("c1").state == "interrupted"
    recorded = [e.candidate for e in memory.experiments("c1")]

    again = make(memory, harness)
    again.take_in(Proposal(_baseline(), "baseline", "baseline"))
    again.take_in(Proposal(SLOW, "slow", "test"))
    again.take_in(Proposal(FAST, "fast", "test"))
    again.recall()
    second = await again.run()
    everything = [e.candidate for e in memory.experiments("c1")]
    assert everything[: len(recorded)] == recorded
    assert len(set(everything)) == len(everything) == 13
    assert second.incumbent.description == "fast [X=4]"


async def test_an_equal_binary_is_measured_once(memory: Memory) -> None:
    harness = FakeHarness({**TIMES, **{("fast", x): 1.0 for x in range(1, 7)}}, same_digest=True)
    result = await make(memory, harness).run()
    assert result.experiments == 13
    assert len(set(harness.measured)) < 13


async def test_a_fault_of_the_harness_keeps_what_was_recorded(memory: Memory) -> None:
    from kernelwright.core.errors import DeviceLost

    class Dies(FakeHarness):
        async def benchmark(
            self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
        ) -> Outcome:
            if len(self.measured) == 3:
                raise DeviceLost("cuda:0 does not answer")
            return await super().benchmark(candidate, compiled, screen)

    with pytest.raises(DeviceLost):
        await make(memory, Dies(TIMES)).run()
    assert len([e for e in memory.experiments("c1") if e.outcome.cases]) == 3


def _baseline() -> object:
    from kernelwright.core.candidate import parse_template

    return parse_template(load_problem("vector_add").baseline_source, "baseline")


async def test_a_milestone_lost_to_a_kill_is_noted_on_resume(memory: Memory) -> None:
    campaign = make(memory, FakeHarness(TIMES), evaluations=6)
    original = memory.milestone
    memory.milestone = lambda milestone: None  # type: ignore[method-assign]
    await campaign.run()
    memory.milestone = original  # type: ignore[method-assign]
    assert memory.milestones("c1") == []
    again = make(memory, FakeHarness(TIMES), evaluations=6)
    for arm in campaign.policy.arms.values():
        again.take_in(arm.proposal)
    again.recall()
    assert [m.experiment for m in memory.milestones("c1")] == [again.standing.incumbent.number]  # type: ignore[union-attr]


async def test_a_template_without_a_valid_configuration_is_left_out(memory: Memory) -> None:
    impossible = template("impossible", extra="").source.replace(
        "[[launch]]", '[constraints]\nnever = "X > 100"\n[[launch]]'
    )
    campaign = make(memory, FakeHarness(TIMES), evaluations=5)
    campaign.proposer = Proposals(parse_template(impossible, "impossible"), FAST)
    notes: list[str] = []
    campaign.listener.note = notes.append  # type: ignore[method-assign]
    result = await campaign.run()
    assert result.experiments == 5
    assert any("left out" in note and "never" in note for note in notes)
