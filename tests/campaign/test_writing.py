"""Structure from models in a whole campaign: trials, repairs, budgets, resuming in every phase."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kernelwright.campaign.budget import Budget
from kernelwright.campaign.campaign import Campaign
from kernelwright.campaign.events import Silent
from kernelwright.campaign.origins import proposal_of
from kernelwright.campaign.policy import Policy, Work
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.sitting import _budget_left
from kernelwright.campaign.writers import _Numbers
from kernelwright.campaign.writing import Writing
from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import MemoryFileError, UserError
from kernelwright.core.outcome import Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.generation.base import Proposal
from kernelwright.generation.model import ModelError, ModelReply, ModelRequest, Usage
from kernelwright.harness.protocol import CompileResult, DuelResult
from kernelwright.memory.records import CampaignRecord, ProblemRecord, RequestRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem

from .fakes import DEVICE, FakeHarness, template
from .test_campaign import Proposals, _baseline


def proposal(name: str, *, values: int = 4, direction: str = "tiles") -> str:
    """A reply with one template that has a name of its own."""
    code = template(name, values).source.replace(
        "void k(float* A) {}", f"void k(float* A) {{ A[0] = {name[1:]}; }}"
    )
    return (
        f"<proposal>\nkind: template\nname: {name}\ndirection: {direction}\nrationale: about {name}\n"
        f"predicted: half the time\n```\n{code}```\n</proposal>\n"
    )


STOP = "<proposal>\nkind: stop\nrationale: enough\n</proposal>"


@dataclass
class Scripted:
    """A model that says what it was told to; ``None`` never answers."""

    texts: list[str | Exception | None]
    name: str = "scripted:x"
    asked: list[ModelRequest] = field(default_factory=list)

    async def ask(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        text = self.texts.pop(0) if self.texts else STOP
        if text is None:
            await asyncio.Event().wait()
        if isinstance(text, Exception):
            raise text
        return ModelReply(str(text), Usage(100, 50, 0.1), 2.0)

    async def close(self) -> None:
        pass


class Named(FakeHarness):
    """Times by the name that the model gave, which the campaign extends by the request's number."""

    def _answer(self, candidate: object) -> float | Status:
        name, x = str(candidate).split("-")[0].split(" ")[0], candidate.configuration.get("X", 0)  # type: ignore[attr-defined]
        return self.times.get((name, int(x)), 1.0)


TIMES: dict[tuple[str, int], float | Status] = {
    ("baseline", 0): 2.0,
    **{("t1", x): 1.8 - 0.01 * x for x in range(1, 5)},
    **{("t2", x): 1.0 - 0.01 * x for x in range(1, 5)},
    **{("t3", x): Status.COMPILE_FAILED for x in range(1, 5)},
    **{("t4", x): 0.5 for x in range(1, 5)},
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


def make(memory: Memory, model: Scripted, harness: FakeHarness | None = None, **more: object) -> Campaign:
    problem = load_problem("vector_add")
    values = {
        "problem": "vector_add",
        "device": "cpu",
        "seconds": 60.0,
        "young_budget": 2,
        "proposals": 2,
        **more,
    }
    settings = Settings.model_validate(values)
    record = CampaignRecord("c1", problem.id, settings.model_dump_json(), DEVICE, "seed", 0.0)
    if not memory.campaigns():
        memory.start_campaign(record, ProblemRecord(problem.id, problem.name, "", "", ""))
    return Campaign(
        id="c1", settings=settings, problem=problem, harness=harness or Named(TIMES), memory=memory,
        proposer=Proposals(), listener=Silent(), budget=Budget(settings.seconds, settings.evaluations),
        models={model.name: model},
    )  # fmt: skip


def again(memory: Memory, model: Scripted, **more: object) -> Campaign:
    """As ``resume`` does."""
    campaign = make(memory, model, **more)
    known = memory.templates("c1")
    for experiment in memory.experiments("c1"):
        record = known[experiment.template]
        campaign.take_in(proposal_of(record))
    campaign.recall()
    return campaign


async def test_structure_and_numbers_go_on_together(memory: Memory) -> None:
    model = Scripted([proposal("t1") + proposal("t2"), proposal("t4", values=2)])
    result = await make(memory, model).run()
    assert result.incumbent.description.startswith("t4-0002")
    assert result.experiments == 1 + 4 + 4 + 2
    templates = {record.name: record for record in memory.templates("c1").values()}
    assert templates["t4-0002"].proposer == "scripted:x"
    assert templates["t4-0002"].rationale == "about t4"
    states = [(request.purpose, request.state, request.cost_usd) for request in memory.requests("c1")]
    assert states[:2] == [("structure", "answered", 0.1)] * 2
    assert "t2-0001 predicted: half the time; measured: 0." in model.asked[-1].prompt


async def test_a_failed_trial_is_repaired_and_then_dropped(memory: Memory) -> None:
    model = Scripted([proposal("t3"), proposal("t3") + "again", proposal("t1")])
    result = await make(memory, model, repairs=2, max_requests=3).run()
    purposes = [request.purpose for request in memory.requests("c1")]
    assert purposes[0] == "structure"
    assert "line 3: no" in model.asked[1].prompt
    assert result.statuses[Status.COMPILE_FAILED] >= 1
    assert len(model.asked) == 3


async def test_every_failed_attempt_is_told_and_names_the_model_once(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelwright.campaign.writing.REST_S", 0.0)
    binary, huge = "\ufffd" * 200_000, "x" * (2 << 20)
    down = ModelError("scripted:x: exit code 1")
    model = Scripted([binary, huge, down, down])
    campaign, notes = make(memory, model, repairs=2, max_requests=4), list[str]()
    campaign.listener.note = notes.append  # type: ignore[method-assign]
    await campaign.run()
    assert [note for note in notes if note.startswith("scripted:x")] == [
        "scripted:x: asked again after 0001: the reply is no text: too much of it cannot be printed",
        "scripted:x: asked again after 0002: the reply is larger than 1024 KiB: give the code only",
        "scripted:x: a proposal was dropped: exit code 1",
        "scripted:x: exit code 1",
    ]
    kept = [request.reason for request in memory.requests("c1")]
    assert [reason[:20] for reason in kept] == [
        "the reply is no text",
        "the reply is larger ",
        *["scripted:x: exit cod"] * 2,
    ]
    assert len(model.asked[1].prompt) < 1000


class Stuck(Named):
    """Another machine that does not come back with a model's template."""

    def __init__(self) -> None:
        super().__init__(TIMES, places=8, exclusive=False)

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        if candidate.template.name != "baseline":
            await asyncio.Event().wait()
        return await super().benchmark(candidate, compiled, screen)


async def test_what_failed_is_told_though_the_campaign_ends_within_the_round(memory: Memory) -> None:
    block = "```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```"
    edit = f"<proposal>\nkind: edit\nparent: nobody\n{block}\n</proposal>\n"
    model = Scripted([proposal("t1") + edit])
    campaign, notes = make(memory, model, Stuck(), repairs=1, max_requests=1), list[str]()

    def note(text: str) -> None:
        notes.append(text)
        campaign.stop.set()

    campaign.listener.note = note  # type: ignore[method-assign]
    async with asyncio.timeout(10):
        await campaign.run()
    told = "scripted:x: a proposal was dropped: there is no template 'nobody' to edit"
    assert notes == [told]
    resumed = again(memory, Scripted([]), repairs=1, max_requests=1)
    resumed.listener.note = notes.append  # type: ignore[method-assign]
    await resumed.run()
    assert notes.count(told) == 2  # the reply is followed again


async def test_small_templates_that_are_all_tried_do_not_keep_models_from_being_asked(memory: Memory) -> None:
    model = Scripted(["".join(proposal(f"t{i}", values=1) for i in (1, 10, 11, 12)), proposal("t4")])
    result = await make(memory, model, young_budget=8, proposals=2, seconds=5.0, max_requests=2).run()
    assert len(model.asked) == 2
    assert result.incumbent.description.startswith("t4-0002")


async def test_the_caps_on_requests_and_money_hold(memory: Memory) -> None:
    model = Scripted([proposal(f"t{i}") for i in range(10, 40)])
    await make(memory, model, max_cost_usd=0.35).run()
    assert sum(request.cost_usd or 0 for request in memory.requests("c1")) <= 0.35
    assert len(model.asked) == 3


async def test_a_model_that_never_answers_does_not_keep_the_search_from_ending(memory: Memory) -> None:
    result = await make(memory, Scripted([None]), seconds=1.0).run()
    assert result.state == "finished"
    assert result.experiments == 1
    assert [request.state for request in memory.requests("c1")] == ["asked"]


async def test_a_model_that_fails_is_left_in_the_end(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.campaign.writing.REST_S", 0.0)
    model = Scripted([ModelError("down")] * 50)
    result = await make(memory, model).run()
    assert result.state == "finished"
    assert len(model.asked) == 12


async def test_a_model_that_is_used_up_is_asked_once_more_and_the_numbers_go_on(memory: Memory) -> None:
    model = Scripted([proposal("t1", values=4), *[ModelError("scripted:x: none left", is_over=True)] * 5])
    campaign, notes = make(memory, model), list[str]()
    campaign.listener.note = notes.append  # type: ignore[method-assign]
    result = await campaign.run()
    assert len(model.asked) == 2
    assert notes == [
        "scripted:x: asked no more: none left",
        "every configuration of every template has been tried",
    ]
    assert result.experiments == 1 + 4


async def test_only_what_came_to_its_end_has_spent_its_budget(memory: Memory) -> None:
    """Interrupted or killed behind the last experiment, a campaign has its duels and confirmation before it."""
    campaign = make(memory, Scripted([]), evaluations=1, max_requests=0)
    await campaign.run()
    ended = replace(memory.campaign("c1"), state="finished")
    for state in ("running", "interrupted"):
        _budget_left(memory, replace(ended, state=state), campaign.settings, "c1")
    hasty = campaign.settings.model_copy(update={"seconds": 0.0})
    with pytest.raises(UserError, match=r"its budget of 0 s is spent: give --seconds above"):
        _budget_left(memory, replace(ended, state="interrupted"), hasty, "c1")
    with pytest.raises(UserError, match="its budget of 1 experiments is spent: give --evaluations above 1"):
        _budget_left(memory, ended, campaign.settings, "c1")


async def test_killed_while_it_waits_it_asks_the_same_again(memory: Memory) -> None:
    first = Scripted([None])
    await make(memory, first, seconds=0.5).run()
    second = Scripted([proposal("t2")])
    result = await again(memory, second, max_requests=1).run()
    assert second.asked[0].id == first.asked[0].id == "0001"
    assert result.incumbent.description.startswith("t2-0001")
    assert len(memory.requests("c1")) == 1


async def test_what_it_waited_for_is_asked_again_also_where_numbers_look_better(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply may lie there by now; numbers must not take all evaluations before it is read."""
    await make(memory, Scripted([proposal("t1", values=60)]), evaluations=6, max_requests=1).run()
    memory.request(RequestRecord("c1", "0002", "scripted:x", "structure", "asked", "i", "prompt", None))
    monkeypatch.setattr(Writing, "_wanted", lambda _: False)
    model = Scripted([proposal("t2")])
    result = await again(memory, model, evaluations=12, max_requests=2).run()
    assert [request.id for request in model.asked] == ["0002"]
    assert result.incumbent.description.startswith("t2-0002")
    assert result.experiments == 12


async def test_killed_behind_a_reply_its_proposals_are_not_lost(memory: Memory) -> None:
    """Only the baseline and one of two templates were tried when the campaign died."""
    model = Scripted([proposal("t1", values=1) + proposal("t2")])
    await make(memory, model, evaluations=2, max_requests=1).run()
    assert len(list(memory.experiments("c1"))) == 2
    silent = Scripted([])
    result = await again(memory, silent, max_requests=1).run()
    assert not silent.asked
    assert result.incumbent.description.startswith("t2-0001")
    assert result.experiments == 1 + 1 + 4


async def test_killed_behind_the_reply_to_a_repair_it_is_not_lost(memory: Memory) -> None:
    """What failed was recorded, its repair answered but not tried."""
    model = Scripted([proposal("t3", values=1), proposal("t1", values=1)])
    await make(memory, model, evaluations=2, max_requests=2).run()
    assert [request.purpose for request in memory.requests("c1")] == ["structure", "repair"]
    assert [e.outcome.status for e in memory.experiments("c1")] == [Status.MEASURED, Status.COMPILE_FAILED]
    silent = Scripted([])
    result = await again(memory, silent, max_requests=2).run()
    assert not silent.asked
    assert result.incumbent.description.startswith("t1-0002")
    assert result.experiments == 3


async def test_a_damaged_record_is_not_taken_for_a_trial_that_never_was(
    memory: Memory, tmp_path: Path
) -> None:
    await make(memory, Scripted([proposal("t3", values=1)]), evaluations=2, max_requests=1).run()
    campaign = again(memory, Scripted([]), max_requests=2)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as file, file:
        file.execute("DROP TRIGGER experiments_keep_update")
        assert file.execute("UPDATE experiments SET spent = '[]' WHERE number = 2").rowcount == 1
    with pytest.raises(MemoryFileError, match=r"experiment 2 cannot be read .* the memory is damaged"):
        async with asyncio.timeout(20):  # not when its 60 s are over
            await campaign.run()


async def test_a_repair_may_be_nearly_the_same_as_what_it_mends(memory: Memory) -> None:
    body = "".join(f"A[{i}] = {i + 7}; " for i in range(80))
    drafts = [proposal(name).replace("{ A[0]", f"{{ {body} A[0]") for name in ("t3", "t1")]
    await make(memory, Scripted(list(drafts)), max_requests=2).run()
    names = [record.name for record in memory.templates("c1").values()]
    assert names == ["baseline", "t3-0001", "t1-0002"]


async def test_nobody_else_may(memory: Memory) -> None:
    body = "".join(f"A[{i}] = {i + 7}; " for i in range(80))
    drafts = [proposal(name).replace("{ A[0]", f"{{ {body} A[0]") for name in ("t2", "t1")]
    await make(memory, Scripted(list(drafts)), max_requests=2).run()
    assert [record.name for record in memory.templates("c1").values()] == ["baseline", "t2-0001"]


@pytest.mark.parametrize(
    ("right", "wrong"), [('extern "C"', '#include <missing.h>\nextern "C"'), ("[1, 2, 3, 4]", "[1, 2, 3]")]
)
@pytest.mark.parametrize("behind", [[], [STOP]])
async def test_a_mended_header_or_list_of_numbers_is_no_twin_of_what_failed(
    memory: Memory, right: str, wrong: str, behind: list[str]
) -> None:
    """Neither as the repair that was asked for nor, behind a repair that gave up, as a proposal of the next round."""
    good = proposal("t1")
    bad = good.replace(right, wrong).replace("name: t1", "name: t3")
    assert good.count(right) == 1
    result = await make(memory, Scripted([bad, *behind, good]), max_requests=2 + len(behind)).run()
    assert result.incumbent.description.startswith(f"t1-000{2 + len(behind)}")


async def test_what_failed_is_not_tried_again_under_another_name(memory: Memory) -> None:
    bad = proposal("t3")
    model = Scripted([bad, bad.replace("float* A", "float* B").replace("A[0]", "B[0]")])
    await make(memory, model, max_requests=2).run()
    assert [record.name for record in memory.templates("c1").values()] == ["baseline", "t3-0001"]


async def test_the_same_again_is_no_second_template(memory: Memory) -> None:
    model = Scripted([proposal("t1"), proposal("t1").replace("float* A", "float* B").replace("A[0]", "B[0]")])
    await make(memory, model, max_requests=2).run()
    assert [record.name for record in memory.templates("c1").values()] == ["baseline", "t1-0001"]


async def test_two_of_a_reply_are_told_apart_also_while_a_lane_has_the_policy(memory: Memory) -> None:
    one = proposal("t1")
    model = Scripted([one + one.replace("float* A", "float* B").replace("A[0]", "B[0]")])
    campaign, ask, lanes = make(memory, model, max_requests=1), model.ask, list[asyncio.Task[None]]()

    async def lane() -> None:
        async with campaign.asking:
            await asyncio.sleep(0.1)

    async def asked(request: ModelRequest) -> ModelReply:
        reply = await ask(request)
        lanes.append(asyncio.create_task(lane()))
        await asyncio.sleep(0)
        return reply

    model.ask = asked  # type: ignore[method-assign]
    await campaign.run()
    assert lanes[0].done()
    assert [record.name for record in memory.templates("c1").values()] == ["baseline", "t1-0001"]


def test_the_baseline_of_the_tests_is_the_problems() -> None:
    assert _baseline().name == "baseline"


async def test_structure_alone(memory: Memory) -> None:
    model = Scripted([proposal("t1") + proposal("t2")])
    result = await make(memory, model, tuning=False, max_requests=1).run()
    assert result.experiments == 3
    assert [e.configuration.get("X", 1) for e in memory.experiments("c1")] == [1, 1, 1]


async def test_an_answered_request_is_never_asked_over(memory: Memory) -> None:
    """Of three requests at once, the first and the last were answered when the campaign died."""
    await make(memory, Scripted([]), max_requests=0).run()
    for number, state in (("0001", "answered"), ("0002", "asked"), ("0003", "answered")):
        reply = STOP if state == "answered" else None
        purpose = "structure" if number == "0002" else "repair"
        memory.request(
            RequestRecord("c1", number, "scripted:x", purpose, state, "i", f"prompt {number}", reply)
        )
    model = Scripted([STOP, STOP, STOP])
    await again(memory, model).run()
    assert [request.id for request in model.asked[:2]] == ["0002", "0004"]
    kept = {record.id: record.prompt for record in memory.requests("c1")}
    assert (kept["0001"], kept["0003"]) == ("prompt 0001", "prompt 0003")


async def test_what_was_only_asked_keeps_its_number(memory: Memory) -> None:
    """Three repairs waited when the campaign died; they come again in another order, behind a new structure."""
    kept = [RequestRecord("c1", f"000{n}", "m", "repair", "asked", "i", f"mend {n}", None) for n in (2, 3, 4)]
    numbers = _Numbers({"0001"}, kept)
    assert [numbers("repair", f"mend {n}") for n in (4, 2)] == ["0004", "0002"]
    assert [numbers("structure", "more"), numbers("repair", "mend 7")] == ["0005", "0006"]
    assert numbers("repair", "mend 3") == "0003"
    assert numbers("repair", "mend 3") == "0007"


class Late(Scripted):
    """Its second reply comes when the numbers have taken all that they may."""

    async def ask(self, request: ModelRequest) -> ModelReply:
        if self.asked:
            while len(list(self.memory.experiments("c1"))) < self.until:
                await asyncio.sleep(0.005)
        return await super().ask(request)


async def test_what_is_on_its_way_finds_evaluations_left(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Writing, "_wanted", lambda _: True)  # a round follows the other at once
    times = TIMES | {("t9", x): 1.9 - 0.001 * x for x in range(1, 41)}
    model = Late([proposal("t9", values=40), proposal("t4", values=2)])
    model.memory, model.until = memory, 15  # type: ignore[attr-defined]
    campaign = make(memory, model, Named(times), evaluations=19, max_requests=2)
    result = await campaign.run()
    assert result.experiments == 19
    assert result.incumbent.description.startswith("t4-0002")
    tried = [e.template for e in memory.experiments("c1")]
    names = {record.id: record.name for record in memory.templates("c1").values()}
    assert [names[t] for t in tried].count("t4-0002") == 2
    assert campaign.writing.reserved == 0


class Queue(Named):
    """Another machine: what is asked waits for a trip, but the baseline and the first of a template."""

    def __init__(self) -> None:
        super().__init__({("baseline", 0): 2.0}, places=8, exclusive=False)
        self.waiting: list[str] = []
        self.trip = asyncio.Event()

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        if candidate.configuration.get("X", 1) != 1:
            self.waiting.append(candidate.template.name)
            await self.trip.wait()
        return await super().benchmark(candidate, compiled, screen)


async def test_new_templates_find_a_place_in_the_queue_of_another_machine(memory: Memory) -> None:
    queue = Queue()
    campaign = make(memory, Scripted([proposal("t9", values=40), None]), queue)
    running = asyncio.create_task(campaign.run())
    async with asyncio.timeout(10):
        while len(queue.waiting) < 6:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert queue.waiting == ["t9-0001"] * 6  # and two places are kept
        campaign.take_in(Proposal(template("t4"), "t4", "a model"))
        campaign.wake()
        while "t4" not in queue.waiting:
            await asyncio.sleep(0.01)
        campaign.stop.set()
        queue.trip.set()
        await running


class NoDuels(Named):
    """Another machine, where paired runs wait for a trip that does not come."""

    def __init__(self) -> None:
        super().__init__(TIMES, places=8, exclusive=False)

    async def duel(self, *_: object, **__: object) -> DuelResult:
        await asyncio.Event().wait()
        raise AssertionError


async def test_what_was_not_confirmed_yet_is_built_on_all_the_same(memory: Memory) -> None:
    model = Scripted([proposal("t2"), None])
    campaign = make(memory, model, NoDuels())
    running = asyncio.create_task(campaign.run())
    async with asyncio.timeout(10):
        while len(model.asked) < 2:
            await asyncio.sleep(0.01)
    campaign.stop.set()
    await asyncio.wait({running}, timeout=5)
    running.cancel()
    prompt = model.asked[1].prompt
    assert "### The fastest so far: `" in prompt
    assert "t2-0001 | tiles | X=4 | 1.000x" in prompt
    assert "The fastest so far has still to beat the incumbent" in prompt


def test_kept_evaluations_are_at_most_half_and_of_none_without_a_bound() -> None:
    assert not Budget(60.0).short(10_000, 48)
    assert [Budget(60.0, 100).short(n, 48) for n in (51, 52)] == [False, True]
    assert [Budget(60.0, 40).short(n, 48) for n in (19, 20)] == [False, True]


async def test_a_fault_of_ours_on_a_reply_ends_neither_the_campaign_nor_resume(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    urge = Policy.urge

    def broken(policy: Policy, template: str) -> Work | None:
        if policy.arms[template].proposal.template.name.startswith("t1-"):
            raise OverflowError("int too large to convert to float")
        return urge(policy, template)

    monkeypatch.setattr(Policy, "urge", broken)
    result = await make(memory, Scripted([proposal("t1") + proposal("t2")])).run()
    assert result.incumbent.description.startswith("t2-0001")
    assert [record.name for record in memory.templates("c1").values()] == ["baseline", "t2-0001"]
    assert "OverflowError: int too large" in memory.requests("c1")[0].reason
    resumed = await again(memory, Scripted([])).run()
    assert resumed.incumbent.description.startswith("t2-0001")
