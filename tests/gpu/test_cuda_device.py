"""The cuda device on a real GPU, in one go: ``python -m pytest tests/gpu -m gpu -x -q`` (add ``-s`` for numbers)."""

import statistics
import time
from pathlib import Path

import pytest

from kernelwright.core.launch import KernelArgument, ResolvedPlan, ScratchSpec
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import (
    CaseRequest,
    RunRequest,
    TimingProtocol,
)
from kernelwright.devices.cuda import CudaRunner, probe
from tests.gpu.workbench import Bench, in_child, launch, tell

PROBE = probe()
pytestmark = [
    pytest.mark.gpu,
    # Array libraries warn about each other's versions; that is not under test here.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not PROBE.usable, reason=PROBE.reason),
]

COPY_TBPS = 4.0
"""Copy bandwidth of the slowest device this is run on in TB/s, reads plus writes; only its order matters here."""


def test_facts_are_complete(runner: CudaRunner) -> None:
    facts = runner.facts
    tell("\n", facts, runner.store.reference.namespace)
    assert facts.uuid.startswith("GPU-")
    assert min(facts.num_sms, facts.l2_bytes, facts.memory_bytes, facts.max_shared_bytes) > 0
    assert min(facts.registers_per_sm, facts.shared_bytes_per_sm, facts.max_threads_per_sm) > 0
    assert facts.warp_size == 32


@pytest.mark.parametrize("n", [1, 1000, 1 << 20])
def test_right_kernel_is_timed(bench: Bench, n: int) -> None:
    result = bench.run("add", f"add:{n}", launch(n))
    assert result.status is Status.MEASURED, result.reason
    (timing,) = result.timings
    assert timing.method == "events"
    assert len(timing.samples_ms) == 8
    assert 0 < timing.median_ms < 1
    assert timing.max_error <= 1


@pytest.mark.parametrize("kind", ["half", "brain", "whole"])
def test_dtypes(bench: Bench, kind: str) -> None:
    result = bench.run(kind, f"{kind}:1003", launch(1003))
    assert result.status is Status.MEASURED, result.reason


def test_inout_is_restored_for_every_run(bench: Bench) -> None:
    for floor in (0.0, 0.001):
        result = bench.run("scale", "scale:5000", launch(5000, args="X"), floor_ms=floor)
        assert result.status is Status.MEASURED, result.reason


def test_several_launches_and_scratch(bench: Bench) -> None:
    first = launch(
        1000,
        arguments=(
            *launch(1000).arguments[:2],
            KernelArgument("P", "float32"),
            KernelArgument("n", "int32", 1000),
        ),
    )
    result = bench.run("add", "add:1000", first, launch(1000), scratch=(ScratchSpec("P", "float32", 1000),))
    assert result.status is Status.MEASURED, result.reason


def test_gemm(bench: Bench) -> None:
    for n in (127, 512, 2048):
        spec = launch(n, grid=(-(-n // 16), -(-n // 16), 1), block=(16, 16, 1))
        result = bench.run("gemm", f"gemm:{n}", spec)
        assert result.status is Status.MEASURED, result.reason
        timing = result.timings[0]
        tell(
            f"\nnaive sgemm n={n}: {timing.median_ms:.4f} ms, worst error {timing.max_error:.3f} x tolerance"
        )


@pytest.mark.parametrize(
    ("name", "check", "part"),
    [
        ("wrong", Check.VALUES, "1 of 1000 values of C wrong, first at [77]"),
        ("tail", Check.POISON, "first at [999]: got nothing (never written)"),
        ("outside", Check.GUARD_BANDS, "wrote outside output 'C' (4000 bytes): "),
        ("mutates", Check.INPUTS_UNCHANGED, "changed its input 'A'"),
    ],
)
def test_wrong_kernels(bench: Bench, name: str, check: Check, part: str) -> None:
    result = bench.run(name, "add:1000", launch(1000))
    assert result.status is Status.WRONG
    assert result.check == check
    assert part in result.reason
    again = bench.run("add", "add:1000", launch(1000))
    assert again.status is Status.MEASURED, again.reason


def test_dynamic_shared_memory_above_the_default(bench: Bench) -> None:
    result = bench.run("shared", "add:5000", launch(5000, dynamic_shared_bytes=160000))
    assert result.status is Status.MEASURED, result.reason


@pytest.mark.parametrize("size", [2, 8, 16])
def test_cluster(bench: Bench, size: int) -> None:
    if not bench.runner.facts.arch.startswith(("sm_9", "sm_10")):
        pytest.skip("clusters need compute capability 9.0")
    spec = launch(16 * 256, cluster=(size, 1, 1))
    result = bench.run("cluster", f"add:{16 * 256}", spec, macros={"SIZE": size})
    assert result.status is Status.MEASURED, result.reason


def test_cooperative(bench: Bench) -> None:
    result = bench.run("grid", "add:10000", launch(10000, cooperative=True))
    assert result.status is Status.MEASURED, result.reason
    refused = bench.run("grid", f"add:{1 << 22}", launch(1 << 22, cooperative=True))
    assert refused.status is Status.LAUNCH_FAILED
    assert "COOPERATIVE_LAUNCH_TOO_LARGE" in refused.reason
    assert "blocks fit at once" in refused.reason


def test_refused_launches(bench: Bench) -> None:
    most = bench.runner.facts.max_shared_bytes
    refused = {
        "a block of 2048 threads": launch(1000, block=(2048, 1, 1)),
        "bytes of shared memory": launch(1000, dynamic_shared_bytes=most),
        "argument 4 is 4 bytes, the plan gives 'n': int64 (8)": launch(
            1000, arguments=(*launch(1000).arguments[:3], KernelArgument("n", "int64", 1000))
        ),
        "the kernel has 4 arguments, the plan gives 3": launch(1000, arguments=launch(1000).arguments[:3]),
        "has no kernel 'other'": launch(1000, kernel="other"),
    }
    for part, spec in refused.items():
        result = bench.run("static_shared", "add:1000", spec)
        assert result.status is Status.LAUNCH_FAILED, result
        assert part in result.reason
    again = bench.run("static_shared", "add:1000", launch(1000))
    assert again.status is Status.MEASURED, again.reason


def test_slow_kernel_is_given_up(bench: Bench) -> None:
    n = 2048
    spec = launch(n, grid=(n // 16, n // 16, 1), block=(16, 16, 1))
    result = bench.run("gemm", f"gemm:{n}", spec, timeout_s=0.02)
    assert result.status is Status.TIMED_OUT
    assert "would pass the limit" in result.reason
    assert not bench.runner.broken


def test_graph_method_is_plausible(bench: Bench) -> None:
    n = 1 << 18
    floor_ms = 2 * 4 * n / (COPY_TBPS * 1e12) * 1e3
    graph = bench.run("copy", f"copy:{n}", launch(n, args="AC"), floor_ms=floor_ms)
    events = bench.run("copy", f"copy:{n}", launch(n, args="AC"))
    assert graph.status is Status.MEASURED, graph.reason
    (short,), (single,) = graph.timings, events.timings
    tell(
        f"\n1 MiB copy: graph {short.median_ms * 1e3:.2f} us, events {single.median_ms * 1e3:.2f} us, floor {floor_ms * 1e3:.2f} us"
    )
    assert short.method == "graph"
    assert floor_ms < short.median_ms < 20 * floor_ms
    assert short.median_ms < single.median_ms


@pytest.mark.parametrize("n", [1 << 16, 1 << 20, 1 << 24])
def test_spread_of_the_median(bench: Bench, n: int) -> None:
    medians = []
    for _ in range(10):
        result = bench.run("add", f"add:{n}", launch(n))
        medians.append(result.timings[0].median_ms)
    spread = statistics.pstdev(medians) / statistics.mean(medians)
    tell(
        f"\nadd n={n}: median {statistics.median(medians) * 1e3:.2f} us, spread {spread:.2%} over 10 repeats"
    )
    assert spread < 0.2


def test_candidates_a_second(bench: Bench) -> None:
    """The whole of a gemm candidate: 8 cases, 10 runs each, every output checked."""
    sizes = (128, 256, 384, 512, 768, 1024, 1536, 2048)
    artifact = bench.build("gemm")
    cases = []
    for n in sizes:
        spec = launch(n, grid=(-(-n // 16), -(-n // 16), 1), block=(16, 16, 1))
        cases.append(CaseRequest(f"gemm:{n}", ResolvedPlan((spec,))))
    request = RunRequest(artifact, tuple(cases))
    first = bench.runner.run(request, bench.source)
    before = dict(bench.runner.spent)
    start = time.perf_counter()
    repeats = 5
    for _ in range(repeats):
        result = bench.runner.run(request, bench.source)
        assert result.status is Status.MEASURED, result.reason
    wall = (time.perf_counter() - start) / repeats
    on_device = sum(sum(t.samples_ms) for t in result.timings) / 8 * 11 / 1e3
    parts = {key: (value - before[key]) / repeats for key, value in bench.runner.spent.items()}
    text = ", ".join(f"{key} {value * 1e3:.1f} ms" for key, value in parts.items())
    tell(f"\none gemm candidate: {wall * 1e3:.1f} ms ({text}; its kernels alone {on_device * 1e3:.1f} ms)")
    tell(f"first time with inputs and references: {first.check_seconds + first.time_seconds:.2f} s")
    tell("late gates:", bench.runner.gpu.late_gates, "conditions:", result.timings[0].conditions)
    assert wall - on_device < 0.1
    assert bench.runner.gpu.late_gates == 0


def test_long_queues_are_cut(bench: Bench) -> None:
    timing = TimingProtocol(runs=200, dropped=0)
    result = bench.run("add", "add:1000", *[launch(1000)] * 8, timing=timing)
    assert result.status is Status.MEASURED, result.reason
    assert len(result.timings[0].samples_ms) == 200
    assert bench.runner.gpu.late_gates == 0


def test_crash_costs_one_process_only(bench: Bench, cache: Path) -> None:
    found, _ = in_child(bench.build("crash"), cache, 10)
    assert found["status"] == Status.CRASHED
    assert "kernel 'k' crashed: CUDA_ERROR_ILLEGAL_ADDRESS" in found["reason"]
    assert found["broken"]
    fresh, _ = in_child(bench.build("add"), cache, 10)
    assert fresh["status"] == Status.MEASURED, fresh
    assert not fresh["broken"]


def test_endless_kernel_times_out(bench: Bench, cache: Path) -> None:
    found, answered = in_child(bench.build("endless"), cache, 1)
    assert found["status"] == Status.TIMED_OUT
    assert "did not end within 1 s" in found["reason"]
    assert found["broken"]
    assert answered < 30
    fresh, _ = in_child(bench.build("add"), cache, 10)
    assert fresh["status"] == Status.MEASURED, fresh
