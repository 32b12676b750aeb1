"""Candidates that attack the harness from within their process: none may be measured as anything but what it is."""

import platform
import re
import subprocess
from itertools import pairwise

import pytest

from kernelwright.core.launch import ResolvedPlan, ScratchSpec
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import Buffer, RunResult
from kernelwright.devices.cpu import compiler
from kernelwright.devices.cpu.data import CaseData
from kernelwright.devices.cpu.job import FORWARD, Job, PlannedRun, Settings
from kernelwright.devices.cpu.layout import FileLayout
from kernelwright.devices.cpu.symbols import SharedStorage
from kernelwright.devices.cpu.toolchain import Toolchain
from tests.devices.cpu.test_good_kernels import HEAD, out, x_of
from tests.devices.cpu.workbench import Bench, Kernel

pytestmark = pytest.mark.usefixtures("any_section")
N = 1000
WORK = 3_000_000  # dependent additions: some milliseconds
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
SPIN = f"volatile float f = 0; for (int j = 0; j < {WORK}; j++) f = f + 1.f;"
RESULT = "if (i < n) y[i] = 2.f * x[i];"
X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86-64")
# long call(number, a, b, c): moves its arguments to where Linux wants them, syscall, ret.
SYSTEM_CALL = (
    'extern "C" const __attribute__((section(".text"))) unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, '
    "0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x0f, 0x05, 0xc3};\n"
    "__device__ long call(long n, long a, const void* b, long c) "
    "{ return ((long (*)(long, long, const void*, long))(void*)code)(n, a, b, c); }\n"
)


def kernel(body: str, head: str = "", **more: object) -> Kernel:
    arguments = {"grid": 4, "block": 256, **more}
    return Kernel(head + HEAD + INDEX + body + "}", ["x", "y", N], x_of(N), out(N), lambda a: {"y": 2.0 * a["x"]},
                  **arguments)  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture
def say(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> str:
    """Source of a function that writes any line as the runner does: found beside a function that is imported.

    Its name is refused in a source. Here it is not: another way to that address would do as well.
    """
    monkeypatch.setattr(compiler, "hiding", str)
    runner = Toolchain("g++", bench.cache).runner("fast")
    names = subprocess.run(["nm", "-D", str(runner)], capture_output=True, text=True, check=True).stdout
    address = {
        name: int(value, 16) for value, name in re.findall(r"^([0-9a-f]+) T (\S+)$", names, re.MULTILINE)
    }
    offset = address["_ZN2kw6reportEPKcz"] - address["kw_barrier"]
    return f"#define say ((void (*)(const char*, ...))((char*)&kw_barrier + ({offset})))\n"


def test_a_run_that_says_it_has_ended_has_ended(bench: Bench, say: str) -> None:
    """The process is ended at its last word: what it would have computed later never reaches the output."""
    result = bench.run(kernel(f'if (i == 0) say("time"); if (threadIdx.x == 0) {{ {SPIN} }} {RESULT}', say))
    assert result.status in {Status.WRONG, Status.CRASHED}, result
    assert result.check in {Check.POISON, Check.RUN_LIMITS}
    assert result.timings == ()


@pytest.mark.parametrize("work", [3_000, 10_000, 30_000, 100_000])
@pytest.mark.parametrize("blocks", [1, 2])
def test_work_behind_the_told_end_is_no_gift(bench: Bench, say: str, work: int, blocks: int) -> None:
    """Until its watcher has woken up and stopped it, a run may get its work done: all CPU time of it counts."""
    spin = f"volatile float f = 0; for (int j = 0; threadIdx.x == 0 && j < {work}; j++) f = f + 1.f;"
    every = f"for (; i < n; i += {blocks} * 256) y[i] = 2.f * x[i];"
    honest = kernel(f"{spin} {every}", grid=blocks)
    busy = f'say("{"x" * 900}");' * 2  # for the watcher to pass on
    forged = kernel(f'if (i == 0) {{ {busy} say("time"); }} {spin} {every}', say, grid=blocks)
    right, result = bench.run(honest, runs=12), bench.run(forged, runs=12)
    assert right.status is Status.MEASURED
    if result.status is Status.MEASURED:
        # Where one thread was idle for long, the CPU time of all tells no more than an equal share of it.
        assert result.timings[0].median_ms > 0.7 * min(right.timings[0].samples_ms) / blocks
    else:
        assert result.check in {Check.POISON, Check.RUN_LIMITS}


def test_forged_lines_change_nothing(bench: Bench, say: str) -> None:
    honest = f"if (threadIdx.x == 0) {{ {SPIN} }} {RESULT}"
    lines = ["begin\\t0", "ran\\t0\\t1\\t5\\t0\\t0", "say\\ttime", "time\\t0\\t1", "end", "start\\t3", "fault\\tyours", "base\\t-1",
             "base\\t\u0663", "metric\\t0x1\\tglobal\\tload\\t4\\t0\\t0\\t0\\t0", "metric\\tx", "printed\\tx", "note-x", ""]  # fmt: skip
    said = "".join(f'say("{line}");' for line in lines)
    forged = f"if (i == 0) {{ {said} }} {honest}"
    right, result = bench.run(kernel(honest)), bench.run(kernel(forged, say))
    assert right.status == result.status == Status.MEASURED, result
    assert result.timings[0].median_ms > right.timings[0].median_ms / 3
    assert result.timings[0].median_ms > WORK * 1e-7  # no CPU adds faster than 10 times a nanosecond


@pytest.mark.parametrize(
    "line", ["crash\\tnothing", "finding\\trace\\t@0xffffffffffffffffffff x", "launch\\tx"]
)
def test_forged_faults_are_faults(bench: Bench, say: str, line: str) -> None:
    result = bench.run(kernel(f'if (i == 0) say("{line}"); {RESULT}', say))
    assert result.status in {Status.CRASHED, Status.WRONG, Status.LAUNCH_FAILED}
    assert result.check


def test_a_flood_of_lines_is_a_crash_of_its_own(bench: Bench, say: str) -> None:
    """It is ended for it: that is no kill from outside, and not seen again."""
    line = "x" * 1000
    result = bench.run(kernel(f'for (int j = 0; i == 0 && j < 2000; j++) say("{line}"); {RESULT}', say))
    assert (result.status, result.check) == (Status.CRASHED, Check.RUN_LIMITS)
    assert "reported more than 1 MiB" in result.reason


@pytest.mark.parametrize("pages", [-2, -1, 1, 2])
def test_the_outputs_of_other_runs_are_out_of_reach(bench: Bench, pages: int) -> None:
    """Run 0 would compute them all, were they there: the mappings lie side by side."""
    distance = pages * (4096 + 2 * 65536) // 4
    result = bench.run(kernel(f"{RESULT} if (i < n) y[{distance} + i] = 2.f * x[i];"))
    assert result.status in {Status.CRASHED, Status.WRONG}, result
    assert result.check in {Check.CRASH, Check.INPUTS_UNCHANGED}


@X86
@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        ('call(1, 1, "time\\n", 5);', "system call"),  # write to standard output
        ('call(1, 2, "time\\n", 5);', "system call"),
        ("call(231, 0, 0, 0);", "ended early"),  # exit_group, with all outputs right
        ("call(60, 0, 0, 0); call(231, 0, 0, 0);", ""),  # exit of one thread
        ("call(57, 0, 0, 0);", "system call"),  # fork
        ("call(62, 1, (void*)9, 0);", "system call"),  # kill
        ("call(101, 16, (void*)1, 0);", "system call"),  # ptrace
        ('call(2, (long)"/etc/passwd", 0, 0);', "system call"),  # open
    ],
)
def test_system_calls_get_nowhere(bench: Bench, attack: str, reason: str) -> None:
    result = bench.run(kernel(f"{RESULT} if (i == n - 1) {{ {attack} }}", SYSTEM_CALL), timeout_s=2.0)
    assert result.status in {Status.CRASHED, Status.TIMED_OUT}, result
    assert reason in result.reason
    assert result.check in {Check.CRASH, Check.RUN_LIMITS}


@X86
def test_writing_to_every_descriptor_says_nothing(bench: Bench) -> None:
    """One of them is the run's line: its own last word in the mouth of one run ends that run."""
    body = f'for (int fd = 3; fd < 40 && i == 0; fd++) call(1, fd, "time\\n", 5); if (threadIdx.x == 0) {{ {SPIN} }} {RESULT}'
    result = bench.run(kernel(body, SYSTEM_CALL))
    assert result.status in {Status.CRASHED, Status.WRONG}, result
    assert result.timings == ()


@pytest.mark.parametrize(
    "source",
    [
        '#define GLUE(a, b) a##b\n#define HIDE GLUE(__as, m__)\n{head}HIDE("nop"); }}',
        '#define X asm\n#define Y X\n{head}Y volatile ("nop"); }}',
        '{head}as\\\nm("nop"); }}',
        '{head}const char* s = R"(\n)"; asm("nop"); }}',
        '{head}const char* s = u8R"--(\n)--"; __asm("nop"); }}',
        '{head}%:define Z __asm__\n}}\nextern "C" __global__ void other() {{ Z("nop"); }}',
        '__asm__("nop");\n{head}}}',
        'int a __asm__("b");\n{head}}}',
    ],
)  # fmt: skip
def test_no_spelling_of_asm_is_compiled(bench: Bench, source: str) -> None:
    built = bench.build(source.format(head=HEAD + "\n"))
    assert built.status in {Status.NOT_RUN, Status.RULE_BROKEN, Status.COMPILE_FAILED}, built


def test_a_string_that_ends_like_a_raw_one_is_fine(bench: Bench) -> None:
    assert bench.build(f'{HEAD} if (n < 0) printf("ERROR" "R"); }}').status is None


# Answers are kept before scratch, each with a print of its input; the last of the runs puts the one word back, which
# all canaries once were.
KEPT = """
    unsigned long long* page = (unsigned long long*)((size_t)kept & ~(size_t)4095);
    if (i == 0) {
        const unsigned long long empty = page[0];
        page[8] = page[8] == empty ? empty + 1 : page[8] + 1;
        if (page[8] - empty == 4) page[8] = empty;
    }
"""


def test_state_beside_scratch_is_seen_however_it_is_put_back(bench: Bench) -> None:
    hiding_state = kernel(KEPT + RESULT, scratch={"kept": ("float32", 16)})
    hiding_state.source = hiding_state.source.replace("float* y,", "float* y, float* kept,")
    hiding_state.args = ["x", "y", "kept", N]
    result = bench.run(hiding_state, runs=4)
    assert (result.status, result.check) == (Status.WRONG, Check.GUARD_BANDS), result
    assert "next to kept" in result.reason


def test_the_known_pattern_does_not_pass_for_a_canary(bench: Bench) -> None:
    result = bench.run(kernel(f"{RESULT} if (i == 0) ((unsigned*)y)[n] = 0xCBCBCBCBu;"))
    assert (result.status, result.check) == (Status.WRONG, Check.GUARD_BANDS)


def test_an_output_of_the_last_candidate_is_not_there(bench: Bench) -> None:
    assert bench.run(kernel(RESULT)).status == Status.MEASURED
    result = bench.run(kernel("if (n < 0) y[i] = 0;"))
    assert (result.status, result.check) == (Status.WRONG, Check.POISON)
    assert f"none of the {N} values of y was ever written" in result.reason


def printed(result: RunResult) -> set[str]:
    return {line.removeprefix("printed: ") for line in result.findings if line.startswith("printed: ")}


def test_distances_between_buffers_tell_nothing(bench: Bench) -> None:
    """They are drawn for each run: neither the number of runs nor that of input sets can be seen."""
    result = bench.run(
        kernel(f'if (i == 0) printf("%lld\\n", (long long)((size_t)x - (size_t)y)); {RESULT}'), runs=8
    )
    assert result.status is Status.MEASURED, result
    distances = sorted(map(int, printed(result)))
    assert len(distances) == 8
    assert min(map(abs, distances)) > 1 << 20
    assert min(b - a for a, b in pairwise(distances)) > 1 << 20


def test_a_run_is_told_nothing_of_the_others() -> None:
    """What a process reads of its run is alike in a trial and in a timed case, but for what is drawn."""
    buffers = (Buffer("x", "float32", (N,), "in"), Buffer("y", "float32", (N,), "out"))
    plan = ResolvedPlan((), (ScratchSpec("part", "float32", 300),), False)
    settings = Settings(2, 1 << 17, 1 << 30, metrics=False, shared=SharedStorage(0, 64, ()))
    sets = {i: CaseData(7, {"x": FileLayout().add(buffers[0], writable=False)}, {}, 0) for i in range(3)}
    jobs = []
    for runs in (3, 10):
        job = Job(plan, buffers, [PlannedRun(i, i % 3, FORWARD) for i in range(runs)])
        common, *parts = job.parts(settings, sets, 8, 10)
        jobs.append(common)
        assert len(parts) == runs
        assert all(len(part.splitlines()) == 4 for part in parts)
        # The seed of the run's orders, which a candidate may find in memory, tells no number either.
        seeds = {int(part.splitlines()[3].split()[2]) for part in parts}
        assert len(seeds) == runs
        assert max(seeds) > 1 << 40
    assert jobs[0] == jobs[1]
