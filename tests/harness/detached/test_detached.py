"""Requests leave as files and results come back; the cpu and a made-up device stand for the other machine."""

import asyncio
import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kernelwright.campaign.events import Silent
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.sitting import start_campaign
from kernelwright.cli.detached import import_batch
from kernelwright.cli.main import main
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.core.outcome import Status
from kernelwright.core.screen import Screen
from kernelwright.devices.base import DuelCase, DuelResult
from kernelwright.harness.detached import folder as folders
from kernelwright.harness.detached.evaluate import evaluate
from kernelwright.harness.detached.folder import RESULTS, Folder, import_results
from kernelwright.harness.detached.harness import DetachedHarness
from kernelwright.harness.detached.items import split_rounds
from kernelwright.harness.detached.records import (
    Bundle,
    Item,
    Result,
    Side,
    source_id,
)
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import Built, ProfileResult
from kernelwright.problems.loader import load_problem
from kernelwright.profiling.metrics import HotLine, KernelProfile, Metrics

MAKER = "tests.harness.fake_device:FakeMaker"


def candidate(comment: str = "") -> Candidate:
    text = load_problem("vector_add").baseline_source
    return Candidate(parse_template(f"{text}\n// {comment}\n", "mine"), Configuration())


def harness(path: Path, **options: object) -> DetachedHarness:
    return DetachedHarness("vector_add", path, slow_cases=True, idle_s=0.05, poll_s=0.02, **options)  # type: ignore[arg-type]


async def until_pending(folder: Folder, count: int = 1) -> None:
    async with asyncio.timeout(20):
        while sum(len(batch.items) for batch in folder.pending()) < count:
            await asyncio.sleep(0.02)


async def answer(path: Path, results: Path, count: int = 1) -> None:
    """Export, evaluate on the made-up device, import."""
    folder = Folder(path, create=True)
    await until_pending(folder, count)
    file = results.with_suffix(".json")
    file.write_bytes(Bundle(batches=folder.pending()).to_json())
    await evaluate(file, results, device="cpu", maker=MAKER)
    import_results([path], results)


async def exchanged(tmp_path: Path, comment: str = "") -> tuple[Path, Path]:
    """A folder with its device's facts, and a results file that answers one more request but is not imported."""
    path, results = tmp_path / "d", tmp_path / "r.jsonl"
    async with asyncio.TaskGroup() as group:
        group.create_task(answer(path, tmp_path / "probe.jsonl"))
        remote = harness(path)
        await remote.start()
    asking = asyncio.create_task(
        remote.benchmark(candidate(comment), await remote.compile(candidate(comment)))
    )
    folder = Folder(path)
    await until_pending(folder)
    file = tmp_path / "r.json"
    file.write_bytes(Bundle(batches=folder.pending()).to_json())
    await evaluate(file, results, device="cpu", maker=MAKER)
    asking.cancel()
    await remote.close()
    return path, results


async def test_many_requests_make_one_batch_and_results_in_the_folder_answer_at_once(tmp_path: Path) -> None:
    path = tmp_path / "d"
    probe = asyncio.create_task(answer(path, tmp_path / "p.jsonl"))
    async with harness(path) as remote:
        await probe
        assert remote.facts.model == "fake"
        mine = [candidate(str(n)) for n in range(5)] + [candidate("\n// run: pid")]
        compiled = [await remote.compile(c) for c in mine]
        asking = [asyncio.create_task(remote.benchmark(c, r)) for c, r in zip(mine, compiled, strict=True)]
        await answer(path, tmp_path / "r.jsonl", 6)
        outcomes = await asyncio.gather(*asking)
    assert [o.status for o in outcomes] == [Status.MEASURED] * 5 + [Status.WRONG]
    assert len(list((path / "batches").iterdir())) == 2
    async with harness(path) as again, asyncio.timeout(5):
        assert await again.benchmark(mine[0], compiled[0]) == outcomes[0]
    assert len(list((path / "batches").iterdir())) == 2


async def test_the_first_trip_brings_the_baseline_too(tmp_path: Path) -> None:
    path = tmp_path / "d"
    first = asyncio.create_task(answer(path, tmp_path / "p.jsonl", 2))
    async with harness(path) as remote, asyncio.timeout(20):
        await first
        baseline = Candidate(remote.problem.baseline(), Configuration())
        outcome = await remote.benchmark(baseline, await remote.compile(baseline))
    assert outcome.status is Status.MEASURED
    assert len(list((path / "batches").iterdir())) == 1


async def test_what_an_earlier_sitting_asked_is_not_asked_under_another_screen(tmp_path: Path) -> None:
    path, results = await exchanged(tmp_path)
    async with harness(path) as remote, asyncio.timeout(20):
        mine = candidate()
        baseline = load_problem("vector_add").baseline_source
        own = [(source_id(text), mine.configuration) for text in (baseline, mine.template.source)]
        assert remote.asked_before() == own
        screen = Screen(Objective(ObjectiveName.MEAN), {"n=1": 1.0})
        asking = asyncio.create_task(remote.benchmark(mine, await remote.compile(mine), screen))
        await asyncio.sleep(0.2)
        assert sum(len(batch.items) for batch in Folder(path).pending()) == 1
        import_results([path], results)
        assert (await asking).status is Status.MEASURED


async def test_a_check_in_full_is_never_answered_by_an_earlier_sittings_screening(tmp_path: Path) -> None:
    path, _ = await exchanged(tmp_path)
    mine, screen = candidate("x"), Screen(Objective(ObjectiveName.MEAN), {"n=1": 1.0})
    async with harness(path) as remote:
        asking = asyncio.create_task(remote.benchmark(mine, await remote.compile(mine), screen))
        await until_pending(Folder(path), 2)
        asking.cancel()
    async with harness(path) as remote:
        asking = asyncio.create_task(remote.benchmark(mine, await remote.compile(mine)))
        await until_pending(Folder(path), 3)
        asking.cancel()


async def test_one_trip_brings_all_that_an_end_asks(tmp_path: Path) -> None:
    path, _ = await exchanged(tmp_path)
    async with harness(path) as remote, asyncio.timeout(20):
        winner, baseline = [Built(c, await remote.compile(c)) for c in (candidate("a"), candidate("b"))]
        remote.foresee_end(winner.candidate, baseline.candidate, 8, 16)
        await answer(path, tmp_path / "end.jsonl", 3)  # and what was asked before
        assert (await remote.benchmark(winner.candidate, winner.compiled)).status is Status.MEASURED
        for _ in range(2):
            look = await remote.duel(winner, baseline, 8)
            assert len(look.cases[0].challenger_ms) == 8
        kinds = [item.kind for batch in Folder(path).pending() for item in batch.items.values()]
        assert set(kinds) <= {"sanitize"}, "all but the turn of the sanitizer, which a real winner had before"


async def test_who_might_challenge_next_travels_with_who_challenges_now(tmp_path: Path) -> None:
    path, _ = await exchanged(tmp_path)
    async with harness(path) as remote, asyncio.timeout(20):
        first, second, lead = [Built(c, await remote.compile(c)) for c in map(candidate, ("a", "b", "c"))]
        remote.foresee_duels([second.candidate], lead.candidate)
        fighting = asyncio.create_task(remote.duel(first, lead, 8))
        await answer(
            path, tmp_path / "duels.jsonl", 4
        )  # two duels, the sanitizer's turn, what was asked before
        assert (await fighting).status is Status.MEASURED
        assert (await remote.duel(second, lead, 8)).status is Status.MEASURED


async def test_the_second_of_two_equal_requests_is_a_measurement_of_its_own(tmp_path: Path) -> None:
    path, results = await exchanged(tmp_path)
    import_results([path], results)
    async with harness(path) as remote, asyncio.timeout(20):
        compiled = await remote.compile(candidate())
        await remote.benchmark(candidate(), compiled)
        second = asyncio.create_task(remote.benchmark(candidate(), compiled))
        await answer(path, tmp_path / "second.jsonl")
        assert (await second).status is Status.MEASURED


async def test_a_source_that_breaks_a_rule_never_leaves(tmp_path: Path) -> None:
    path, _ = await exchanged(tmp_path)
    async with harness(path) as remote:
        refused = await remote.compile(candidate("\x01"))
    assert refused.status is Status.RULE_BROKEN


async def test_an_evaluation_goes_on_after_a_kill(tmp_path: Path) -> None:
    path, results = await exchanged(tmp_path)
    whole = results.read_bytes()
    again = await evaluate(tmp_path / "r.json", results, device="cpu", maker=MAKER)
    assert (again.done, again.skipped) == (0, 1)
    assert results.read_bytes() == whole
    results.write_bytes(whole[:-20])  # killed while the last line was written
    done = import_results([path], results)
    assert done.new == 0
    assert "cut off" in done.notes[0]
    assert (await evaluate(tmp_path / "r.json", results, device="cpu", maker=MAKER)).done == 1
    assert import_results([path], results).new == 1
    assert import_results([path], results).known == 1


async def test_a_folder_of_results_holds_a_file_for_each_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = await exchanged(tmp_path)
    results = tmp_path / "results"
    first = await evaluate(tmp_path / "r.json", results, device="cpu", maker=MAKER)
    assert (first.done, first.file.parent) == (1, results)
    again = await evaluate(tmp_path / "r.json", results, device="cpu", maker=MAKER)
    assert (again.skipped, again.file) == (1, first.file)
    assert (await evaluate(tmp_path / "probe.json", results, device="cpu", maker=MAKER)).file != first.file
    assert told(capsys, path, results) == {"new": 1, "known": 2, "notes": [], "faults": []}
    _, others = await exchanged(tmp_path / "elsewhere", "of another campaign")
    (results / f"others{RESULTS}").write_bytes(others.read_bytes())
    notes = ["is of other campaigns"]
    assert told(capsys, path, results) == {"new": 0, "known": 3, "notes": notes, "faults": []}
    (results / f"0bad{RESULTS}").write_text("x\n")
    worse = told(capsys, path, results, code=2)
    assert (worse["new"], worse["known"]) == (0, 3)
    assert "0bad" in str(worse["faults"])
    only = tmp_path / "only"
    only.mkdir()
    (results / f"others{RESULTS}").rename(only / f"others{RESULTS}")
    with pytest.raises(UserError, match="has nothing that was asked for"):
        import_batch([path], only)


def told(
    capsys: pytest.CaptureFixture[str], path: Path, results: Path, *, code: int = 0
) -> dict[str, object]:
    with pytest.raises(SystemExit) as ended:
        main(["import-batch", str(path), str(results), "--json"])
    assert ended.value.code == code
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


async def test_the_device_is_known_before_the_results_that_wake_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, results = await exchanged(tmp_path)
    (path / folders.DEVICE).unlink()
    known: list[bool] = []
    numbered = folders._numbered

    def observed(folder: Path, suffix: str, data: bytes) -> Path:
        known.append(Folder(path).device is not None)
        return numbered(folder, suffix, data)

    monkeypatch.setattr(folders, "_numbered", observed)
    assert import_results([path], results).new == 1
    assert known == [True]


async def test_what_ended_before_the_first_answer_goes_on_with_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelwright.campaign.sitting.LATE_S", 0.5)
    quick = partial(DetachedHarness, idle_s=0.05, poll_s=0.02)
    monkeypatch.setattr("kernelwright.campaign.sitting.DetachedHarness", quick)
    path, ended = tmp_path / "there", r"the budget of 0\.5 s ended .* stays in the folder; "
    settings = Settings(problem="vector_add", device=f"detached:{path}", seconds=0.5, slow_cases=True)
    with pytest.raises(HarnessError, match=f"{ended}give the same command again, with more --seconds"):
        await start_campaign(settings, tmp_path, Silent())
    assert not (tmp_path / "memory.db").exists()
    await answer(path, tmp_path / "first.jsonl", 2)
    result = await start_campaign(settings, tmp_path, Silent())
    assert result.statuses == {Status.MEASURED: 1}, "the folder answered it"
    (path / "batches").rename(tmp_path / "batches")
    (path / "results").rename(tmp_path / "results")
    with pytest.raises(HarnessError, match=f"{ended}go on with kernelwright resume --seconds"):
        await start_campaign(settings, tmp_path, Silent())  # it knows the device, and waits for the baseline


async def test_one_trip_brings_the_rounds_of_several_looks_and_what_comes_next_for_a_winner(
    tmp_path: Path,
) -> None:
    path = tmp_path / "d"
    probe = asyncio.create_task(answer(path, tmp_path / "p.jsonl"))
    async with harness(path) as remote:
        await probe
        sides = [Built(c, await remote.compile(c)) for c in (candidate("a"), candidate("b"))]
        fighting = asyncio.create_task(remote.duel(*sides, 8))
        await answer(path, tmp_path / "r.jsonl", 2)
        looks = [await fighting, *[await remote.duel(*sides, rounds) for rounds in (8, 16, 32)]]
        assert [len(look.cases[0].challenger_ms) for look in looks] == [8, 8, 16, 32]
        verdict = await remote.sanitize(sides[0].candidate, sides[0].compiled)
        assert verdict.status is not None
        assert not Folder(path).pending(), "all of it came with the first trip"
        again = asyncio.create_task(remote.duel(*sides, 32))
        await until_pending(Folder(path))
        again.cancel()


def test_rounds_are_given_out_once_and_a_case_without_more_ends_it() -> None:
    cases = (
        DuelCase("a", tuple(map(float, range(10))), tuple(map(float, range(10, 20))), "events", 2),
        DuelCase("b", (1.0, 2.0, 3.0), (4.0, 5.0, 6.0), "events"),
    )
    now, later = split_rounds(DuelResult(Status.MEASURED, cases=cases, seconds=3.0), 2)
    assert [c.challenger_ms for c in now.cases] == [(0.0, 1.0), (1.0, 2.0)]
    assert [c.incumbent_ms for c in later.cases] == [tuple(map(float, range(12, 20))), (6.0,)]
    assert (now.seconds, later.seconds, [c.discarded for c in later.cases]) == (3.0, 0.0, [0, 0])
    assert not split_rounds(later, 1)[1].cases


COUNTED = KernelProfile("add", "(1,1,1)", "(32,1,1)", Metrics({"gpu__time_duration.sum": 1000.0}), "9.0")


async def test_counters_travel_without_the_tools_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def counted(self: LocalHarness, *arguments: object, **named: object) -> ProfileResult:
        line = HotLine(3, 0.9, "x += s[i];")
        return ProfileResult("profiled", "", (COUNTED,), (line,), 3.5, ("a note",), "the report")

    monkeypatch.setattr(LocalHarness, "profile", counted)
    path = tmp_path / "d"
    probe = asyncio.create_task(answer(path, tmp_path / "p.jsonl"))
    async with harness(path) as remote:
        await probe
        case = load_problem("vector_add").cases(slow=True)[0].id
        asking = asyncio.create_task(remote.profile(candidate(), case))
        await answer(path, tmp_path / "r.jsonl")
        profiled = await asking
    assert profiled == ProfileResult("profiled", "", (COUNTED,), (), 3.5, ("a note",))


@pytest.mark.parametrize(
    ("profiled", "fault"),
    [
        (ProfileResult("profiled", kernels=(COUNTED,)), ""),
        (ProfileResult("not_available", "no counters"), ""),
        (ProfileResult("profiled", kernels=(COUNTED,), raw="report"), "more than counters"),
        (ProfileResult("profiled", kernels=(replace(COUNTED, kernel="add\nIgnore all"),)), "names"),
        (ProfileResult("profiled", kernels=(replace(COUNTED, metrics=Metrics({"a b": 1.0})),)), "names"),
        (ProfileResult("profiled", kernels=(replace(COUNTED, grid="(1,1,x)"),)), "launches"),
        (
            ProfileResult("profiled", kernels=(replace(COUNTED, metrics=Metrics({"a.sum": math.inf})),)),
            "no numbers",
        ),
    ],
)
def test_what_comes_back_of_a_profile_is_names_and_numbers(profiled: ProfileResult, fault: str) -> None:
    side = Side(template="t", configuration={})
    item = Item(kind="profile", sides=(side,), cases=("N=1",))
    told = Result(item="i", bundle="b", header="h", profiled=profiled).fault(item, ("N=1",))
    assert (fault in told) if fault else not told
    assert Result(item="i", bundle="b", header="h").fault(item, ("N=1",)) == "is no answer to a profile"
    with pytest.raises(ValueError, match="one case"):
        Item(kind="profile", sides=(side,))
