"""Checks beyond values, and duels, on a real GPU: ``python -m pytest tests/gpu -m gpu -x -q`` (``-s`` for numbers)."""

import statistics
import time
from pathlib import Path

import numpy as np
import pytest

from kernelwright.core.launch import KernelArgument, ResolvedPlan, ScratchSpec
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import CaseRequest, RunRequest, TimingProtocol
from kernelwright.devices.cuda import probe
from kernelwright.devices.cuda.nvrtc import Nvrtc
from kernelwright.devices.cuda.trusted import Hidden
from tests.gpu.workbench import Bench, launch, tell

PROBE = probe()
pytestmark = [
    pytest.mark.gpu,
    # Array libraries warn about each other's versions; that is not under test here.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not PROBE.usable, reason=PROBE.reason),
]

N = 1000
HEAD = (
    'extern "C" __global__ void k(const float* A, const float* B, float* C, int n{more})'
    " {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; C[i] = A[i] + B[i]; {body} }}"
)
NUDGE = "if (i < 16 && ({bit}) & 1) C[i] = nextafterf(C[i], 1e9f);"
SCRATCH = (ScratchSpec("P", "uint32", N + 1),)


def kernel(body: str, more: str = "") -> str:
    """Addition, and then something else."""
    return HEAD.format(body=body, more=more)


def with_scratch() -> tuple[KernelArgument, ...]:
    return (*launch(N).arguments, KernelArgument("P", "uint32"))


@pytest.mark.parametrize(
    ("name", "bit"),
    [
        ("clock", "clock64() >> i"),
        ("guard band behind", "((const unsigned char*)(C + n))[i]"),
        ("guard band of an input", "((const unsigned char*)A)[-1 - i]"),
        ("scratch", "P[i]"),
    ],
)
@pytest.mark.parametrize("check_only", [False, True])
def test_equal_inputs_give_equal_bits(bench: Bench, name: str, bit: str, check_only: bool) -> None:
    """Off by one unit in the last place: only the bits of equal runs show it."""
    source = kernel(NUDGE.format(bit=bit), ", const unsigned* P" if name == "scratch" else "")
    spec = launch(N, arguments=with_scratch()) if name == "scratch" else launch(N)
    scratch = SCRATCH if name == "scratch" else ()
    result = bench.run(source, f"add:{N}", spec, scratch=scratch, check_only=check_only)
    assert (result.status, result.check) == (Status.UNSTABLE, Check.REPEAT), result
    assert "other output than in case add:1000 check" in result.reason


def test_float_atomics_have_to_be_declared(bench: Bench) -> None:
    n = 1 << 20
    source = (
        'extern "C" __global__ void clear(float* C) { *C = 0; } extern "C" __global__ void k(const float* A, float* C,'
        " int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(C, A[i]); }"
    )
    clear = launch(n, "clear", grid=(1, 1, 1), block=(1, 1, 1), arguments=(KernelArgument("C", "float32"),))
    for declared, status in ((True, Status.MEASURED), (False, Status.UNSTABLE)):
        result = bench.run(source, f"sum:{n}", clear, launch(n, args="AC"), atomic_noise=declared)
        assert result.status is status, result


def test_shared_memory_holds_poison_in_a_check(bench: Bench) -> None:
    source = kernel(
        "__shared__ float s[256]; if (n < 0) s[threadIdx.x] = 1; __syncwarp(); C[i] += 1e-30f * s[255 - threadIdx.x];"
    )
    result = bench.run(source, f"add:{N}", launch(N), check_only=True)
    assert result.status is Status.WRONG, result


def test_cache_in_scratch_finds_nothing(bench: Bench) -> None:
    """Keeps outputs under a fingerprint of the inputs: poison makes every call the first one."""
    source = kernel(
        "bool hit = P[0] == __float_as_uint(A[0]); __syncthreads(); if (hit) C[i] = __uint_as_float(P[i + 1]) + 1;"
        " P[i + 1] = __float_as_uint(C[i]); if (i == n - 1) P[0] = __float_as_uint(A[0]);",
        ", unsigned* P",
    )
    one = launch(N, arguments=with_scratch(), grid=(1, 1, 1), block=(1000, 1, 1))
    result = bench.run(source, f"add:{N}", one, scratch=SCRATCH)
    assert result.status is Status.MEASURED, result


def test_module_globals_start_anew_for_timing(bench: Bench, tmp_path: Path) -> None:
    """The compiler's rules refuse such a kernel; here it is built without them."""
    source = "__device__ int calls; " + kernel(
        "bool late = calls >= 10; __syncthreads(); if (late) C[i] = 0; if (i == 0) ++calls;"
    )
    compiled = Nvrtc().compile(source, "k.cu", [f"--gpu-architecture={bench.runner.facts.arch}"])
    assert compiled.cubin is not None, compiled.log
    artifact = tmp_path / "globals.cubin"
    artifact.write_bytes(compiled.cubin)
    cases = (CaseRequest("add:256", ResolvedPlan((launch(256),))),)
    for runs, status in ((10, Status.MEASURED), (11, Status.WRONG)):
        request = RunRequest(str(artifact), cases, TimingProtocol(runs=runs))
        result = bench.runner.run(request, bench.source)
        assert result.status is status, result


def test_clear_loser_is_timed_less(bench: Bench) -> None:
    result = bench.run("add", f"add:{N}", launch(N), loser_above_ms=1e-6)
    assert len(result.timings[0].samples_ms) == 2


@pytest.mark.parametrize("floor_ms", [0.0, 0.001])
def test_duel_of_a_kernel_with_its_copy(bench: Bench, floor_ms: float) -> None:
    n = 1 << 22
    result = bench.duel("add", "add", f"add:{n}", launch(n), floor_ms=floor_ms, rounds=40)
    assert result.status is Status.MEASURED, result
    (case,) = result.cases
    ratio = statistics.median(case.challenger_ms) / statistics.median(case.incumbent_ms)
    tell(f"\nA/A by {case.method}: ratio {ratio:.5f}, {result.seconds:.3f} s, {case.conditions}")
    assert len(case.challenger_ms) == len(case.incumbent_ms) == 40
    assert case.method == ("graph" if floor_ms else "events")
    assert abs(ratio - 1) < 0.03


def test_duel_with_a_slower_kernel(bench: Bench) -> None:
    n = 1 << 20
    slower = kernel("__nanosleep(20000);")
    for sides in (("add", slower), (slower, "add")):
        result = bench.duel(*sides, f"add:{n}", launch(n))
        assert result.status is Status.MEASURED, result
        times = {"add": result.cases[0].challenger_ms, slower: result.cases[0].incumbent_ms}
        fast, slow = (times["add"], times[slower]) if sides[0] == "add" else (times[slower], times["add"])
        assert statistics.median(slow) > 1.2 * statistics.median(fast)


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("wrong", Check.VALUES),
        ("tail", Check.POISON),
        ("outside", Check.GUARD_BANDS),
        ("mutates", Check.INPUTS_UNCHANGED),
    ],
)
def test_duel_names_who_is_at_fault(bench: Bench, name: str, check: Check) -> None:
    for sides, at_fault in (((name, "add"), "challenger"), (("add", name), "incumbent")):
        result = bench.duel(*sides, f"add:{N}", launch(N))
        assert (result.status, result.check, result.at_fault) == (Status.WRONG, check, at_fault), result
    assert bench.duel("add", "add", f"add:{N}", launch(N)).status is Status.MEASURED


def test_what_conditions_and_comparisons_cost(bench: Bench) -> None:
    n = 1 << 24
    result = bench.run("add", f"add:{n}", launch(n))
    reader = bench.runner._reader
    reads = []
    for _ in range(20):
        start = time.perf_counter()
        conditions = reader.read()
        reads.append(time.perf_counter() - start)
    gpu = bench.runner.gpu
    entry = bench.runner.store.get(bench.source, f"add:{n}", 1).sets[0]
    out: Hidden = entry.expected["C"]
    held = gpu.pool.acquire(4 * n)
    compare = gpu.trusted.compare("float32", held.pointer, out, count=n, tolerance=(1, 1), row=gpu.row(0))
    gpu.run([gpu.record(0), compare, gpu.record(1)], 10.0, gated=True)
    compared_ms = gpu.driver.elapsed_ms(gpu.event(0), gpu.event(1))
    gpu.pool.release(held)
    tell(
        f"\nNVML: median {statistics.median(reads) * 1e6:.0f} us, worst {max(reads) * 1e6:.0f} us; {conditions};"
        f" comparing {n} floats {compared_ms * 1e3:.0f} us, adding them {result.timings[0].median_ms * 1e3:.0f} us"
    )
    assert compared_ms < 5
    assert statistics.median(reads) < 0.01


def test_right_outputs_are_not_found_in_memory(bench: Bench) -> None:
    """Scans the 2 MiB around its output (the driver maps no less) for what is right, as double and as float."""
    source = kernel(
        "const char* page = (const char*)((size_t)C & ~((size_t)(2 << 20) - 1)); if (blockIdx.x == 0)"
        " for (int at = threadIdx.x * 8; at < 2 << 20; at += 256 * 8) { const char* here = page + at;"
        " if (here >= (const char*)C - 8 && here < (const char*)(C + n)) continue;"
        " double wide = *(const double*)here; float low = ((const float*)here)[0], high = ((const float*)here)[1];"
        " if (wide == (double)A[5] + (double)B[5] || low == A[5] + B[5] || high == A[5] + B[5]) C[i] = -12345; }"
    )
    for check_only in (True, False):
        result = bench.run(source, f"add:{N}", launch(N), check_only=check_only)
        assert result.status is Status.MEASURED, result
    entry = bench.runner.store.get(bench.source, f"add:{N}", 1).sets[0]
    raw = bench.runner.gpu.driver.download(entry.expected["C"].pointer, 8 * N)
    arrays = bench.source.inputs(f"add:{N}", 0).arrays
    right = arrays["A"].astype(np.float64) + arrays["B"]
    assert (np.frombuffer(raw, "<f8") != right).all()
    assert entry.expected["C"].show(7, raw[56:64]) == right[7]
