"""Which check refuses what: its name, and what it takes to pass."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from kernelwright.core.launch import ResolvedPlan, ScratchSpec
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import Buffer, CaseRequest, RunRequest, RunResult, TimingProtocol
from kernelwright.devices.cpu.job import FORWARD, Job, PlannedRun
from kernelwright.devices.cpu.layout import FileLayout
from tests.devices.cpu.test_good_kernels import HEAD, out, x_of
from tests.devices.cpu.workbench import ArraySource, Bench, Kernel

N = 256
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
SCRATCH_HEAD = 'extern "C" __global__ void k(const float* x, float* y, int n, float* part) {'


def kernel(body: str, **more: object) -> Kernel:
    arguments = {"grid": 1, "block": 256, **more}
    return Kernel(HEAD + INDEX + body + "}", ["x", "y", N], x_of(N), out(N), lambda a: {"y": 2.0 * a["x"]},
                  **arguments)  # type: ignore[arg-type]  # fmt: skip


def with_scratch(body: str, **more: object) -> Kernel:
    found = kernel(body, scratch={"part": ("float32", N)}, **more)
    found.source = found.source.replace(HEAD, SCRATCH_HEAD)
    found.args = ["x", "y", N, "part"]
    return found


RIGHT = kernel("if (i < n) y[i] = 2.f * x[i];")


@pytest.mark.parametrize(
    ("body", "status", "check"),
    [
        ("y[i] = 3.f * x[i];", Status.WRONG, Check.VALUES),
        ("if (i < 200) y[i] = 2.f * x[i];", Status.WRONG, Check.POISON),
        ("y[i] = fmaxf(y[i], 2.f * x[i]);", Status.WRONG, Check.POISON),
        ("y[i] = fminf(y[i], 2.f * x[i]);", Status.WRONG, Check.POISON),
        ("y[i] = 2.f * x[i]; y[n + (i & 15)] = 0.f;", Status.CRASHED, Check.CRASH),
        ("y[i] = 2.f * x[i]; if (i == 0) y[-1] = 0.f;", Status.WRONG, Check.GUARD_BANDS),
        ("y[i] = 2.f * x[i]; ((float*)x)[i] = 0.f;", Status.WRONG, Check.INPUTS_UNCHANGED),
        ("for (;;) { ((volatile float*)y)[i] = 2.f * x[i]; }", Status.TIMED_OUT, Check.RUN_LIMITS),
        ("if (threadIdx.x & 1) __syncthreads(); else __syncwarp(); y[i] = 0;", Status.WRONG, Check.CHECKED_MODE),
        ("assert(n == 1);", Status.WRONG, Check.CRASH),
        ("__trap();", Status.CRASHED, Check.CRASH),
    ],
)  # fmt: skip
def test_the_check_is_named(bench: Bench, body: str, status: Status, check: Check) -> None:
    size = 250 if "y[-1]" in body else N  # such that something lies before the buffer in its first page
    wrong = kernel(body.replace("y[i] = 2.f", "if (i < n) y[i] = 2.f"))
    wrong.args, wrong.inputs, wrong.outputs = ["x", "y", size], x_of(size), out(size)
    result = bench.run(wrong, timeout_s=1.5)
    assert (result.status, result.check) == (status, check), result


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("y[i] = 2.f * x[i]; if (i == 0) y[n] = 0.f;", Check.CHECKED_MODE),
        ("if (i < 200) y[i] = 2.f * x[i];", Check.POISON),
        ("y[i] = 2.f * x[i]; ((float*)x)[i] = 0.f;", Check.INPUTS_UNCHANGED),
        ("__shared__ float s[256]; s[i] = x[i]; y[i] = 2.f * s[n - 1 - i];", Check.CHECKED_MODE),
    ],
)
def test_the_checked_mode_names_its_checks(bench: Bench, body: str, check: Check) -> None:
    result = bench.run(kernel(body), "check")
    assert (result.status, result.check) == (Status.WRONG, check), result


def test_an_overrun_is_the_only_finding(bench: Bench) -> None:
    """It ends the launch: what is unwritten then is a consequence, and would lead astray."""
    result = bench.run(kernel("if (i == 3) y[n + 5] = 1.f; y[i] = 2.f * x[i];"), "check")
    assert [f.split(":")[0] for f in result.findings if not f.startswith("metric")] == ["out-of-bounds"]


@pytest.mark.parametrize(
    "body",
    [
        "__shared__ float s[256]; y[i] = 2.f * x[i] + s[i];",
        "__shared__ float s; y[i] = 2.f * x[i] + s;",
        "__shared__ float s[256]; y[i] = 2.f * x[i] + s[7];",
        "__shared__ float2 s[8][8]; y[i] = 2.f * x[i] + s[i & 7][2].y;",
        "__shared__ int s[1]; y[i] = s[0] == 0 ? 2.f * x[i] : 0.f;",
        "__shared__ int s[4]; y[i] = __ldg(&s[1]) == 0 ? 2.f * x[i] : 0.f;",
    ],
)
def test_shared_memory_that_nobody_writes_is_seen(bench: Bench, body: str) -> None:
    """The compiler knows such an array as 0 and would fold it away."""
    checked = bench.run(kernel(body), "check")
    assert (checked.status, checked.check) == (Status.WRONG, Check.CHECKED_MODE), checked
    assert "uninitialised-shared" in checked.reason
    assert bench.run(kernel(body)).status == Status.WRONG


def test_equal_inputs_must_give_equal_bits(bench: Bench) -> None:
    """Within the tolerance, but from what lay in scratch before."""
    lucky = with_scratch("y[i] = part[i] > 0.f ? 2.f * x[i] : 2.000001f * x[i];")
    result = bench.run(lucky, runs=8)
    assert (result.status, result.check) == (Status.UNSTABLE, Check.REPEAT), result
    assert "y differs in its bits from that of run" in result.reason
    assert result.timings == ()


def test_a_race_within_the_tolerance_is_unstable(bench: Bench) -> None:
    body = "__shared__ float s[256]; s[i] = x[i]; float near = s[n - 1 - i]; y[i] = 2.f * x[i] + (near == x[n - 1 - i] ? 1e-6f : 0.f);"
    result = bench.run(kernel(body), runs=6)
    assert (result.status, result.check) == (Status.UNSTABLE, Check.REPEAT), result


def test_declared_noise_is_held_to_the_tolerance_only(bench: Bench) -> None:
    noisy = "y[i] = part[i] > 0.f ? 2.f * x[i] : 2.000001f * x[i];"
    assert bench.run(with_scratch(noisy, atomic_noise=True), runs=8).status == Status.MEASURED
    result = bench.run(with_scratch(noisy.replace("2.000001f", "2.1f"), atomic_noise=True), runs=8)
    assert (result.status, result.check) == (Status.WRONG, Check.VALUES)


def ask(bench: Bench, candidate: Kernel, timing: TimingProtocol, **more: object) -> RunResult:
    case = CaseRequest("small", bench.plan(candidate), **{k: v for k, v in more.items() if k != "check_only"})  # type: ignore[arg-type]
    artifact = bench.build(candidate.source).artifact
    request = RunRequest(artifact, (case,), timing, check_only=bool(more.get("check_only")))
    return bench.runner.run(request, ArraySource(candidate))


def test_a_trial_meets_every_poison(bench: Bench) -> None:
    timing = TimingProtocol(runs=1, dropped=0)
    for fold in ("fmaxf", "fminf"):
        result = ask(bench, kernel(f"y[i] = {fold}(y[i], 2.f * x[i]);"), timing, check_only=True)
        assert (result.status, result.check) == (Status.WRONG, Check.POISON), result
    lucky = with_scratch("y[i] = part[i] > 0.f ? 2.f * x[i] : 2.000001f * x[i];")
    assert ask(bench, lucky, timing, check_only=True).check == Check.REPEAT
    noisy = replace(lucky, atomic_noise=True)
    assert ask(bench, noisy, timing, check_only=True).status == Status.MEASURED
    assert ask(bench, RIGHT, timing, check_only=True).status == Status.MEASURED


def test_a_check_tells_the_worst_error(bench: Bench) -> None:
    off = kernel("y[i] = i == 3 ? 2.000001f * x[i] : 2.f * x[i];")
    for candidate, least in ((RIGHT, 0.0), (off, 1e-9)):
        result = ask(bench, candidate, TimingProtocol(), check_only=True)
        ((case, error),) = result.errors
        assert case == "small"
        assert least <= error < 1.0
    assert ask(bench, kernel("y[i] = 0.f;"), TimingProtocol(), check_only=True).errors == ()
    assert ask(bench, RIGHT, TimingProtocol()).errors == ()


def test_a_trial_fails_in_the_name_of_its_check(bench: Bench) -> None:
    wrong = kernel("y[i] = 3.f * x[i];")
    result = ask(bench, wrong, TimingProtocol(), check_only=True, check=Check.STRESS_INPUTS)
    assert (result.status, result.check) == (Status.WRONG, Check.STRESS_INPUTS)


@pytest.mark.parametrize(
    ("above", "loser_runs", "kept"), [(0.0, 4, 2), (0.0, 1, 1), (math.inf, 4, 6), (1e9, 4, 6), (0.0, 20, 6)]
)
def test_a_clear_loser_gets_few_runs(bench: Bench, above: float, loser_runs: int, kept: int) -> None:
    timing = TimingProtocol(runs=8, dropped=2, loser_runs=loser_runs)
    result = ask(bench, RIGHT, timing, loser_above_ms=above)
    assert result.status == Status.MEASURED
    assert len(result.timings[0].samples_ms) == kept


def test_canaries_are_made_anew_for_every_buffer() -> None:
    """What one run found around its output is no help to the next."""
    regions = [FileLayout().add(Buffer("y", "float32", (N,), "out"), writable=True) for _ in range(20)]
    assert len({region.canary for region in regions}) == len(regions)


def test_no_part_of_a_canary_can_stand_for_another() -> None:
    region = FileLayout().add(Buffer("y", "float32", (N - 6,), "out"), writable=True)
    memory = memoryview(bytearray(region.map_bytes))
    region.write_canaries(memory)
    assert region.canaries_intact(memory)
    end = region.data_offset + region.nbytes
    words = [bytes(memory[at : at + 8]) for at in (*range(0, region.data_offset, 8), end)]
    assert len(set(words)) == len(words) > 8
    for at in (0, region.data_offset - 8, end):
        old = bytes(memory[at : at + 8])
        memory[at : at + 8] = words[3]
        assert not region.canaries_intact(memory)
        memory[at : at + 8] = old
    assert region.canaries_intact(memory)


def test_no_two_runs_share_memory_that_they_may_write() -> None:
    """What one leaves, no other finds; nor can it put anything back for another."""
    plan = ResolvedPlan((), (ScratchSpec("part", "float32", 300),), False)
    buffers = (Buffer("x", "float32", (N,), "in"), Buffer("y", "float32", (N,), "out"))
    job = Job(plan, buffers, [PlannedRun(i, 0, FORWARD) for i in range(5)])
    of_runs = [(*job.outputs[i].values(), *job.scratch[i].values()) for i in range(5)]
    places = sorted((r.file_offset, r.file_offset + r.map_bytes) for regions in of_runs for r in regions)
    assert len(places) == len(job.written) == 10
    assert all(end <= begin for (_, end), (begin, _) in pairwise(places))
