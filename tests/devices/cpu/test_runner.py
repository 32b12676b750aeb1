"""The runner: hostile and broken candidates, limits, and that the next run is unharmed."""

import contextlib
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import KernelArgument, LaunchSpec, ResolvedPlan
from kernelwright.core.outcome import KILLED, Check, Status
from kernelwright.devices.base import CaseRequest, RunRequest, RunResult, TimingProtocol
from kernelwright.devices.cpu import CpuRunner, runner
from kernelwright.devices.cpu.job import Job
from kernelwright.devices.cpu.process import Report, run_process
from tests.devices.cpu.test_good_kernels import HEAD, out, x_of
from tests.devices.cpu.workbench import ArraySource, Bench, Kernel

N = 1000
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


def kernel(body: str, head: str = HEAD, **more: object) -> Kernel:
    arguments = {"grid": 4, "block": 256, **more}
    return Kernel(
        head + INDEX + body + "}", ["x", "y", N], x_of(N), out(N), lambda a: {"y": 2.0 * a["x"]}, **arguments
    )  # type: ignore[arg-type]


RIGHT = kernel("if (i < n) y[i] = 2.f * x[i];")


def assert_healthy(bench: Bench) -> None:
    result = bench.run(RIGHT)
    assert result.status == Status.MEASURED, result


def test_wrong_values_are_counted(bench: Bench) -> None:
    result = bench.run(kernel("if (i < n) y[i] = i == 7 || i == 9 ? 1e9f : 2.f * x[i];"))
    assert result.status == Status.WRONG
    assert "case small (run 0): 2 of 1000 values of y wrong, first at [7]: got 1e+09" in result.reason


def test_unwritten_values_are_named(bench: Bench) -> None:
    result = bench.run(kernel("if (i < n - 100) y[i] = 2.f * x[i];"))
    assert result.status == Status.WRONG
    assert "100 of 1000 values of y wrong, first at [900]: got " in result.reason
    assert "100 values were never written" in result.reason


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["x", "y", N], "none of the 1000 values of y was ever written"),
        (
            ["x", "x", N],
            "none of the 1000 values of y was ever written: no launch with y among its args ran, look at every 'when'",
        ),
    ],
)
def test_nothing_written_is_told_without_a_guess_at_barriers(
    arguments: list[str | int], told: str, bench: Bench
) -> None:
    idle = replace(kernel("if (n < 0) y[i] = x[i];"), args=arguments)
    result = bench.run(idle)
    assert result.reason == f"case small (run 0): {told}"
    assert (result.status, result.check) == (Status.WRONG, Check.POISON)
    checked = bench.run(idle, mode="check").reason
    assert checked.startswith("case small: unwritten: 1000 of 1000 values of y were never written")
    assert ("no launch with y" in checked) == ("no launch with y" in told)


def test_wrong_only_on_a_later_run_is_found(bench: Bench) -> None:
    """The output of every run is checked: here only the second input set is computed wrongly."""
    first = np.random.default_rng(0).standard_normal(N).astype(np.float32)[0]
    result = bench.run(kernel(f"if (i < n) y[i] = x[0] == {float(first):.9g}f ? 2.f * x[i] : 0.f;"))
    assert result.status == Status.WRONG
    assert "(run 1)" in result.reason


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("if (i < n) y[i] = 2.f * x[i]; if (i == 0) y[n + 100000000] = 1.f;", Status.CRASHED, "out-of-bounds write"),
        ("if (i < n) y[i] = 2.f * x[i]; y[n + i * 16] = 1.f;", Status.CRASHED, "bytes past the end of y"),
        ("if (i < n) y[i] = 2.f * x[i - 4000];", Status.CRASHED, "bytes before the start of x"),
        ("*(float*)nullptr = 1.f;", Status.CRASHED, "through a null pointer"),
        ("if (i < n) y[i] = 7 / (n - 1000);", Status.CRASHED, "integer division by zero"),
        ("__trap();", Status.CRASHED, "trap"),
        ("volatile char big[300000]; big[0] = 1; big[299999] = 2; y[i] = big[0];", Status.CRASHED, "stack overflow"),
        ("if (i < n) { y[i] = 2.f * x[i]; ((float*)x)[i] = 0.f; }", Status.WRONG, "writes its input, at byte"),
        ("if (i < n) y[i] = 2.f * x[i]; y[n] = 3.f;", Status.WRONG, "bytes next to y were overwritten"),
        ("if (threadIdx.x < 16) __syncthreads(); else if (threadIdx.x < 32) __syncwarp(); y[0] = 1;",
         Status.WRONG, "no thread can go on: threads 0-15 wait at __syncthreads (line 2); threads 16-31 wait"),
    ],
)  # fmt: skip
def test_faults_end_with_a_status_that_names_them(
    bench: Bench, body: str, status: Status, reason: str
) -> None:
    result = bench.run(kernel(body))
    assert result.status == status, result
    assert reason in result.reason, result
    assert result.timings == ()
    assert "case small" in result.reason
    assert_healthy(bench)


def test_recursion_overflows_its_own_stack_only(bench: Bench) -> None:
    source = "__device__ __noinline__ int deep(volatile int* p, int n) { volatile int a[64]; a[n & 63] = n; return deep(p, n + 1) + a[1] + *p; }\n"
    result = bench.run(kernel("volatile int v = 1; y[i] = deep(&v, i);", head=source + HEAD))
    assert result.status == Status.CRASHED
    assert "stack overflow" in result.reason
    assert "kernel k, block (" in result.reason


def test_shared_memory_keeps_nothing_between_runs(bench: Bench) -> None:
    """A result kept from the first run would pass the later ones: shared memory is NaN at the start of each."""
    body = "__shared__ float kept[256]; if (kept[0] != kept[0]) kept[threadIdx.x] = 7.f; if (i < n) y[i] = kept[threadIdx.x];"
    seven = kernel(body, grid=1)
    seven.expected = lambda a: {"y": np.where(np.arange(N) < 256, 7.0, 0.0)}
    result = bench.run(seven)
    assert "first at [256]: got " in result.reason, result  # all that a block wrote is right


@pytest.mark.parametrize(("times", "status"), [(2, Status.MEASURED), (99, Status.CRASHED)])
def test_late_work_counts_when_it_is_seen_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, times: int, status: Status
) -> None:
    """A host that takes a virtual CPU away books what it took as work: once or twice, not every time."""
    left = [times]

    def run_on_a_busy_host(*args: Any, **more: Any) -> Report:
        report = run_process(*args, **more)
        if left[0] > 0:
            left[0] -= 1
            report.runs = {index: replace(run, cpu_ns=10**9) for index, run in report.runs.items()}
        return report

    monkeypatch.setattr(runner, "run_process", run_on_a_busy_host)
    result = bench.run(RIGHT)
    assert result.status == status, result
    assert left[0] == max(0, times - 3)
    assert ("worked for 1e+03 ms of CPU time" in result.reason) == (status == Status.CRASHED)


class Killer(threading.Thread):
    """Ends processes of the cpu runner from outside: the first one, a run's watcher below it, or the run's below that."""

    def __init__(self, level: int, times: int, number: signal.Signals) -> None:
        super().__init__(daemon=True)
        self.level, self.left, self.number = level, times, number
        self.spared = children(os.getpid())
        self.ended: set[int] = set()
        self.over = threading.Event()

    def run(self) -> None:
        while self.left and not self.over.wait(0.002):
            found = {os.getpid()}
            for _ in range(self.level):
                found = {child for process in found for child in children(process)} - self.spared
            for process in found - self.ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, self.number)
                    self.ended.add(process)
                    self.left -= 1

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.join()


def children(process: int) -> set[int]:
    """What a process has started, whichever of its threads did."""
    found: set[int] = set()
    with contextlib.suppress(OSError):  # it ends meanwhile
        for task in Path(f"/proc/{process}/task").iterdir():
            found |= set(map(int, (task / "children").read_text().split()))
    return found


SLOW = kernel("for (volatile int j = 0; i == 0 && j < 20000000; j = j + 1); if (i < n) y[i] = 2.f * x[i];")
BY_A_PERSON = "the cpu runner was ended from outside"


@pytest.mark.parametrize(
    ("level", "times", "number", "reason"),
    [
        (1, 1, signal.SIGKILL, ""),
        (1, 9, signal.SIGKILL, BY_A_PERSON),
        (1, 9, signal.SIGTERM, BY_A_PERSON),
        (2, 1, signal.SIGKILL, ""),
        (2, 9, signal.SIGKILL, BY_A_PERSON),
        (2, 9, signal.SIGTERM, BY_A_PERSON),
        (3, 1, signal.SIGKILL, ""),
        (3, 9, signal.SIGKILL, "killed, and killed again, most likely out of memory"),
        (3, 9, signal.SIGTERM, BY_A_PERSON),
    ],
)
def test_a_kill_from_outside_is_no_verdict_when_seen_once(
    bench: Bench, level: int, times: int, number: signal.Signals, reason: str
) -> None:
    built = bench.build(SLOW.source)
    with Killer(level, times, number) as killer:
        result = bench.execute(built.artifact, SLOW, "fast", 3, 20.0)
    assert len(killer.ended) == min(times, 2)
    assert reason in result.reason, result
    by_a_person = (Status.NOT_RUN, KILLED)
    expected = by_a_person if reason == BY_A_PERSON else (Status.CRASHED, Check.RUN_LIMITS)
    assert (result.status, result.check) == (expected if reason else (Status.MEASURED, "")), result


def test_all_cpu_time_used_up_is_told_from_a_kill(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = Job.parts
    monkeypatch.setattr(Job, "parts", lambda job, settings, data, fd, _: parts(job, settings, data, fd, 1))
    result = bench.run(kernel("while (*(volatile float*)y != 3.f) {} y[i] = x[i];"))
    assert (result.status, result.check) == (Status.TIMED_OUT, Check.RUN_LIMITS)
    assert "used up its CPU time" in result.reason


def test_an_endless_loop_times_out(bench: Bench) -> None:
    begin = time.monotonic()
    result = bench.run(kernel("while (*(volatile float*)y != 3.f) {} y[i] = x[i];"), timeout_s=1.0)
    assert result.status == Status.TIMED_OUT
    assert result.reason == "case small (run 0): still running when its 1 s were over"
    assert time.monotonic() - begin < 8
    assert_healthy(bench)


def test_printing_much_is_kept_short(bench: Bench) -> None:
    text = 'if (i < n) y[i] = 2.f * x[i]; for (int j = 0; j < 50; j++) printf("line %d %s\\n", i, "abcdefghijklmnopqrstuvwxyz");'
    result = bench.run(kernel(text))
    assert result.status == Status.MEASURED
    printed = [f for f in result.findings if f.startswith("printed: line")]
    assert printed
    assert sum(map(len, result.findings)) < 10_000


def test_printed_lines_cannot_forge_a_report(bench: Bench) -> None:
    text = 'if (i < n) y[i] = 0.f; if (i == 0) printf("\\ntime\\t0\\t1\\nend\\n\\tcrash\\tnothing\\nfault\\tours\\n");'
    result = bench.run(kernel(text))
    assert result.status == Status.WRONG
    assert "values of y wrong" in result.reason
    assert any("time" in f for f in result.findings)


@pytest.mark.usefixtures("any_section")
def test_system_calls_are_refused_at_run_time(bench: Bench) -> None:
    """Code that finds its way around the import check still cannot make system calls.

    The bytes are x86-64 machine code of getpid placed in a constant section that is executable.
    """
    if os.uname().machine != "x86_64":
        pytest.skip("machine code of x86-64")
    source = (
        'extern "C" const __attribute__((section(".text"))) unsigned char code[] = '
        "{0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3};\n"
    )
    result = bench.run(kernel("y[i] = ((int (*)())(void*)code)();", head=source + HEAD))
    assert result.status == Status.CRASHED, result
    assert "system call" in result.reason
    assert_healthy(bench)


def test_a_constant_cannot_carry_state(bench: Bench) -> None:
    result = bench.run(
        kernel("if (i < n) y[i] = 2.f * x[i]; c[0] = 1;", head="__constant__ int c[4];\n" + HEAD)
    )
    assert result.status == Status.CRASHED, result
    assert "write outside every buffer" in result.reason


def test_too_much_scratch_is_out_of_memory(bench: Bench) -> None:
    wants = kernel("if (i < n) y[i] = 2.f * x[i];")
    wants.scratch = {"huge": ("float64", 1 << 40)}
    result = bench.run(wants)
    assert result.status == Status.CRASHED
    assert "out of memory" in result.reason


def launch(bench: Bench, changed: dict[str, object]) -> RunResult:
    values = {"kernel": "k", "grid": (4, 1, 1), "block": (256, 1, 1), "dynamic_shared_bytes": 0, **changed}
    arguments = changed.get("arguments", bench.plan(RIGHT).launches[0].arguments)
    values["arguments"] = arguments
    plan = ResolvedPlan((LaunchSpec(**values),))  # type: ignore[arg-type]
    artifact = bench.build(RIGHT.source).artifact
    request = RunRequest(artifact, (CaseRequest("small", plan),), TimingProtocol(runs=1, dropped=0))
    return bench.runner.run(request, ArraySource(RIGHT))


X, Y, SIZE = (
    KernelArgument(n, d, v) for n, d, v in (("x", "float32", None), ("y", "float32", None), ("n", "int32", N))
)


@pytest.mark.parametrize(
    ("changed", "status", "reason"),
    [
        ({"block": (2048, 1, 1)}, Status.LAUNCH_FAILED, "block.x is 2048, the limit is 1024"),
        ({"block": (64, 32, 1)}, Status.LAUNCH_FAILED, "a block of 2048 threads, the limit is 1024"),
        ({"grid": (1, 70000, 1)}, Status.LAUNCH_FAILED, "grid.y is 70000, the limit is 65535"),
        ({"grid": (0, 1, 1)}, Status.LAUNCH_FAILED, "grid.x is 0"),
        ({"dynamic_shared_bytes": 240000}, Status.LAUNCH_FAILED, "240000 bytes of dynamic and 0 of static shared memory"),
        ({"cluster": (2, 1, 1)}, Status.NOT_RUN, "not run: thread block clusters"),
        ({"kernel": "other"}, Status.LAUNCH_FAILED, "kernel other is not in the artifact"),
        ({"arguments": (X, Y)}, Status.LAUNCH_FAILED, "kernel k takes 3 arguments, the plan passes 2"),
        ({"arguments": (X, Y, X)}, Status.LAUNCH_FAILED, "parameter 3 is int, the plan passes a buffer"),
        ({"arguments": (X, SIZE, SIZE)}, Status.LAUNCH_FAILED, "parameter 2 is a pointer, the plan passes int32"),
        ({"arguments": (X, Y, KernelArgument("n", "int64", N))}, Status.LAUNCH_FAILED, "parameter 3 is int, the plan passes int64"),
    ],
)  # fmt: skip
def test_launch_limits(bench: Bench, changed: dict[str, object], status: Status, reason: str) -> None:
    result = launch(bench, changed)
    assert result.status == status, result
    assert reason in result.reason


def test_many_batches_give_every_sample(bench: Bench) -> None:
    """Outputs that do not fit at once are checked in several processes."""
    runner = CpuRunner(bench.scratch, threads=1, cache=bench.cache, buffer_bytes=3 * 4 * N)
    request = RunRequest(bench.build(RIGHT.source).artifact, (CaseRequest("small", bench.plan(RIGHT)),),
                         TimingProtocol(runs=8, dropped=1, input_sets=3))  # fmt: skip
    result = runner.run(request, ArraySource(RIGHT))
    runner.close()
    assert result.status == Status.MEASURED, result
    assert len(result.timings[0].samples_ms) == 7


def test_inputs_and_right_values_are_made_once(bench: Bench) -> None:
    source = ArraySource(RIGHT)
    request = RunRequest(bench.build(RIGHT.source).artifact, (CaseRequest("small", bench.plan(RIGHT)),),
                         TimingProtocol(runs=5, dropped=1, input_sets=3))  # fmt: skip
    runner = CpuRunner(bench.scratch, threads=1, cache=bench.cache)
    for _ in range(3):
        assert runner.run(request, source).status == Status.MEASURED
    assert source.made == 3
    runner.close()


def test_a_checked_artifact_is_never_timed(bench: Bench) -> None:
    built = bench.build(RIGHT.source, mode="check")
    with pytest.raises(HarnessError, match="can only be checked"):
        bench.execute(built.artifact, RIGHT, "fast", 3, 5.0)


def test_a_fast_artifact_can_be_checked_only(bench: Bench) -> None:
    built = bench.build(RIGHT.source)
    result = bench.execute(built.artifact, RIGHT, "check", 3, 5.0)
    assert result.status == Status.MEASURED
    assert result.timings == ()


def test_facts(bench: Bench) -> None:
    facts = bench.runner.facts
    assert (facts.name, facts.kind, facts.arch, facts.num_sms, facts.warp_size) == ("cpu", "cpu", "", 2, 32)
    assert facts.max_shared_bytes == 227 * 1024
    assert facts.model
    assert facts.memory_bytes > 1 << 30


@pytest.mark.parametrize(("more", "watcher"), [("", True), ("end\\n", False)])
def test_what_ends_between_two_runs_is_not_laid_to_the_run_before(
    more: str, watcher: bool, tmp_path: Path
) -> None:
    """A run that is complete is killed by its watcher: its status says nothing then."""
    script = tmp_path / "runner"
    lines = f"start\\nran\\t1\\t5\\t5\\t{int(signal.SIGKILL)}\\n{more}"
    script.write_text(f"#!/bin/sh\nprintf '{lines}'\nkill -TERM $$\n")
    script.chmod(0o700)
    report = run_process(script, "artifact", ["job"], files=[], tls_bytes=0, seconds=20.0)
    assert report.watcher_ended == watcher
    assert report.returncode == (-signal.SIGTERM if watcher else -signal.SIGKILL)


def test_nothing_is_left_of_a_runner_that_was_ended_from_outside(tmp_path: Path) -> None:
    script = tmp_path / "runner"
    script.write_text(f"#!/bin/sh\nsleep 60 > /dev/null & echo $! > {tmp_path}/child\nkill -KILL $$\n")
    script.chmod(0o700)
    report = run_process(script, "artifact", ["job"], files=[], tls_bytes=0, seconds=1.0)
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}")
    end = time.monotonic() + 10
    while child.exists() and "Z" not in (child / "stat").read_text().split()[2]:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert report.watcher_ended or report.timed_out
