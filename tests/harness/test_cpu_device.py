"""The real cpu device through the harness: hostile candidates get their status, the next measurement is right."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.core.outcome import Check, Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.devices.base import TimingProtocol
from kernelwright.harness.device_lane import UNWATCHED
from kernelwright.harness.local import LocalHarness, Timeouts

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="the cpu device needs g++"),
    pytest.mark.timeout(600),
]
PLAN = """/* kernelwright
[[launch]]
kernel = "vector_add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
"""
KERNEL = """{before}
extern "C" __global__ void vector_add(const float* A, const float* B, float* C, int N) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
"""
RIGHT = "if (i < N) C[i] = A[i] + B[i];"


def kernel(body: str, before: str = "") -> Candidate:
    source = PLAN + KERNEL.format(before=before, body=body)
    return Candidate(parse_template(source, "candidate.cu"), Configuration())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalHarness]:
    """Also builds the device's own tools where this machine has none yet."""
    root = tmp_path_factory.mktemp("scratch")
    limits = Timeouts(compile_s=12.0, run_s=3.0)
    timing = TimingProtocol(runs=4, dropped=1)
    async with LocalHarness(
        "vector_add",
        "cpu",
        compile_workers=2,
        slow_cases=True,
        scratch_root=root,
        timeouts=limits,
        timing=timing,
    ) as started:
        yield started


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def outcome_of(harness: LocalHarness, work: Candidate) -> Outcome:
    compiled = await harness.compile(work)
    return compiled.as_outcome() if compiled.status else await harness.benchmark(work, compiled)


async def test_the_baseline_is_right_and_timed(harness: LocalHarness) -> None:
    outcome = await outcome_of(
        harness, Candidate(parse_template(harness.problem.baseline_source), Configuration())
    )
    assert outcome.status is Status.MEASURED, outcome.reason
    assert [timing.case for timing in outcome.cases] == [case.id for case in harness.problem.cases(slow=True)]
    assert all(len(timing.samples_ms) == 3 and timing.median_ms > 0 for timing in outcome.cases)
    assert set(outcome.seconds) == {"compile", "check", "time", "overhead"}


async def test_the_walls_stand_around_the_real_device_too(harness: LocalHarness) -> None:
    lacking = set(harness.sandbox.missing) - {"user", "landlock", "signals"}
    assert not lacking, harness.sandbox


@pytest.mark.parametrize(
    ("body", "before", "status", "reason"),
    [
        ("this is not C++;", "", Status.COMPILE_FAILED, "candidate.cu:11"),
        ("C[i] = 1;", "#include <fstream>", Status.RULE_BROKEN, "<fstream>"),
        ("volatile int go = 1; while (go) {} " + RIGHT, "", Status.TIMED_OUT, "still running"),
        ("C[i + 4096] = A[i];", "", Status.WRONG, "out-of-bounds"),
        ("*(volatile float*)(size_t)i = 1.0f; " + RIGHT, "", Status.WRONG, "null pointer"),
        ("if (i < N) C[i] = A[i];", "", Status.WRONG, "values of C wrong"),
        ("", "", Status.WRONG, "never written"),
        ("for (;;) if (!malloc(1 << 20)) break; " + RIGHT, "", Status.NOT_RUN, "memory allocation"),
        (
            "float x[1 << 20]; for (int n = 0; n < 1 << 20; n++) x[n] = n; C[i] = x[N % 77];",
            "",
            Status.CRASHED,
            "stack",
        ),
    ],
    ids=[
        "syntax",
        "host header",
        "endless",
        "bounds",
        "wild pointer",
        "wrong sum",
        "nothing",
        "malloc",
        "stack",
    ],
)
async def test_a_bad_candidate_has_its_status_and_the_next_is_right(
    harness: LocalHarness, body: str, before: str, status: Status, reason: str
) -> None:
    outcome = await outcome_of(harness, kernel(body, before))
    assert outcome.status is status, outcome
    assert reason in outcome.reason
    after = await outcome_of(harness, kernel(RIGHT))
    assert after.status is Status.MEASURED, after.reason


class NotAhead(Screen):
    """Within what makes a contender of the leader, whatever the times."""

    def is_ahead(self, times_ms: Mapping[str, float]) -> bool:
        return not times_ms


async def test_large_trials_are_for_who_is_ahead_and_do_not_tell_their_sizes(harness: LocalHarness) -> None:
    """Wrong for some sizes above the largest: it may lose to somebody, but not lead."""
    work = kernel(
        'if (i == 0) printf("N is %d", N); if (N <= 1048576 || N % 4 == 0 || N % 4 == 3) { ' + RIGHT + " }"
    )
    compiled = await harness.compile(work)
    assert compiled.status is None
    times = {case.id: 1e9 for case in harness.cases}
    near = NotAhead(Objective(ObjectiveName.MEAN), times)
    assert (await harness.benchmark(work, compiled, near)).status is Status.MEASURED
    for screen in (Screen(Objective(ObjectiveName.MEAN), times), None):
        outcome = await harness.benchmark(work, compiled, screen)
        assert outcome.status is Status.WRONG
        assert outcome.check in {Check.OTHER_SIZES, Check.POISON}
        assert "a size off the list that is not told" in outcome.reason
        sizes = [t.sizes["N"] for t in harness.problem.large_trials(slow=True, seed=0) if t.told]
        assert not any(str(size) in f"{outcome.reason}{outcome.findings}" for size in sizes)
        assert "N is 1048576" in str(outcome.findings)


async def test_the_checked_mode_watches_larger_sizes_too_and_does_not_tell_them(
    harness: LocalHarness,
) -> None:
    """Right in every order of threads, for a plan or a kernel with a threshold."""
    race = "__shared__ float s[256]; s[threadIdx.x] = 0.f; if (N > 300000 && s[255 - threadIdx.x] == 1.f) C[0] = 0.f; "
    work = kernel(race + RIGHT)
    compiled = await harness.compile(work)
    result = await harness.sanitize(work, compiled)
    assert result.status is Status.WRONG
    assert result.reason.startswith("checked mode: wrong for a size off the list that is not told, ")
    sizes = [t.sizes["N"] for t in harness.problem.large_trials(slow=True, seed=0) if t.told]
    assert not any(str(size) in f"{result.reason}{result.findings}" for size in sizes)


async def test_a_larger_size_that_takes_the_checked_mode_too_long_is_told(harness: LocalHarness) -> None:
    slow = "if (N > 1100000 && i < 4096) for (int j = 0; j < 1 << 16; j++) ((volatile float*)C)[i] = 0.f; "
    work = kernel(slow + RIGHT)
    compiled = await harness.compile(work)
    result = await harness.sanitize(work, compiled)
    assert (result.status, result.reason) == (Status.MEASURED, "")
    assert UNWATCHED in result.findings


async def test_large_stress_says_where(harness: LocalHarness) -> None:
    clamped = kernel("if (i < N) C[i] = (N > 300000 ? fminf(A[i], 100.0f) : A[i]) + B[i];")
    outcome = await outcome_of(harness, clamped)
    assert outcome.check == Check.STRESS_INPUTS
    assert "stress large N=1048576" in outcome.reason


async def test_a_source_that_explodes_in_the_compiler(harness: LocalHarness) -> None:
    """Templates that instantiate each other 16 million times: by time or by memory, it ends as a failed compile."""
    before = (
        "template <int A, unsigned long B> struct T "
        "{ static constexpr int v = T<A - 1, 2 * B>::v + T<A - 1, 2 * B + 1>::v; };\n"
        "template <unsigned long B> struct T<0, B> { static constexpr int v = 1; };"
    )
    outcome = await outcome_of(harness, kernel("C[i] = T<24, 1>::v;", before))
    assert outcome.status in {Status.COMPILE_FAILED, Status.TIMED_OUT}, outcome
    assert (await outcome_of(harness, kernel(RIGHT))).status is Status.MEASURED


async def test_printing_gigabytes_harms_nothing(harness: LocalHarness) -> None:
    body = 'for (int n = 0; n < 1 << 20; n++) printf("%d %s\\n", n, "' + "x" * 200 + '"); ' + RIGHT
    outcome = await outcome_of(harness, kernel(body))
    assert outcome.status is Status.TIMED_OUT, outcome
    assert harness._scratch is not None
    assert await asyncio.to_thread(bytes_in, harness._scratch.path) < 64 << 20
    assert (await outcome_of(harness, kernel(RIGHT))).status is Status.MEASURED


async def test_device_code_includes_no_files_of_the_host(harness: LocalHarness, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the_secret_of_this_host")
    body = f'C[i] =\n#include "{tmp_path / "secret"}"\n;'
    outcome = await outcome_of(harness, kernel(body))
    assert outcome.status is Status.RULE_BROKEN
    assert "the_secret" not in outcome.reason
