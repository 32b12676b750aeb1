"""The harness with the fake device: results, failures, and that the next candidate is always right."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import HarnessError, ProblemError, UserError
from kernelwright.core.outcome import KILLED, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.harness import child
from kernelwright.harness.excess import memory_share
from kernelwright.harness.local import LocalHarness, Timeouts
from kernelwright.harness.setup import REFERENCE_BEGINS
from kernelwright.harness.wire import Ceilings, Hello
from kernelwright.problems.loader import load_problem
from tests.harness.fake_device import CASE_MS, FACTS
from tests.harness.support import candidate, fake_harness, names

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalHarness]:
    async with fake_harness(tmp_path_factory.mktemp("scratch")) as started:
        yield started


async def outcome_of(harness: LocalHarness, text: str) -> Outcome:
    work = candidate(text)
    compiled = await harness.compile(work)
    return compiled.as_outcome() if compiled.status else await harness.benchmark(work, compiled)


async def assert_next_is_right(harness: LocalHarness) -> None:
    outcome = await outcome_of(harness, "// fine")
    assert outcome.status is Status.MEASURED, outcome.reason
    assert set(outcome.times_ms().values()) == {CASE_MS}


async def test_measures_every_case_in_the_problems_order(harness: LocalHarness) -> None:
    outcome = await outcome_of(harness, "// plain")
    cases = harness.problem.cases(slow=False)
    assert [timing.case for timing in outcome.cases] == [case.id for case in cases]
    assert outcome.seconds["check"] == 1.0
    assert outcome.seconds["time"] == 2.0
    assert outcome.seconds["compile"] == 0.25
    assert len(outcome.artifact_digest) == 64
    assert outcome.static is not None
    assert outcome.static.registers == 32


async def test_facts_come_from_the_device_worker(harness: LocalHarness) -> None:
    assert harness.facts.toolchain == "fake 1"
    assert "seccomp" in {layer.name for layer in harness.sandbox.layers}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("// compile: signal 11", "signal 11"),
        ("// compile: signal 9", "the compiler was killed twice"),
        ("// compile: allocate 900", "ran out of memory"),
        ("// compile: exit 3", "code 3"),
        ("// compile: speak garbage", "no valid message"),
        ("// compile: speak oversize", "protocol"),
    ],
)
async def test_a_compiler_that_dies_is_a_failed_compile(
    harness: LocalHarness, text: str, reason: str
) -> None:
    compiled = await harness.compile(candidate(text))
    assert compiled.status is Status.COMPILE_FAILED
    assert reason in compiled.reason
    await assert_next_is_right(harness)


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("// run: signal 11", Status.CRASHED, "signal 11"),
        ("// run: exit 3", Status.CRASHED, "code 3"),
        ("// run: speak garbage", Status.CRASHED, "no valid message"),
        ("// run: speak oversize", Status.CRASHED, "protocol"),
        ("// run: break", Status.CRASHED, "illegal address"),
    ],
)
async def test_a_device_worker_that_dies_is_the_candidates_status(
    harness: LocalHarness, text: str, status: Status, reason: str
) -> None:
    outcome = await outcome_of(harness, text)
    assert outcome.status is status
    assert reason in outcome.reason
    await assert_next_is_right(harness)


@pytest.mark.parametrize("number", [9, 15])
async def test_a_worker_that_is_killed_once_is_asked_again(tmp_path: Path, number: int) -> None:
    heard: list[str] = []
    async with fake_harness(tmp_path, notify=heard.append) as harness:
        outcome = await outcome_of(harness, f"// run: signal-once {number}")
        assert outcome.status is Status.MEASURED
        assert any(f"signal {number}" in text for text in heard)


@pytest.mark.parametrize("number", [9, 15])
async def test_a_worker_that_is_killed_twice_says_nothing_of_the_candidate(
    harness: LocalHarness, number: int
) -> None:
    outcome = await outcome_of(harness, f"// run: signal {number}")
    assert (outcome.status, outcome.check) == (Status.NOT_RUN, KILLED)
    assert outcome.reason.startswith(f"the device worker ended with signal {number} once more: ")
    await assert_next_is_right(harness)


ENDS = """import ctypes, sys
def reference(xp, sizes, A, B):
    print("said much " * 1000, file=sys.stderr, flush=True)
    if {ends}:
        ctypes.CDLL(None)._exit(3)
    return {{"C": A + B}}
"""


@pytest.mark.parametrize("ends", [True, False])
async def test_a_reference_that_ends_the_worker_is_not_the_candidates_fault(
    tmp_path: Path, ends: bool
) -> None:
    """In a way that Python cannot see; after the right answers it is the candidate."""
    problem = tmp_path / "own"
    shutil.copytree(load_problem("vector_add").folder, problem)
    (problem / "reference.py").write_text(ENDS.format(ends=ends))
    async with fake_harness(tmp_path, problem) as harness:
        if ends:
            told = r"own/reference.py: while it computed right answers the device worker ended with code 3: "
            with pytest.raises(ProblemError, match=told):
                await outcome_of(harness, "// run: answers")
        else:
            outcome = await outcome_of(harness, "// run: answers\n// run: exit 3")
            assert outcome.status is Status.CRASHED
            assert "ended with code 3" in outcome.reason
            assert "reference.py" not in outcome.reason


async def test_a_candidate_that_prints_the_words_of_the_worker_is_to_blame(harness: LocalHarness) -> None:
    outcome = await outcome_of(harness, f"// run: print {REFERENCE_BEGINS}")
    assert outcome.status is Status.CRASHED
    assert "ended with code 3" in outcome.reason


async def test_a_worker_that_takes_too_much_is_the_candidates_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_harness(tmp_path) as harness:
        bound = "it took all memory"
        monkeypatch.setattr(child, "excess", lambda _, folder, __: bound if folder.name == "device" else "")
        outcome = await outcome_of(harness, "// run: hang")
    assert outcome.status is Status.CRASHED
    assert "it took all memory" in outcome.reason


async def test_a_lost_context_is_answered_first_and_then_the_worker_replaced(harness: LocalHarness) -> None:
    before = await outcome_of(harness, "// run: pid")
    assert (await outcome_of(harness, "// run: break // again")).reason == "illegal address"
    after = await outcome_of(harness, "// run: pid")
    assert before.reason != after.reason


async def test_a_worker_without_fault_persists(harness: LocalHarness) -> None:
    pids = {(await outcome_of(harness, f"// run: pid\n// {n}")).reason for n in range(3)}
    assert len(pids) == 1


@pytest.mark.parametrize("where", ["compile", "run"])
async def test_printing_without_end_harms_nothing(harness: LocalHarness, where: str) -> None:
    outcome = await outcome_of(harness, f"// {where}: flood 128")
    assert outcome.status is Status.MEASURED


async def test_a_worker_that_ends_between_requests_is_nobodys_fault(harness: LocalHarness) -> None:
    await outcome_of(harness, "// run: pid\n// idle")
    process = harness._worker._running
    assert process is not None
    process.process.kill()
    await process.process.wait()
    await assert_next_is_right(harness)


async def test_our_own_fault_is_raised_and_not_blamed_on_the_candidate(harness: LocalHarness) -> None:
    for text in ("// run: fault", "// compile: fault"):
        with pytest.raises(HarnessError, match="a bug of ours"):
            await outcome_of(harness, text)
    await assert_next_is_right(harness)


async def test_a_passing_fault_gets_a_second_try_with_a_new_worker(tmp_path: Path) -> None:
    heard: list[str] = []
    async with fake_harness(tmp_path, notify=heard.append) as harness:
        assert (await outcome_of(harness, "// run: fault-once")).status is Status.MEASURED
    assert any("not ready" in message for message in heard)


async def test_a_result_without_all_cases_is_our_fault(harness: LocalHarness) -> None:
    with pytest.raises(HarnessError, match="no result for some case"):
        await outcome_of(harness, "// run: half")


async def test_hangs_end_by_their_limits(tmp_path: Path) -> None:
    limits = Timeouts(compile_s=2.0, run_s=0.01, grace_s=2.0)
    async with fake_harness(tmp_path, timeouts=limits) as harness:
        compiled = await harness.compile(candidate("// compile: hang"))
        assert compiled.status is Status.COMPILE_FAILED
        assert "did not end within 2 s" in compiled.reason
        assert compiled.seconds >= 2.0
        assert (await outcome_of(harness, "// run: hang")).status is Status.TIMED_OUT
        await assert_next_is_right(harness)


async def test_many_compiles_at_once_each_get_their_own_answer(harness: LocalHarness) -> None:
    works = [candidate(f"// number {n}") for n in range(40)]
    results = await asyncio.gather(*(harness.compile(work) for work in works))
    assert [result.candidate for result in results] == [work.id for work in works]
    assert len({result.digest for result in results}) == 40
    texts = await asyncio.gather(*(asyncio.to_thread(Path(result.artifact).read_text) for result in results))
    assert all(f"// number {n}\n" in text for n, text in enumerate(texts))


async def test_a_storm_of_bad_candidates(harness: LocalHarness) -> None:
    """All at once, each gets its own answer and the right ones are right."""
    kinds = {
        "// fine": Status.MEASURED,
        "// compile: signal 11": Status.COMPILE_FAILED,
        "// compile: speak garbage": Status.COMPILE_FAILED,
        "// run: signal 11": Status.CRASHED,
        "// run: break": Status.CRASHED,
        "// run: pid": Status.WRONG,
        "// compile: flood 4": Status.MEASURED,
    }
    storm = [(f"{text}\n// {n}", status) for n in range(3) for text, status in kinds.items()]
    outcomes = await asyncio.gather(*(outcome_of(harness, text) for text, _ in storm))
    assert [outcome.status for outcome in outcomes] == [status for _, status in storm]


async def test_compiles_run_side_by_side(harness: LocalHarness) -> None:
    """Each waits until the other has begun: one after the other they would hang."""
    assert harness._scratch is not None
    pipes = [harness._scratch.artifacts / name for name in ("one", "two")]
    for pipe in pipes:
        os.mkfifo(pipe)

    async def let_go() -> None:
        writers = [await writing_end(pipe) for pipe in pipes]
        for writer in writers:
            os.close(writer)

    works = (harness.compile(candidate(f"// compile: wait_for {pipe.name}")) for pipe in pipes)
    *results, _ = await asyncio.gather(*works, let_go())
    assert [result.status for result in results if result] == [None, None]


async def writing_end(pipe: Path) -> int:
    """Opens only when somebody reads."""
    async with asyncio.timeout(20):
        while True:
            try:
                return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                await asyncio.sleep(0.01)


async def test_a_cancelled_compile_frees_its_worker(harness: LocalHarness) -> None:
    tasks = [asyncio.create_task(harness.compile(candidate(f"// compile: hang\n// {n}"))) for n in range(2)]
    while harness._pool._idle.qsize():
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    assert all(
        isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*tasks, return_exceptions=True)
    )
    await assert_next_is_right(harness)


async def test_a_cancelled_benchmark_frees_the_device(harness: LocalHarness) -> None:
    work = candidate("// run: hang\n// cancelled")
    compiled = await harness.compile(work)
    task = asyncio.create_task(harness.benchmark(work, compiled))
    while not harness._on_device.taken:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await assert_next_is_right(harness)


async def test_occupancy_is_that_of_the_launch(
    harness: LocalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = replace(FACTS, kind="cuda", arch="sm_90")
    monkeypatch.setattr(harness, "_hello", Hello(facts=gpu))
    plans = list(harness._lane.plans(candidate()).values())
    known = StaticMetrics((KernelStatics("vector_add", registers=64, static_shared_bytes=0),))
    completed = harness._complete(known, plans)
    assert completed is not None
    kernel = completed.kernels[0]
    assert kernel.threads_per_block == 256
    assert (kernel.theoretical_occupancy, kernel.occupancy_limiter) == (0.5, "registers")


async def test_compilers_together_take_half_of_the_memory() -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 2 << 30 <= memory_share("compile", 4) <= max(2 << 30, total // 8)
    assert memory_share("device", 4) >= 4 << 30


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x" * (256 * 1024), "bytes, 262144 are allowed"),
        ("// bell \x07", "control character"),
    ],
)
async def test_some_sources_are_not_even_compiled(harness: LocalHarness, text: str, reason: str) -> None:
    compiled = await harness.compile(candidate(text))
    assert compiled.status is Status.RULE_BROKEN
    assert reason in compiled.reason


async def test_the_largest_allowed_source_of_quotes_still_fits_a_message(harness: LocalHarness) -> None:
    assert (await harness.compile(candidate("//" + '"\\' * 130_000))).status is None


async def test_a_plan_that_cannot_be_launched_is_refused_before_compiling(harness: LocalHarness) -> None:
    compiled = await harness.compile(candidate("// compile: hang", block="2048"))
    assert compiled.status is Status.LAUNCH_FAILED
    assert "2048" in compiled.reason


async def test_a_plan_that_does_not_hold_off_the_list_names_the_size(harness: LocalHarness) -> None:
    text = candidate("// plain").template.source.replace("cdiv(N, 256)", "cdiv(N - 1, 256)")
    work = Candidate(parse_template(text, "fake.cu"), Configuration())
    outcome = await harness.benchmark(work, await harness.compile(work))
    assert outcome.status is Status.LAUNCH_FAILED
    assert outcome.reason.startswith("the plan does not hold for sizes off the list: fake.cu:4:")
    assert outcome.reason.endswith("is 0, at least 1 is needed (case size N=1)")


async def test_times_below_the_physical_floor_are_quarantined(tmp_path: Path) -> None:
    async with fake_harness(tmp_path, ceilings=Ceilings(bytes_per_s=1e6)) as harness:
        outcome = await outcome_of(harness, "// fast")
    assert outcome.status is Status.TOO_FAST
    assert f"{CASE_MS:.4g} ms, the device needs at least" in outcome.reason
    assert outcome.times_ms()


async def test_the_checked_run_comes_first_and_its_findings_count(tmp_path: Path) -> None:
    async with fake_harness(tmp_path, checked=True) as harness:
        racy = await outcome_of(harness, "// check: race\n// run: hang")
        smallest = min(harness.problem.cases(slow=False), key=lambda case: case.sizes["N"])
        assert (racy.status, racy.reason) == (Status.WRONG, f"race in {smallest.id}")
        clean = await outcome_of(harness, "// clean")
    assert clean.status is Status.MEASURED
    assert clean.findings == ("4-way bank conflict",)
    assert clean.seconds["check"] == 1.5


async def test_a_binary_that_is_gone_is_told(harness: LocalHarness) -> None:
    work = candidate("// fine")
    compiled = await harness.compile(work)
    harness._artifacts._known.clear()
    with pytest.raises(HarnessError, match="compile it first"):
        await harness.benchmark(work, compiled)


async def test_what_is_not_there_says_so(harness: LocalHarness) -> None:
    assert (await harness.profile(candidate(), "N=65536")).status == "not_available"
    assert (await harness.submit(candidate(), None)).status == "no_board"


async def test_a_device_that_is_missing_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="buy one"):
        await fake_harness(tmp_path, maker="tests.harness.fake_device:MissingMaker").start()
    assert names(tmp_path) == []


async def test_a_worker_that_never_starts_ends_the_harness(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"does not start.*signal 6.*the driver is on fire"):
        await fake_harness(tmp_path, maker="tests.harness.fake_device:DyingMaker").start()


async def test_close_leaves_nothing(tmp_path: Path) -> None:
    harness = fake_harness(tmp_path)
    await harness.start()
    pids = [child.process_id for child in harness._children if child.process_id]
    assert len(pids) == 2
    await harness.close()
    await harness.close()
    assert names(tmp_path) == []
    assert not set(map(str, pids)) & set(names(Path("/proc")))


async def test_closing_ends_what_is_in_flight(tmp_path: Path) -> None:
    harness = fake_harness(tmp_path)
    await harness.start()
    task = asyncio.create_task(harness.compile(candidate("// compile: hang")))
    while harness._pool._idle.qsize() == 2:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0)
    await harness.close()
    with pytest.raises(HarnessError, match="closed while it worked"):
        await task


async def test_an_unstarted_harness_has_no_facts(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="not started"):
        _ = fake_harness(tmp_path).facts
