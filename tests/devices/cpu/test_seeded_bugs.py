"""Bugs planted in kernels: the checked mode must find each, with its kind and its line."""

import re

import numpy as np
import pytest

from kernelwright.core.outcome import Status
from tests.devices.cpu.test_good_kernels import HEAD, F, matrices, out, softmax, x_of
from tests.devices.cpu.workbench import Bench, Kernel, kernel_text

SGEMM, REDUCE, SOFTMAX = kernel_text("sgemm.cu"), kernel_text("reduce.cu"), kernel_text("softmax.cu")
COPY = {"expected": lambda a: {"y": a["x"]}}


def sgemm(source: str) -> Kernel:
    assert source != SGEMM
    return Kernel(source, ["a", "b", "y", 64, 64, 64], matrices(64, 64, 64), out(64, 64),
                  lambda a: {"y": a["a"].astype(float) @ a["b"]}, kernel="sgemm", block=256)  # fmt: skip


def simple(body: str, size: int, wrote: int, *, block: int = 32, grid: int = 1, head: str = HEAD) -> Kernel:
    """A kernel whose right values do not matter: the finding comes first."""
    return Kernel(head + body, ["x", "y", size], x_of(size), out(wrote), lambda a: {"y": np.zeros(wrote)},
                  grid=grid, block=block)  # fmt: skip


BUGS = {
    "missing barrier after the tile is loaded": (
        "race", sgemm(SGEMM.replace("    __syncthreads();\n#pragma", "#pragma", 1))),
    "missing barrier before the next tile": (
        "race", sgemm(SGEMM.replace("    __syncthreads();\n  }\n#pragma", "  }\n#pragma", 1))),
    "missing barrier in a block reduction": (
        "race", Kernel(REDUCE.replace("  __syncthreads();\n", ""), ["x", "total", 4096],
                       lambda r: {"x": r.random(4096, F), "total": np.zeros(1, F)}, {},
                       lambda a: {"total": a["x"].sum(keepdims=True)}, kernel="reduce_sum", grid=4, block=256,
                       inout=["total"])),
    "tree reduction without a barrier": (
        "race", simple("""__shared__ float s[256]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();
          for (int o = 128; o; o >>= 1) if (t < o) s[t] += s[t + o];
          if (!t) y[0] = s[0]; }""", 256, 1, block=256)),
    "warp-synchronous code without __syncwarp": (
        "race-in-warp", simple("""__shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; s[t + 32] = x[t + 32]; __syncwarp();
          if (t < 16) s[t] += s[t + 16];
          if (t < 8) s[t] += s[t + 8];
          y[t] = s[t]; }""", 64, 32)),
    "store one past the end": (
        "out-of-bounds", simple("int i = blockIdx.x * blockDim.x + threadIdx.x;\n if (i <= n) y[i] = x[i < n ? i : 0]; }",
                                300, 300, grid=2, block=256)),
    "load one past the end": (
        "out-of-bounds", simple("int i = blockIdx.x * blockDim.x + threadIdx.x;\n if (i < n) y[i] = x[i + 1]; }",
                                300, 300, grid=2, block=256)),
    "float4 over the tail": (
        "out-of-bounds", simple("int i = threadIdx.x * 4;\n if (i < n) *(float4*)(y + i) = *(const float4*)(x + i); }",
                                301, 301, block=256)),
    "misaligned float4": (
        "misaligned", simple("if (threadIdx.x == 0)\n *(float4*)y = *(const float4*)(x + 1); }", 64, 4)),
    "shared array overflow": (
        "out-of-bounds", simple("""__shared__ float s[128]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();
          y[t] = s[t] + s[t + 1]; }""", 128, 128, block=128)),
    "dynamic shared memory too small": (
        "out-of-bounds", Kernel(SOFTMAX, ["x", "y", 512], x_of(4, 512), out(4, 512), lambda a: {"y": softmax(a["x"])},
                                kernel="softmax", grid=4, block=128, smem=512 * 4)),
    "uninitialised shared memory": (
        "uninitialised-shared", simple("""__shared__ float s[128]; int t = threadIdx.x; if (t < 100) s[t] = x[t];
          __syncthreads();
          y[t] = s[127 - t]; }""", 128, 128, block=128)),
    "accumulates into an output that nobody zeroed": (
        "uninitialised-global", simple("\n atomicAdd(&y[0], x[threadIdx.x]); }", 32, 1)),
    "reads scratch before it is written": (
        "uninitialised-global", Kernel(
            'extern "C" __global__ void k(const float* x, float* part, float* y) {\n y[threadIdx.x] = part[threadIdx.x]; }',
            ["x", "part", "y"], x_of(32), out(32), lambda a: {"y": a["x"]}, scratch={"part": ("float32", 32)})),
    "barrier in divergent branches": (
        "divergent-barrier", simple("""int t = threadIdx.x; if (t < 64) { y[t] = x[t];
          __syncthreads();
          } else {
          __syncthreads(); y[t] = 1.f; } }""", 128, 128, block=128)),
    "barrier in a loop of unequal length": (
        "deadlock", simple("""int t = threadIdx.x; float s = 0;
          for (int i = t; i < n; i += 32) { s += x[i]; __syncthreads(); }
          s = __shfl_down_sync(0xffffffff, s, 1); y[t] = s; }""", 40, 32)),
    "global += from many blocks": (
        "race", Kernel(
            'extern "C" __global__ void k(const float* x, float* y) {\n y[0] += x[blockIdx.x * blockDim.x]; }',
            ["x", "y"], lambda r: {"x": r.random(4, F), "y": np.zeros(1, F)}, {},
            lambda a: {"y": a["x"].sum(keepdims=True)}, grid=4, block=1, inout=["y"])),
    "blocks overwrite each other": (
        "race", simple("int i = threadIdx.x;\n y[i] = x[blockIdx.x * blockDim.x + i]; }", 256, 64, grid=4, block=64)),
    "stencil in place": (
        "race", Kernel("""extern "C" __global__ void k(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i > 0 && i < n - 1) x[i] = 0.5f * (x[i - 1] + x[i + 1]); }""", ["x", 256], x_of(256), {},
                       lambda a: {"x": a["x"]}, grid=2, block=128, inout=["x"])),
    "output not covered by the grid": (
        "unwritten", simple("int i = threadIdx.x; if (i < n) y[i] = x[i]; }", 200, 200, block=128)),
    "cp.async without a wait": (
        "uninitialised-shared", simple("""__shared__ float s[128]; int t = threadIdx.x;
          __pipeline_memcpy_async(&s[t], &x[t], 4); __pipeline_commit(); __syncthreads();
          y[t] = s[127 - t]; }""", 128, 128, block=128)),
    "cp.async out of bounds": (
        "out-of-bounds", simple("""__shared__ float s[64]; int t = threadIdx.x;
          __pipeline_memcpy_async(&s[t], &x[t + 1], 4); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();
          y[t] = s[t]; }""", 64, 64, block=64)),
    "shuffle mask leaves the caller out": (
        "bad-mask", simple("int t = threadIdx.x;\n y[t] = __shfl_xor_sync(0x0000ffff, x[t], 1); }", 32, 32)),
    "shuffle reads from a lane outside of the mask": (
        "bad-shuffle", simple("int t = threadIdx.x; float v = 0;\n if (t < 16) v = __shfl_sync(0x0000ffff, x[t], 20); y[t] = v; }",
                              32, 32)),
    "writes its input": (
        "write-to-input", simple("int t = threadIdx.x; y[t] = x[t];\n ((float*)x)[t] = 0.f; }", 32, 32)),
    "wild pointer": (
        "out-of-bounds", simple("int t = threadIdx.x;\n y[t] = x[t * 1000000]; }", 32, 32)),
    "memcpy past the end": (
        "out-of-bounds", simple("struct S { float v[64]; }; if (threadIdx.x == 0)\n *(S*)y = *(const S*)x; }", 32, 64)),
    "failed assertion": (
        "assert", simple("\n assert(n == 31); y[threadIdx.x] = x[threadIdx.x]; }", 32, 32)),
}  # fmt: skip


@pytest.mark.parametrize("name", BUGS)
def test_checked_mode_finds_it(bench: Bench, name: str) -> None:
    kind, kernel = BUGS[name]
    result = bench.run(kernel, "check")
    assert result.status == Status.WRONG, result
    matching = [f for f in result.findings if f.startswith((f"{kind}:", f"{kind}-in-warp:"))]
    assert matching, result.findings
    assert kind == "unwritten" or re.search(r"line \d+", matching[0]), matching
    assert not result.timings


def test_the_line_is_the_line_in_the_file(bench: Bench) -> None:
    source = '/* kernelwright\nplan\n*/\nextern "C" __global__ void k(const float* x, float* y) {\n\n  y[40] = x[0];\n}\n'
    result = bench.run(Kernel(source, ["x", "y"], x_of(4), out(4), lambda a: {"y": a["x"]}), "check")
    assert result.reason.startswith("case small: out-of-bounds: line 6: write of 4 bytes")
    assert "past the end of y" in result.reason
    assert "block (0,0,0) thread (0,0,0)" in result.reason


def test_the_missing_barrier_shows_in_fast_mode_too(bench: Bench) -> None:
    """The dropped runs of fast mode run the threads in other orders."""
    _, kernel = BUGS["missing barrier after the tile is loaded"]
    result = bench.run(kernel)
    assert result.status == Status.WRONG
    assert "values of y wrong" in result.reason


TRANSPOSE = """extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float tile[32][32 + PAD];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = x[r * n + c];
  __syncthreads();
  y[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""


@pytest.mark.parametrize(("pad", "wavefronts"), [(0, "32.00"), (1, "1.00")])
def test_bank_conflicts_are_modelled(bench: Bench, pad: int, wavefronts: str) -> None:
    kernel = Kernel(TRANSPOSE, ["x", "y", 64], x_of(64, 64), out(64, 64), lambda a: {"y": a["x"].T}, grid=(2, 2),
                    block=(32, 32), macros={"PAD": pad})  # fmt: skip
    result = bench.run(kernel, "check")
    assert result.status == Status.MEASURED, result.reason
    metrics = [f for f in result.findings if f.startswith("metric ")]
    assert any(
        f"line 6: shared load of 4 bytes: {wavefronts} wavefronts a request (ideal 1.00)" in m
        for m in metrics
    )
    assert any("line 6: global store of 4 bytes: 4.00 sectors a request (ideal 4.00)" in m for m in metrics)


def test_uncoalesced_access_is_modelled(bench: Bench) -> None:
    source = HEAD + "\n y[threadIdx.x] = x[threadIdx.x * 8]; }"
    kernel = Kernel(source, ["x", "y", 256], x_of(256), out(32), lambda a: {"y": a["x"][::8]})
    result = bench.run(kernel, "check")
    assert any(
        "line 2: global load of 4 bytes: 32.00 sectors a request (ideal 4.00)" in f for f in result.findings
    )
