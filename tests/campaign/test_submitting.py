"""What a campaign sends to a board, and what it does with the answers."""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.campaign.budget import Budget
from kernelwright.campaign.campaign import Campaign
from kernelwright.campaign.contact import LOST
from kernelwright.campaign.events import Silent
from kernelwright.campaign.quota import Quota
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.writing import STAGNANT
from kernelwright.core.candidate import Candidate
from kernelwright.core.configuration import Configuration
from kernelwright.core.goal import parse_goal
from kernelwright.core.outcome import Status
from kernelwright.generation.base import Proposal
from kernelwright.leaderboard.base import Limits, Mode, Place, Ranking, RateLimited, Result, Sent
from kernelwright.memory.records import CampaignRecord, ProblemRecord, SubmissionRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem

from .boards import FakeBoard, attach, died, no_sleep
from .fakes import DEVICE, FakeHarness, key, template
from .test_campaign import Proposals, _baseline

STEPS = [template(f"step{n}", values=1) for n in range(1, 5)]
TIMES: dict[tuple[str, int], float | Status] = {
    ("baseline", 0): 2.0,
    **{(f"step{n}", 1): 2.0 / 2**n for n in range(1, 5)},
}


class Heard(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def has(self, text: str) -> bool:
        return any(text in note for note in self.notes)


def official(factor: float = 1.0) -> Callable[[Candidate], float]:
    def time(candidate: Candidate) -> float:
        answer = TIMES[key(candidate)]
        assert not isinstance(answer, Status)
        return factor * answer

    return time


async def make(
    memory: Memory, board: FakeBoard, *, steps: int = 4, goal: str | None = None, harness: FakeHarness | None = None,
    resumed: bool = False, seconds: float = 60.0, **values: object,
) -> Campaign:  # fmt: skip
    problem = load_problem("vector_add")
    settings = Settings(
        problem="vector_add", device="cpu", seconds=seconds, young_budget=1, goal=goal, board="http://h/p"
    )
    if not resumed:
        record = CampaignRecord("c1", problem.id, settings.model_dump_json(), DEVICE, "mean", 0.0)
        memory.start_campaign(record, ProblemRecord(problem.id, problem.name, "", "", ""))
    campaign = Campaign(
        id="c1", settings=settings, problem=problem, harness=harness or FakeHarness(TIMES, device_seconds=0.01),
        memory=memory, proposer=Proposals(*STEPS[:steps]), listener=Heard(), budget=Budget(seconds),
        board=await attach(board, **values),
    )  # fmt: skip
    submitting = campaign.submitting
    assert submitting is not None
    submitting.outbox.sleep = no_sleep
    if resumed:
        for each in (_baseline(), *STEPS):
            campaign.take_in(Proposal(each, each.name, "test"))
        campaign.recall()
    return campaign


def heard(campaign: Campaign) -> Heard:
    assert isinstance(campaign.listener, Heard)
    return campaign.listener


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


async def test_the_baseline_first_then_what_won_each_ranked_after_its_test(memory: Memory) -> None:
    board = FakeBoard(official())
    campaign = await make(memory, board)
    result = await campaign.run()
    assert result.incumbent.description == "step4 [X=1]"
    assert [(name.split()[0], mode) for name, mode in board.sent[:2]] == [
        ("baseline", Mode.TEST),
        ("baseline", Mode.RANKED),
    ]
    names = [name for name, mode in board.sent if mode is Mode.RANKED]
    assert names[-1] == "step4 [X=1]"
    assert len(set(names)) == len(names)
    for n, (name, mode) in enumerate(board.sent):
        assert mode is Mode.TEST or board.sent[n - 1] == (name, Mode.TEST)
    assert result.board is not None
    assert (result.board["rank"], result.board["entries"]) == (2, 4)
    assert heard(campaign).has("official and local times agree")
    places = memory.places("c1")
    assert [places[0].rank, places[-1].rank] == [None, 2]
    assert places[-1].ahead_s == pytest.approx(1e-4)
    ranked = {r.candidate: r.rank for r in memory.submissions("c1") if r.mode == "ranked"}
    assert ranked[result.incumbent.id] == 2
    assert ranked[result.baseline.id] == 4


async def test_without_submit_ranks_are_read_and_nothing_is_sent(memory: Memory) -> None:
    board = FakeBoard(official())
    campaign = await make(memory, board, submit=False)
    result = await campaign.run()
    assert board.sent == []
    assert memory.submissions("c1") == []
    assert memory.places("c1")[-1].entries == 3
    assert result.board is not None
    assert result.board["stopped"] == "nothing is sent without --submit"


@pytest.mark.parametrize(
    ("factor", "cases", "said", "sends"),
    [
        (1.01, True, "agree", True),
        (1.3, True, "without a pattern", False),  # one case: nothing to tell a factor by
        (1.0, False, "agree", True),
    ],
)
async def test_calibration_decides_whether_anything_follows(
    memory: Memory, factor: float, cases: bool, said: str, sends: bool
) -> None:
    board = FakeBoard(official(factor), tells_cases=cases)
    campaign = await make(memory, board)
    await campaign.run()
    assert heard(campaign).has(said)
    assert ((("step4 [X=1]", Mode.RANKED)) in board.sent) is sends
    benchmarks = [mode for _, mode in board.sent if mode is Mode.BENCHMARK]
    assert len(benchmarks) == (0 if cases else 1)
    assert heard(campaign).has("nothing more is sent") is not sends


async def test_uncalibrated_sends_nevertheless(memory: Memory) -> None:
    board = FakeBoard(official(1.3))
    await (await make(memory, board, uncalibrated=True)).run()
    assert ("step4 [X=1]", Mode.RANKED) in board.sent


async def test_a_baseline_that_the_board_refuses_stops_submitting_only(memory: Memory) -> None:
    board = FakeBoard(official(), fails=lambda candidate, _: candidate.template.name == "baseline")
    campaign = await make(memory, board)
    result = await campaign.run()
    assert result.state == "finished"
    assert len(board.sent) == 1
    assert heard(campaign).has("the baseline did not pass there (test: failed: a value is wrong)")


async def test_one_ranked_submission_is_kept_for_the_winner(memory: Memory) -> None:
    board = FakeBoard(official())
    await (await make(memory, board, max_submissions=2)).run()
    ranked = [name for name, mode in board.sent if mode is Mode.RANKED]
    assert ranked[0].startswith("baseline")
    assert ranked[1:] == ["step4 [X=1]"]


async def test_with_one_submission_the_baseline_is_only_measured(memory: Memory) -> None:
    board = FakeBoard(official())
    await (await make(memory, board, max_submissions=1)).run()
    assert [mode for name, mode in board.sent if name.startswith("baseline")] == [Mode.TEST, Mode.BENCHMARK]
    assert [name for name, mode in board.sent if mode is Mode.RANKED] == ["step4 [X=1]"]


async def test_a_gain_within_the_noise_is_not_sent(memory: Memory) -> None:
    """The duel's interval decides: 0.1 % here."""
    times = {**TIMES, ("step1", 1): 1.0, ("step2", 1): 0.999}
    board = FakeBoard(lambda candidate: float(times[key(candidate)]))
    await (await make(memory, board, steps=2, harness=FakeHarness(times, device_seconds=0.01))).run()
    assert [name for name, mode in board.sent if mode is Mode.RANKED][1:] == ["step1 [X=1]"]


async def test_a_leader_that_no_row_of_duels_leads_to_is_compared_with_what_was_sent(memory: Memory) -> None:
    """One can lead by rule: then the two meet in a duel of their own, which the search knows nothing of."""
    board = FakeBoard(official())
    campaign = await make(memory, board)
    forget = {f"step{n}" for n in (2, 3)}

    async def none_won(stopped: Callable[[], bool]) -> bool:
        contender = campaign.standing.contender()
        if contender is None:
            return False
        if campaign.candidates[contender.candidate].template.name in forget:
            campaign.standing.promote(contender.candidate)
            return True
        return await decide(stopped)

    duels = campaign.succession._duels
    decide, duels.decide = duels.decide, none_won  # type: ignore[method-assign]
    await campaign.run()
    assert ("step4 [X=1]", Mode.RANKED) in board.sent


async def test_what_the_sanitizer_finds_is_never_sent(memory: Memory) -> None:
    harness = FakeHarness(TIMES, device_seconds=0.01, unsanitary={("step4", 1)})
    board = FakeBoard(official())
    await (await make(memory, board, harness=harness)).run()
    names = [name for name, mode in board.sent if mode is Mode.RANKED]
    assert "step4 [X=1]" not in [name for name, _ in board.sent]
    assert names[-1] == "step3 [X=1]"


async def test_a_board_that_is_down_ends_nothing(memory: Memory) -> None:
    class Down(FakeBoard):
        async def ranks(self, limit: int = 200) -> tuple[()]:
            raise died()

    campaign = await make(memory, Down())
    result = await campaign.run()
    assert result.incumbent.description == "step4 [X=1]"
    assert heard(campaign).has("the connection was closed")


class Leaving(FakeBoard):
    """Answers so many requests for a result, and then nothing any more."""

    answers = 2
    gone = False

    async def result(self, sent: Sent) -> Result:
        if self.gone or self.asked >= self.answers:
            self.gone = True
            raise died()
        return await super().result(sent)

    async def ranks(self, limit: int = 200) -> tuple[Place, ...]:
        if self.gone:
            raise died()
        return await super().ranks(limit)

    async def find(self, tag: str, mode: Mode) -> Sent | None:
        if self.gone:
            raise died()
        return await super().find(tag, mode)


async def test_a_board_that_is_gone_for_good_is_told_with_what_was_not_sent(memory: Memory) -> None:
    campaign = await make(memory, Leaving(official()))
    result = await campaign.run()
    assert result.board is not None
    told = result.board["unreached"]
    assert re.match(r"the board could not be reached since \d{4}-\d\d-\d\d [\d:]{8} UTC: ", told)
    assert "step4 [X=1] was not sent" in told
    assert "'kernelwright resume' with more --seconds goes on with it" in told
    assert memory.notes("c1")[LOST] == told


async def test_what_became_of_a_submission_that_a_board_took_with_it_is_not_known(memory: Memory) -> None:
    board = Leaving(official())
    board.answers = 1
    result = await (await make(memory, board)).run()
    assert result.board is not None
    assert "what became of the ranked submission of baseline is not known" in result.board["unreached"]


async def test_a_board_that_came_back_is_not_called_gone(memory: Memory) -> None:
    memory_of_before = "the board could not be reached since yesterday"
    campaign = await make(memory, FakeBoard(official(), faults=[died()]))
    memory.note("c1", LOST, memory_of_before)
    result = await campaign.run()
    assert result.board is not None
    assert result.board["unreached"] is None
    assert memory.notes("c1")[LOST] == ""


async def test_where_nothing_is_sent_a_board_that_is_gone_leaves_its_ranks(memory: Memory) -> None:
    board = Leaving(official())
    board.gone = True
    result = await (await make(memory, board, submit=False)).run()
    assert result.board is not None
    assert result.board["unreached"].endswith(" UTC: its ranks are those of before")


async def test_a_broken_adapter_ends_nothing(memory: Memory) -> None:
    class Broken(FakeBoard):
        async def ranks(self, limit: int = 200) -> tuple[()]:
            raise KeyError("score")

    campaign = await make(memory, Broken())
    result = await campaign.run()
    assert result.state == "finished"
    assert heard(campaign).has("KeyError")


async def test_failures_one_after_the_other_end_the_sending(memory: Memory) -> None:
    board = FakeBoard(official(), fails=lambda candidate, _: candidate.template.name != "baseline")
    harness = FakeHarness(TIMES, device_seconds=0.05)
    campaign = await make(memory, board, harness=harness)
    await campaign.run()
    failed = [name for name, _ in board.sent if name.startswith("step")]
    assert 1 <= len(failed) <= 3
    assert all(mode is Mode.TEST for name, mode in board.sent if name.startswith("step"))


async def test_a_deadline_that_has_passed_sends_nothing_more(memory: Memory) -> None:
    board = FakeBoard(official(), deadline=1.0)
    campaign = await make(memory, board)
    await campaign.run()
    assert all(name.startswith("baseline") for name, _ in board.sent)
    assert heard(campaign).has("its deadline has passed")


async def test_a_rank_as_goal_ends_the_search_and_the_winner_is_confirmed(memory: Memory) -> None:
    board = FakeBoard(official())
    campaign = await make(memory, board, goal="rank<=2", harness=FakeHarness(TIMES, device_seconds=0.02))
    result = await campaign.run()
    assert result.goal_reached
    assert result.state == "finished"
    assert result.confirmation is not None
    assert memory.places("c1")[-1].rank == 2


@pytest.mark.parametrize(("old", "reached"), [(2, True), (3, False)])
async def test_a_place_from_before_the_campaign_reaches_no_goal_until_it_is_bettered(
    memory: Memory, old: int, reached: bool
) -> None:
    board = FakeBoard(official())
    board.taken["0"] = (
        Candidate(STEPS[old], Configuration({"X": 1})),
        Mode.RANKED,
        "sent-by-hand",
    )  # holds place 2
    campaign = await make(memory, board, goal="rank<=2")
    result = await campaign.run()
    assert result.goal_reached == reached
    assert memory.places("c1")[0].rank == memory.places("c1")[-1].rank == 2
    assert heard(campaign).has("ms, an entry from before this campaign")
    assert ("step4 [X=1]", Mode.RANKED) in board.sent


async def test_a_speedup_as_goal_ends_the_search(memory: Memory) -> None:
    campaign = await make(memory, FakeBoard(official()), goal="speedup>=4")
    result = await campaign.run()
    assert result.goal_reached
    assert heard(campaign).has("goal reached: speedup>=4")
    assert result.state == "finished"
    assert result.confirmation is not None
    assert result.experiments < 5


async def test_a_goal_out_of_reach_is_told(memory: Memory) -> None:
    result = await (await make(memory, FakeBoard(official()), goal="speedup>=400")).run()
    assert not result.goal_reached
    assert result.as_json()["goal"] == {"text": "speedup>=400", "reached": False}


async def test_the_prompt_knows_the_place_and_the_gap(memory: Memory) -> None:
    campaign = await make(memory, FakeBoard(official()), goal="rank<=1")
    await campaign.run()
    place = campaign.aim.place()
    assert place is not None
    assert (place.rank, place.entries) == (2, 4)
    assert place.next_gap == pytest.approx(0.2)
    assert place.wanted is None
    assert campaign.aim.pressing
    assert (place.case, place.against) == ("n=1", "the best known there")


async def test_while_a_place_is_missing_new_structure_is_wanted_sooner(memory: Memory) -> None:
    campaign = await make(memory, FakeBoard(official()), goal="rank<=1")
    await campaign.run()
    writing = campaign.writing
    writing.notebook.experiments = writing._last_gain + STAGNANT // 2 + 1
    assert writing.stagnant
    campaign.aim.goal = parse_goal("rank<=2")
    assert not campaign.aim.pressing
    assert not writing.stagnant


async def test_a_resumed_campaign_sends_nothing_again(memory: Memory) -> None:
    board = FakeBoard(official())
    first = await make(memory, board, harness=FakeHarness(TIMES, device_seconds=0.02))
    running = asyncio.create_task(first.run())
    while not board.sent:
        await asyncio.sleep(0)
    first.stop.set()
    assert (await running).state == "interrupted"
    second = await make(memory, board, resumed=True)
    await second.run()
    assert ("step4 [X=1]", Mode.RANKED) in board.sent
    assert len(set(board.sent)) == len(board.sent)


def record(mode: Mode, at: float, state: str = "passed") -> SubmissionRecord:
    return SubmissionRecord("c1", f"{mode}{at}{state}", "x", mode.value, state, 0.0, at, sent=at)


def test_a_quota_is_counted_by_kind_and_hour() -> None:
    quota = Quota(Limits(test_per_hour=2, ranked_per_hour=1))
    known = [record(Mode.TEST, 100.0), record(Mode.BENCHMARK, 200.0), record(Mode.RANKED, 300.0, "postponed")]
    assert quota.free_at(Mode.TEST, known, 400.0) == 3700.0
    assert quota.free_at(Mode.RANKED, known, 400.0) <= 400.0
    assert quota.free_at(Mode.TEST, known, 3701.0) <= 3701.0
    assert quota.free_at(Mode.RANKED, [record(Mode.RANKED, 300.0, "unclear")], 400.0) == 3900.0


def test_what_the_board_says_of_its_quota_is_kept_to() -> None:
    quota = Quota(Limits())
    quota.limited(Mode.TEST, RateLimited("later", 30.0), 100.0)
    assert quota.free_at(Mode.BENCHMARK, [], 100.0) == 130.0
    assert quota.free_at(Mode.RANKED, [], 100.0) <= 100.0
    quota.limited(Mode.RANKED, RateLimited("later"), 100.0)
    assert quota.free_at(Mode.RANKED, [], 100.0) == 160.0
    quota.limited(Mode.RANKED, RateLimited("later", 1e9), 100.0)
    assert quota.free_at(Mode.RANKED, [], 100.0) == 3700.0


async def test_a_quota_at_the_end_is_waited_for_within_bounds(memory: Memory) -> None:
    board = FakeBoard(official(), faults=[None, None, RateLimited("1/1 an hour", 1.0)])
    campaign = await make(memory, board, max_submissions=2)
    await campaign.run()
    assert ("step4 [X=1]", Mode.RANKED) in board.sent

    endless = FakeBoard(official(), limits=Limits(ranked_per_hour=1))
    with Memory.open(memory.path.with_name("other.db")) as other:
        campaign = await make(other, endless, wait_s=0.3)
        assert campaign.submitting is not None
        campaign.submitting.outbox.sleep = asyncio.sleep
        await campaign.run()
    assert [name for name, mode in endless.sent if mode is Mode.RANKED] == [endless.sent[0][0]]
    assert heard(campaign).has("not waited for any longer")


async def test_a_429_is_waited_for_and_then_it_goes_on(memory: Memory) -> None:
    board = FakeBoard(official(), faults=[RateLimited("1/1 an hour", 1.0)])
    campaign = await make(memory, board)
    await campaign.run()
    assert heard(campaign).has("test waits: 1/1 an hour")
    assert ("step4 [X=1]", Mode.RANKED) in board.sent


def test_the_ranking_of_a_board_is_an_objective() -> None:
    from kernelwright.core.objective import ObjectiveName

    assert {ranking.value for ranking in Ranking} == {name.value for name in ObjectiveName}
