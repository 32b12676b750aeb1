"""The cuda device on a real GPU, in one go: ``python -m pytest tests/gpu -m gpu -x -q`` (add ``-s`` for numbers)."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.core.launch import BuildRequest, KernelArgument, LaunchSpec, ResolvedPlan, ScratchSpec
from kernelwright.core.outcome import Status
from kernelwright.devices.base import (
    Buffer,
    CaseInputs,
    CaseRequest,
    RunRequest,
    RunResult,
    TimingProtocol,
    Tolerance,
)
from kernelwright.devices.cuda import CudaCompiler, CudaRunner, probe

PROBE = probe()
pytestmark = [
    pytest.mark.gpu,
    # Array libraries warn about each other's versions; that is not under test here.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not PROBE.usable, reason=PROBE.reason),
]

COPY_TBPS = 4.0
"""Copy bandwidth of the slowest device this is run on in TB/s, reads plus writes; only its order matters here."""


class Source:
    """Vector addition, scaling in place, and matrix multiplication, by the case's name: ``add:1000``."""

    def buffers(self, case: str) -> tuple[Buffer, ...]:
        kind, size = case.split(":")
        n = int(size)
        if kind == "gemm":
            return tuple(Buffer(x, "float32", (n, n), r) for x, r in (("A", "in"), ("B", "in"), ("C", "out")))
        if kind == "scale":
            return (Buffer("X", "float32", (n,), "inout"),)
        if kind == "copy":
            return (Buffer("A", "float32", (n,), "in"), Buffer("C", "float32", (n,), "out"))
        dtype = {"half": "float16", "brain": "bfloat16", "whole": "int32"}.get(kind, "float32")
        return tuple(Buffer(x, dtype, (n,), r) for x, r in (("A", "in"), ("B", "in"), ("C", "out")))

    def inputs(self, case: str, index: int) -> CaseInputs:
        rng = np.random.default_rng([index, len(case)])
        arrays = {}
        for buffer in self.buffers(case):
            if buffer.role == "out":
                continue
            values = rng.standard_normal(buffer.shape, dtype=np.float32)
            if buffer.dtype == "int32":
                arrays[buffer.name] = (values * 1000).astype(np.int32)
            elif buffer.dtype == "bfloat16":
                arrays[buffer.name] = (values.view(np.uint32) >> 16).astype(np.uint16)
            else:
                arrays[buffer.name] = values.astype(buffer.dtype)
        return CaseInputs(arrays)

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:
        wide = {name: xp.asarray(value, dtype=xp.float64) for name, value in inputs.items()}
        kind = case.partition(":")[0]
        if kind == "gemm":
            return {"C": wide["A"] @ wide["B"]}
        if kind == "scale":
            return {"X": wide["X"] * 2}
        return {"C": wide["A"] if kind == "copy" else wide["A"] + wide["B"]}

    def tolerance(self, case: str, output: str, expected_rms: float) -> Tolerance:
        kind = case.partition(":")[0]
        if kind == "whole":
            return Tolerance(0.0, 0.0)
        if kind in {"half", "brain"}:
            return Tolerance(1e-2, 1e-2)
        return Tolerance(rtol=1e-5, atol=1e-5 * max(expected_rms, 1.0))


ADD = 'extern "C" __global__ void k(const T* A, const T* B, T* C, int n)'
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
SOURCES = {
    "add": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i]; }}",
    "whole": f"#define T int\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i]; }}",
    "half": f"#include <cuda_fp16.h>\n#define T __half\n{ADD} {{ {INDEX} if (i < n) C[i] = __hadd(A[i], B[i]); }}",
    "brain": f"#include <cuda_bf16.h>\n#define T __nv_bfloat16\n{ADD} {{ {INDEX} if (i < n)"
    " C[i] = __float2bfloat16(__bfloat162float(A[i]) + __bfloat162float(B[i])); }",
    "copy": f'extern "C" __global__ void k(const float* A, float* C, int n) {{ {INDEX} if (i < n) C[i] = A[i]; }}',
    "scale": f'extern "C" __global__ void k(float* X, int n) {{ {INDEX} if (i < n) X[i] *= 2; }}',
    "wrong": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i] + (i == 77); }}",
    "tail": f"#define T float\n{ADD} {{ {INDEX} if (i < n - 1) C[i] = A[i] + B[i]; }}",
    "outside": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i]; if (i == 0) C[n + 2] = 1; }}",
    "mutates": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i];"
    " if (i == 9) const_cast<float*>(A)[9] = 5; }",
    "crash": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i + (1ll << 40)] = A[i]; }}",
    "endless": f"#define T float\n{ADD} {{ volatile int go = 1; while (go) __nanosleep(1000);"
    f" {INDEX} if (i < n) C[i] = A[i]; }}",
    "shared": f"#define T float\n{ADD} {{ extern __shared__ float s[]; {INDEX} int last = 40000 - 1 - threadIdx.x;"
    " s[last] = i < n ? A[i] + B[i] : 0; __syncthreads(); if (i < n) C[i] = s[last]; }",
    "static_shared": f"#define T float\n{ADD} {{ __shared__ float s[256]; {INDEX} s[threadIdx.x] = A[i % n];"
    " __syncthreads(); if (i < n) C[i] = s[threadIdx.x] + B[i]; }",
    "cluster": "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n#define T float\n"
    + ADD
    + f" {{ __shared__ float s[256]; {INDEX} s[threadIdx.x] = i < n ? A[i] : 0; auto c = cg::this_cluster(); c.sync();"
    " float mine = *c.map_shared_rank(&s[threadIdx.x], c.block_rank()); c.sync();"
    " if (i < n) C[i] = c.num_blocks() == SIZE ? mine + B[i] : -1; }",
    "grid": "#include <cooperative_groups.h>\n#define T float\n"
    + ADD
    + f" {{ {INDEX} if (i < n) C[i] = A[i]; cooperative_groups::this_grid().sync();"
    " int j = n - 1 - i; if (j >= 0) C[j] += B[j]; }",
    "gemm": 'extern "C" __global__ void k(const float* A, const float* B, float* C, int n) {'
    " int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y; if (r < n && c < n) {"
    " float s = 0; for (int k = 0; k < n; ++k) s += A[r * n + k] * B[k * n + c]; C[r * n + c] = s; } }",
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def runner(cache: Path) -> Iterator[CudaRunner]:
    found = CudaRunner(cache_dir=cache)
    yield found
    found.close()


@pytest.fixture(scope="module")
def compiler(runner: CudaRunner, cache: Path) -> CudaCompiler:
    return CudaCompiler(runner.facts.arch, cache)


@pytest.fixture(scope="module")
def source() -> Source:
    return Source()


def tell(*parts: object) -> None:
    """A number for the reader; shown with ``-s``."""
    sys.stdout.write(" ".join(map(str, parts)) + "\n")


def launch(n: int, kernel: str = "k", args: str = "ABC", **more: Any) -> LaunchSpec:
    buffers = tuple(KernelArgument(a, "float32") for a in args)
    base: dict[str, Any] = {
        "kernel": kernel,
        "grid": (-(-n // 256), 1, 1),
        "block": (256, 1, 1),
        "dynamic_shared_bytes": 0,
        "arguments": (*buffers, KernelArgument("n", "int32", n)),
    }
    return LaunchSpec(**(base | more))


class Bench:
    """Compiles a source of the table and runs it."""

    def __init__(self, compiler: CudaCompiler, runner: CudaRunner, source: Source, scratch: Path) -> None:
        self.compiler, self.runner, self.source, self.scratch = compiler, runner, source, scratch

    def build(self, name: str, **macros: int) -> str:
        request = BuildRequest(SOURCES[name], macros, {}, ("k",), self.runner.facts.arch)
        result = self.compiler.build(request, self.scratch)
        assert result.status is None, result.reason
        return result.artifact

    def run(
        self, name: str, case: str, *launches: LaunchSpec, macros: dict[str, int] | None = None, **more: Any
    ) -> RunResult:
        floor = more.pop("floor_ms", 0.0)
        scratch = more.pop("scratch", ())
        cases = (CaseRequest(case, ResolvedPlan(launches, scratch), floor),)
        return self.runner.run(RunRequest(self.build(name, **(macros or {})), cases, **more), self.source)


@pytest.fixture
def bench(compiler: CudaCompiler, runner: CudaRunner, source: Source, tmp_path: Path) -> Bench:
    return Bench(compiler, runner, source, tmp_path)


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
    ("name", "part"),
    [
        ("wrong", "1 of 1000 values of C wrong, first at [77]"),
        ("tail", "first at [999]: got nothing (never written)"),
        ("outside", "wrote outside output 'C' (4000 bytes): "),
        ("mutates", "changed its input 'A'"),
    ],
)
def test_wrong_kernels(bench: Bench, name: str, part: str) -> None:
    result = bench.run(name, "add:1000", launch(1000))
    assert result.status is Status.WRONG
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


def in_child(artifact: str, cache: Path, timeout_s: float) -> tuple[dict[str, Any], float]:
    """Runs a candidate that breaks its process's context in a process of its own."""
    code = (
        "import json, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "import test_cuda_device as t; r = t.CudaRunner(cache_dir=Path(sys.argv[3]));"
        "q = t.RunRequest(sys.argv[2], (t.CaseRequest('add:1000', t.ResolvedPlan((t.launch(1000),))),),"
        " timeout_s=float(sys.argv[4])); a = r.run(q, t.Source());"
        "print(json.dumps([a.status, a.reason, r.broken]), flush=True); import os; os._exit(0)"
    )
    here = str(Path(__file__).parent)
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-c", code, here, artifact, str(cache), str(timeout_s)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    line = child.stdout.readline()
    answered = time.perf_counter() - start
    child.kill()
    child.stdout.close()
    child.wait(30)
    status, reason, broken = json.loads(line)
    return {"status": status, "reason": reason, "broken": broken}, answered


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
