"""Who takes the lead, and who loses it again: duels, faults found later, and the same after a kill."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.campaign.campaign import Campaign
from kernelwright.core.candidate import Candidate
from kernelwright.core.outcome import Status
from kernelwright.core.statistics import Verdict
from kernelwright.memory.records import Duel
from kernelwright.memory.store import Memory

from .fakes import FACTS, FakeHarness
from .test_campaign import TIMES, make

Times = dict[tuple[str, int], float | Status]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


def by_template(memory: Memory, duel: Duel) -> tuple[str, str]:
    names = {
        e.candidate: f"{memory.templates('c1')[e.template].name} {e.configuration.get('X', '')}".strip()
        for e in memory.experiments("c1")
    }
    return names[duel.challenger], names[duel.incumbent]


async def test_every_change_of_the_incumbent_has_its_duel(memory: Memory) -> None:
    harness = FakeHarness(TIMES)
    result = await make(memory, harness).run()
    duels = memory.duels("c1")
    promoted = [by_template(memory, duel)[0] for duel in duels if duel.promoted]
    leaders = [memory.experiment("c1", str(m.experiment)) for m in memory.milestones("c1")]
    assert [f"fast {e.configuration['X']}" for e in leaders[1:]] == promoted
    assert promoted[-1] == "fast 4"
    assert result.duels == sum(not duel.confirmation for duel in duels) > 0
    assert duels[-1].confirmation
    assert by_template(memory, duels[-1]) == ("fast 4", "baseline")
    assert harness.most_on_device == 1
    assert all(len(case.challenger_ms) == duel.decision.rounds for duel in duels for case in duel.cases)


async def test_lucky_medians_lead_nobody_and_are_tried_once(memory: Memory) -> None:
    lucky: Times = {
        **{(name, x): 5.0 for name in ("slow", "fast") for x in range(1, 7)},
        ("baseline", 0): 2.0,
    }
    lucky["fast", 3] = 1.9
    harness = FakeHarness(lucky, true_times={("fast", 3): 2.0})
    result = await make(memory, harness).run()
    assert result.incumbent.description == result.baseline.description
    fought = memory.duels("c1")
    assert [by_template(memory, duel) for duel in fought] == [("fast 3", "baseline")]
    assert not fought[0].promoted
    assert fought[0].decision.verdict is Verdict.KEEP
    assert result.confirmation is None
    assert result.sanitizer is None


async def test_who_fails_a_check_in_a_duel_is_out(memory: Memory) -> None:
    harness = FakeHarness(TIMES, true_times={("fast", 4): Status.UNSTABLE})
    result = await make(memory, harness).run()
    assert result.incumbent.description == "fast [X=3]"
    out = [duel for duel in memory.duels("c1") if duel.at_fault]
    assert [duel.decision.reason for duel in out] == ["unstable (values): because"]


async def test_the_screen_is_the_incumbent(memory: Memory) -> None:
    harness = FakeHarness(TIMES)
    await make(memory, harness).run()
    assert harness.screens[0] is None
    assert harness.screens[1] is not None
    assert harness.screens[1].incumbent_ms == {"n=1": 2.0}
    assert harness.screens[-1] is None, "the last incumbent stands every check"


async def test_an_incumbent_in_which_the_sanitizer_finds_something_falls(memory: Memory) -> None:
    harness = FakeHarness(TIMES, unsanitary={("fast", 4)})
    campaign = make(memory, harness)
    notes: list[str] = []
    campaign.listener.note = notes.append  # type: ignore[method-assign]
    result = await campaign.run()
    assert result.incumbent.description == "fast [X=3]"
    assert harness.sanitized[-1] == "fast [X=3]"
    assert result.sanitizer == {"status": "measured", "reason": "", "tools": []}
    assert any("memcheck: invalid read" in note for note in notes)
    faults = [json.loads(v) for k, v in memory.notes("c1").items() if k.startswith("disqualified:")]
    assert [fault["reason"] for fault in faults] == ["compute-sanitizer: memcheck: invalid read"]
    assert any("disqualified" in milestone.strategy for milestone in memory.milestones("c1"))
    assert result.confirmation is not None
    assert result.confirmation.ratio == pytest.approx(1 / 6, rel=0.01)


async def test_a_sanitizer_that_cannot_be_had_is_noted_and_is_no_pass(memory: Memory) -> None:
    campaign = make(memory, FakeHarness(TIMES, sanitizer=Status.NOT_RUN))
    notes: list[str] = []
    campaign.listener.note = notes.append  # type: ignore[method-assign]
    result = await campaign.run()
    assert result.incumbent.description == "fast [X=4]"
    assert result.sanitizer is not None
    assert result.sanitizer["status"] == "not_run"
    assert notes.count("compute-sanitizer was not run: no tool") == 1


async def test_sanitizing_takes_a_small_share_until_the_end(memory: Memory) -> None:
    harness = FakeHarness(TIMES)
    await make(memory, harness).run()
    assert harness.sanitized == ["fast [X=4]"]


async def test_the_confirmation_has_its_interval(memory: Memory) -> None:
    result = await make(memory, FakeHarness(TIMES)).run()
    confirmed = result.as_json()["confirmed"]
    low, high = confirmed["interval"]
    assert low < confirmed["ratio_to_baseline"] < high < 0.13
    assert confirmed["rounds"] == 16
    assert json.loads(memory.notes("c1")["confirmation"])["high"] == high


async def test_stopping_ends_a_duel_without_a_verdict_and_resuming_fights_it(memory: Memory) -> None:
    harness = FakeHarness({})
    campaign = make(memory, harness)
    harness.times = {**{("slow", x): 9.0 for x in range(1, 7)}, **{("fast", x): 1.999 for x in range(1, 7)}}
    harness.times["baseline", 0] = 2.0
    harness.true_times = {("fast", x): 1.9945 for x in range(1, 7)}
    original = harness.duel

    async def stopping(*arguments: object, **more: object) -> object:
        campaign.stop.set()
        return await original(*arguments, **more)  # type: ignore[arg-type]

    harness.duel = stopping  # type: ignore[assignment, method-assign]
    result = await campaign.run()
    assert result.state == "interrupted"
    assert memory.duels("c1") == []
    harness.duel = original  # type: ignore[method-assign]
    again = resumed(memory, harness, campaign)
    assert again.standing.contender() is not None
    await again.run()
    assert memory.duels("c1") != []


def resumed(memory: Memory, harness: FakeHarness, before: Campaign) -> Campaign:
    again = make(memory, harness)
    for arm in before.policy.arms.values():
        again.take_in(arm.proposal)
    again.recall()
    return again


class Killed(BaseException):
    pass


@pytest.mark.parametrize("unsanitary", [set(), {("fast", 4)}])
async def test_killed_at_any_write_a_campaign_comes_back_to_the_same_standing(
    tmp_path: Path, unsanitary: set[tuple[str, int]]
) -> None:
    """The process dies right before or right after each write to the memory, one after the other."""
    for at in range(0, 80, 3):
        with Memory.open(tmp_path / f"{at}.db") as memory:
            harness = FakeHarness(TIMES, unsanitary=unsanitary)
            campaign = make(memory, harness)
            ended = await _die_at_write(campaign, memory, at)
            state = _state(campaign) if not ended else None
            again = resumed(memory, harness, campaign)
            if state is not None and at % 2 == 0:
                assert _state(again) == state
            if again.baseline is not None:
                result = await again.run()
                wanted = "fast [X=3]" if unsanitary else "fast [X=4]"
                assert result.incumbent.description == wanted
                last = memory.milestones("c1")[-1].experiment
                assert memory.experiment("c1", str(last)).candidate == result.incumbent.id
            if ended:
                return
    raise AssertionError("the campaign never came to its end")


def _state(campaign: Campaign) -> tuple[object, ...]:
    standing = campaign.standing
    return (standing.incumbent, standing.contender(), standing.disqualified, campaign.succession.fought)


async def _die_at_write(campaign: Campaign, memory: Memory, at: int) -> bool:
    """Run until write number ``at``: odd numbers die after it, even ones before; true when there were fewer."""
    left = [at]

    def dying(write: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object) -> object:
            left[0] -= 1
            if left[0] < 0 and at % 2 == 0:
                raise Killed
            result = write(*arguments)
            if left[0] < 0:
                raise Killed
            return result

        return called

    names = ("record", "duel", "milestone", "note")
    originals = {name: getattr(memory, name) for name in names}
    for name in names:
        setattr(memory, name, dying(originals[name]))
    try:
        await campaign.run()
    except (Killed, BaseExceptionGroup):
        return False
    finally:
        for name in names:
            setattr(memory, name, originals[name])
    return True


async def test_compiling_goes_on_during_a_duel(memory: Memory) -> None:
    harness = FakeHarness(TIMES, compile_seconds=0.05)
    duel, during = harness.duel, [0]

    async def slow(*arguments: object, **more: object) -> object:
        before = harness.compiled
        for _ in range(30):  # some duels come when nothing is left to compile, or enough waits for its turn
            await asyncio.sleep(0.01)
            if harness.compiled > before:
                break
        during.append(harness.compiled - before)
        return await duel(*arguments, **more)  # type: ignore[arg-type]

    harness.duel = slow  # type: ignore[assignment, method-assign]
    await make(memory, harness).run()
    assert max(during) > 0


class Elsewhere(FakeHarness):
    """A device on another machine: what travels together is asked before it is needed."""

    def __init__(self, times: Times, true_times: Times | None = None) -> None:
        facts = replace(FACTS, kind="cuda")
        super().__init__(times, facts=facts, places=8, exclusive=False, true_times=true_times or {})
        self.foreseen: list[tuple[str, str]] = []
        self.ends: list[str] = []

    def foresee_duels(self, challengers: Sequence[Candidate], incumbent: Candidate) -> None:
        self.foreseen += [(str(challenger), str(incumbent)) for challenger in challengers]

    def foresee_end(self, winner: Candidate, baseline: Candidate, duel: int, library: int) -> None:
        self.ends.append(str(winner))


async def test_who_might_challenge_next_and_what_the_end_asks_is_told_before(memory: Memory) -> None:
    close: Times = {(name, x): 5.0 for name in ("slow", "fast") for x in range(1, 7)}
    close |= {("baseline", 0): 2.0, ("fast", 1): 1.9, ("fast", 2): 1.91, ("fast", 3): 1.92, ("fast", 4): 1.93}
    harness = Elsewhere(close, true_times=dict.fromkeys([("fast", x) for x in range(1, 5)], 2.0))
    await make(memory, harness).run()
    fought = [(challenger, incumbent) for challenger, incumbent, _ in harness.duels]
    assert len(set(fought)) > 2
    assert set(fought[1:]) <= {fought[0], *harness.foreseen}


async def test_a_confirmation_elsewhere_takes_all_rounds_of_its_trip(memory: Memory) -> None:
    harness = Elsewhere(TIMES)
    result = await make(memory, harness).run()
    assert result.confirmation is not None
    assert harness.ends[-1] == harness.duels[-1][0]
    confirmation = memory.duels("c1")[-1]
    assert [len(case.challenger_ms) for case in confirmation.cases] == [64]
    assert confirmation.decision.rounds == 16
