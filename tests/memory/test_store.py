"""What is kept comes back as it was; history is never changed."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelwright.core.errors import MemoryFileError
from kernelwright.core.outcome import CaseTiming, Conditions, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.core.statistics import Decision, Verdict
from kernelwright.devices.base import DuelCase
from kernelwright.memory.records import Duel, Milestone
from kernelwright.memory.store import Memory

from .samples import PROBLEM, STATIC, TEMPLATE, campaign, experiment, measured


@pytest.fixture
def memory(memory_file: Path) -> Iterator[Memory]:
    with Memory.open(memory_file) as opened:
        opened.start_campaign(campaign(), PROBLEM)
        yield opened


def test_an_experiment_comes_back_exactly(memory: Memory, memory_file: Path) -> None:
    given_ones = [
        experiment(1),
        replace(experiment(2, Outcome(Status.WRONG, "n=0: 3 of 64 differ")), cost_ms=None, score=None),
        replace(experiment(3, measured(0.7)), eligible=False, twin_of="c0"),
    ]
    numbers = [memory.record(one, TEMPLATE) for one in given_ones]
    memory.close()
    with Memory.open(memory_file, read_only=True) as again:
        found = list(again.experiments("c1"))
        assert [replace(one, number=0, recorded=0.0) for one in found] == given_ones
        assert [one.number for one in found] == numbers == sorted(numbers)
        assert all(one.recorded > 1.7e9 for one in found)
        assert again.templates("c1") == {"t1": TEMPLATE}
        assert again.problem("p1") == PROBLEM
        assert again.campaign("c1") == campaign()


@given(
    samples=st.lists(st.floats(min_value=0.0, allow_infinity=False), min_size=1, max_size=9),
    error=st.floats().map(lambda error: error + 0.0),  # SQLite knows no -0.0
    reason=st.text(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_raw_samples_are_kept_bit_for_bit(
    memory: Memory, samples: list[float], error: float, reason: str
) -> None:
    number = memory.campaign("c1").seconds + len(list(memory.experiments("c1")))
    outcome = Outcome(Status.TOO_FAST, reason, cases=(CaseTiming("n", tuple(samples), "graph", error),))
    memory.record(experiment(int(number), outcome), TEMPLATE)
    kept = list(memory.experiments("c1"))[-1].outcome.cases[0]
    assert [value.hex() for value in kept.samples_ms] == [value.hex() for value in samples]
    assert kept.max_error.hex() == error.hex()


def test_what_stands_at_its_default_takes_no_room_and_comes_back(memory: Memory, memory_file: Path) -> None:
    kernels = tuple(KernelStatics(f"k{n}", registers=n, instructions={} if n else None) for n in range(3))
    times = (0.1, 1 / 3)
    cases = (CaseTiming("n=1", times, "events", conditions=Conditions(1980, power_w=0.1 + 0.2)),)
    for number, static in enumerate((StaticMetrics(kernels, 0), StaticMetrics())):
        memory.record(experiment(number, Outcome(Status.MEASURED, static=static, cases=cases)), TEMPLATE)
    first, second = memory.experiments("c1")
    assert first.outcome == Outcome(Status.MEASURED, static=StaticMetrics(kernels, 0), cases=cases)
    assert second.outcome.static == StaticMetrics()
    with closing(sqlite3.connect(memory_file)) as raw:
        (static,), _ = raw.execute("SELECT static FROM experiments ORDER BY number").fetchall()
        conditions, samples = raw.execute("SELECT conditions, samples_ms FROM measurements").fetchone()
    assert static == (
        '{"kernels":[{"name":"k0","registers":0},{"name":"k1","registers":1,"instructions":{}},'
        '{"name":"k2","registers":2,"instructions":{}}],"code_bytes":0}'
    )
    assert conditions == '{"sm_clock_mhz":1980,"power_w":0.30000000000000004}'
    assert samples == "[0.1,0.3333333333333333]"


def test_what_was_written_at_length_is_read_alike(memory: Memory, memory_file: Path) -> None:
    """An earlier version wrote every field, with blanks."""
    given = measured()
    memory.record(experiment(1, given), TEMPLATE)
    with closing(sqlite3.connect(memory_file)) as raw, raw:
        raw.execute("DROP TRIGGER experiments_keep_update")
        raw.execute("UPDATE experiments SET static = ?", [json.dumps(asdict(STATIC), indent=1)])
    assert memory.experiment("c1", "1").outcome == given


def test_text_that_is_no_utf8_does_not_lose_the_experiment(memory: Memory) -> None:
    broken = b"error: \xff".decode(errors="surrogateescape")
    memory.record(experiment(1, Outcome(Status.COMPILE_FAILED, broken)), TEMPLATE)
    assert memory.experiment("c1", "1").outcome.reason == "error: \\udcff"


def test_a_candidate_is_recorded_once_a_campaign_and_nothing_of_the_second_stays(memory: Memory) -> None:
    memory.start_campaign(campaign("c2"), PROBLEM)
    memory.record(experiment(1), TEMPLATE)
    with pytest.raises(
        MemoryFileError, match="refused: experiments are history: this one is recorded already"
    ):
        memory.record(experiment(1, measured(9.0)), replace(TEMPLATE, id="t2"))
    memory.record(experiment(1, campaign="c2"), TEMPLATE)
    assert [one.outcome for one in memory.experiments("c1")] == [measured()]
    assert list(memory.templates("c1")) == ["t1"]
    assert memory.counts("c2") == {Status.MEASURED: 1}


@pytest.mark.parametrize("table", ["experiments", "measurements", "milestones"])
@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET {}"])
def test_history_cannot_be_changed_whoever_tries(
    memory: Memory, memory_file: Path, table: str, change: str
) -> None:
    memory.milestone(Milestone("c1", memory.record(experiment(1), TEMPLATE), 1.0, "tiling", 0.5))
    column = {"experiments": "score = 0", "measurements": "median_ms = 0", "milestones": "ratio = 0"}[table]
    before = (list(memory.experiments("c1")), memory.milestones("c1"))
    assert before[0]
    assert before[1]
    other = sqlite3.connect(memory_file)
    with pytest.raises(sqlite3.IntegrityError, match="are history"):
        other.execute(change.format(table, column))
    other.close()
    assert (list(memory.experiments("c1")), memory.milestones("c1")) == before


def test_milestones_come_back_in_order_and_one_experiment_can_lead_twice(memory: Memory) -> None:
    first, second = (memory.record(experiment(n), TEMPLATE) for n in (1, 2))
    given_ones = [
        Milestone("c1", first, 1.0, "tiling", 0.5, rank=3),
        Milestone("c1", second, 2.0, "vectors", 0.4),
        Milestone("c1", first, 3.0, "tiling again", 0.5),
    ]
    for one in given_ones:
        memory.milestone(one)
    assert memory.milestones("c1") == given_ones
    with pytest.raises(MemoryFileError, match="refused: FOREIGN KEY"):
        memory.milestone(Milestone("c1", 99, 4.0, "of nothing", 0.1))


def test_campaigns_by_id_start_or_last(memory: Memory) -> None:
    memory.start_campaign(campaign("gemm-1", started=3.0), PROBLEM)
    memory.start_campaign(campaign("gemm-12", started=2.0), PROBLEM)
    assert [c.id for c in memory.campaigns()] == ["c1", "gemm-12", "gemm-1"]
    assert memory.campaign("last").id == memory.campaign("gemm-1").id == "gemm-1"
    assert memory.campaign("c").id == "c1"
    with pytest.raises(MemoryFileError, match=r"'gemm' is ambiguous \(there are: gemm-12, gemm-1\)"):
        memory.campaign("gemm")
    with pytest.raises(MemoryFileError, match=r"'x' is not in the memory \(there are: c1, "):
        memory.campaign("x")


def test_a_campaign_begins_with_its_notes_or_not_at_all(memory: Memory) -> None:
    memory.start_campaign(campaign("c2"), PROBLEM, {"driver": "570"})
    assert memory.notes("c2") == {"driver": "570"}
    with pytest.raises(MemoryFileError):
        memory.start_campaign(campaign("c3"), PROBLEM, {"driver": None})  # type: ignore[dict-item]
    assert [one.id for one in memory.campaigns()] == ["c1", "c2"]


def test_an_empty_memory_says_that_no_campaign_has_begun(memory_file: Path) -> None:
    """As a kill leaves it that comes before a detached device has answered."""
    told = ": no campaign is recorded here: begin one with 'kernelwright run PROBLEM'; one that was killed or ended "
    with Memory.open(memory_file) as memory:
        with pytest.raises(MemoryFileError, match=re.escape(f"{memory_file}{told}")):
            memory.campaign("last")
        with pytest.raises(MemoryFileError, match=r"'c1' is not in the memory \(there are: none yet\)"):
            memory.campaign("c1")


def test_state_time_and_notes_of_a_campaign(memory: Memory) -> None:
    memory.progress("c1", "finished", 12.5)
    memory.note("c1", "driver", "570")
    memory.note("c1", "driver", "580")
    assert (memory.campaign("c1").state, memory.campaign("c1").seconds) == ("finished", 12.5)
    assert memory.notes("c1") == {"driver": "580"}
    with pytest.raises(MemoryFileError, match="refused: CHECK"):
        memory.progress("c1", "asleep", 1.0)


def test_one_experiment_by_number_or_start_of_its_candidate(memory: Memory) -> None:
    numbers = {one.candidate: memory.record(one, TEMPLATE) for one in map(experiment, range(40))}
    for candidate, number in numbers.items():
        assert (
            memory.experiment("c1", candidate).number == memory.experiment("c1", str(number)).number == number
        )
        assert memory.experiment("c1", candidate[:12]).candidate == candidate
    with pytest.raises(MemoryFileError, match="'c' begins 40 candidates of c1"):
        memory.experiment("c1", "c")
    for stranger in ("%", "999", "c%"):
        with pytest.raises(MemoryFileError, match="is no experiment of c1"):
            memory.experiment("c1", stranger)


def test_whether_a_candidate_was_tried_is_told_by_its_whole_id(memory: Memory) -> None:
    for name in ("1", "12", "123"):
        memory.record(replace(experiment(1), candidate=name), TEMPLATE)
    found = [memory.find_experiment("c1", name) for name in ("12", "123", "3", "1234", "")]
    assert [one and one.candidate for one in found] == ["12", "123", None, None, None]
    assert memory.find_experiment("c2", "12") is None


def test_equal_binaries_are_found_in_other_campaigns_on_the_same_device_only(memory: Memory) -> None:
    memory.start_campaign(campaign("c2"), PROBLEM)
    memory.start_campaign(campaign("other device", model="NVIDIA B200"), PROBLEM)
    memory.start_campaign(replace(campaign("other problem"), problem_id="p2"), replace(PROBLEM, id="p2"))
    for name in ("c1", "c2", "other device", "other problem"):
        memory.record(experiment(1, campaign=name), TEMPLATE)
    memory.record(experiment(2, measured(digest="d2")), TEMPLATE)
    memory.record(experiment(3, Outcome(Status.WRONG, "no", artifact_digest="d1")), TEMPLATE)
    found = memory.find_measured("d1", "p1", "NVIDIA H200")
    assert [(one.campaign, one.outcome) for one in found] == [("c1", measured()), ("c2", measured())]


def test_each_campaign_keeps_its_own_way_to_a_template(memory: Memory) -> None:
    memory.start_campaign(campaign("c2"), PROBLEM)
    model = replace(TEMPLATE, proposer="model", rationale="asked twice", parents=())
    later = replace(TEMPLATE, id="t0", name="first by id, second by use")
    memory.record(experiment(1), TEMPLATE)
    memory.record(experiment(1, template="t0"), later)
    memory.record(experiment(1, campaign="c2"), model)
    assert list(memory.templates("c1").values()) == [TEMPLATE, later]
    assert memory.templates("c2") == {"t1": model}


def test_a_problem_that_was_never_recorded(memory: Memory) -> None:
    with pytest.raises(MemoryFileError, match="the problem 'p9' is not in the memory"):
        memory.problem("p9")


def test_counts_by_status(memory: Memory) -> None:
    for number, status in enumerate([Status.WRONG, Status.CRASHED, Status.WRONG]):
        memory.record(experiment(number, Outcome(status, "no")), TEMPLATE)
    assert list(memory.counts("c1").items()) == [(Status.WRONG, 2), (Status.CRASHED, 1)]


def test_a_duel_comes_back_exactly_and_is_never_changed(memory: Memory, memory_file: Path) -> None:
    decision = Decision(Verdict.PROMOTE, "faster by 3 % or more", 0.96, 0.95, 0.97, 0.971, 1e-3, 16)
    conditions = Conditions(1980, 41, 312.5, ("software power cap",))
    case = DuelCase("n=1", (0.1, 0.1 + 0.2), (0.2, 1 / 3), "events", 1, conditions)
    given_ones = [
        Duel("c1", "b", "a", decision, (case,), 1.5),
        Duel("c1", "c", "b", Decision(Verdict.KEEP, "n=1: 3 of 64 differ"), (), 2.5, at_fault="c"),
        Duel("c1", "b", "a", decision, (case,), 3.5, confirmation=True),
    ]
    numbers = [memory.duel(one) for one in given_ones]
    found = memory.duels("c1")
    assert [replace(one, number=0, recorded=0.0) for one in found] == given_ones
    assert [one.number for one in found] == numbers
    assert [one.promoted for one in found] == [True, False, False]
    memory.close()
    with sqlite3.connect(memory_file) as db, pytest.raises(sqlite3.IntegrityError, match="history"):
        db.execute("UPDATE duels SET promoted = 1")
    db.close()
