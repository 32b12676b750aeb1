"""Correct kernels: right values in fast mode, and no finding in checked mode."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelwright.core.outcome import Status
from tests.devices.cpu.workbench import Arrays, Bench, Kernel, kernel_text

F = np.float32
Inputs = Callable[[np.random.Generator], Arrays]
HEAD = 'extern "C" __global__ void k(const float* x, float* y, int n) {'


def x_of(*shape: int, dtype: type = F) -> Inputs:
    return lambda rng: {"x": rng.standard_normal(shape).astype(dtype)}


def out(*shape: int, dtype: type = F) -> Arrays:
    return {"y": np.zeros(shape, dtype)}


def softmax(x: Any) -> Any:
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def matrices(m: int, n: int, k: int, dtype: type = F) -> Inputs:
    return lambda rng: {
        "a": rng.standard_normal((m, k)).astype(dtype),
        "b": rng.standard_normal((k, n)).astype(dtype),
    }


GOOD = {
    "vector addition with a tail": Kernel(
        kernel_text("vadd.cu"), ["a", "b", "c", 2001],
        lambda r: {"a": r.random(2001, F), "b": r.random(2001, F)}, {"c": np.zeros(2001, F)},
        lambda a: {"c": a["a"].astype(float) + a["b"]}, kernel="vadd", grid=2, block=256,
    ),
    "tiled sgemm, odd sizes": Kernel(
        kernel_text("sgemm.cu"), ["a", "b", "c", 70, 90, 33], matrices(70, 90, 33), {"c": np.zeros((70, 90), F)},
        lambda a: {"c": a["a"].astype(float) @ a["b"]}, kernel="sgemm", grid=(2, 2), block=256,
    ),
    "textbook sgemm, tunables as macros": Kernel(
        kernel_text("sgemm.cu"), ["a", "b", "c", 40, 50, 60], matrices(40, 50, 60), {"c": np.zeros((40, 50), F)},
        lambda a: {"c": a["a"].astype(float) @ a["b"]}, kernel="sgemm_simple", grid=(4, 3), block=(16, 16),
        macros={"BM": 32, "BN": 32, "BK": 8, "TM": 2, "TN": 2, "T": 7, "S": 3}, options={"use_fast_math": True},
    ),
    "softmax in dynamic shared memory": Kernel(
        kernel_text("softmax.cu"), ["x", "y", 500], x_of(4, 500), out(4, 500), lambda a: {"y": softmax(a["x"])},
        kernel="softmax", grid=4, block=128, smem=532 * 4,
    ),
    "grid reduction with an atomic": Kernel(
        kernel_text("reduce.cu"), ["x", "total", 4096],
        lambda r: {"x": r.random(4096, F), "total": np.zeros(1, F)}, {},
        lambda a: {"total": a["x"].sum(dtype=float, keepdims=True)}, kernel="reduce_sum", grid=4, block=256,
        inout=["total"], atomic_noise=True,
    ),
    "shared histogram": Kernel(
        """extern "C" __global__ void k(const int* x, int* h, int n) {
          __shared__ int s[32]; if (threadIdx.x < 32) s[threadIdx.x] = 0; __syncthreads();
          for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i]], 1);
          __syncthreads(); if (threadIdx.x < 32) atomicAdd(&h[threadIdx.x], s[threadIdx.x]); }""",
        ["x", "h", 1000],
        lambda r: {"x": r.integers(0, 32, 1000, np.int32), "h": np.zeros(32, np.int32)}, {},
        lambda a: {"h": np.bincount(a["x"], minlength=32)}, grid=4, block=128, inout=["h"],
    ),
    "warp tree with __syncwarp": Kernel(
        HEAD + """__shared__ float s[32]; int t = threadIdx.x; s[t] = x[t]; __syncwarp();
          for (int o = 16; o; o >>= 1) { float v = t < o ? s[t + o] : 0.f; __syncwarp(); if (t < o) s[t] += v; __syncwarp(); }
          if (!t) y[0] = s[0]; }""",
        ["x", "y", 32], x_of(32), out(1), lambda a: {"y": a["x"].sum(dtype=float, keepdims=True)}, tolerance=1e-4,
    ),
    "double buffered tile": Kernel(
        HEAD + """__shared__ float s[2][64]; int t = threadIdx.x, b = 0; float acc = 0; s[0][t] = x[t]; __syncthreads();
          for (int i = 0; i < n; i += 64) { if (i + 64 < n) s[b ^ 1][t] = x[i + 64 + t]; acc += s[b][63 - t];
            __syncthreads(); b ^= 1; } y[t] = acc; }""",
        ["x", "y", 512], x_of(512), out(64), lambda a: {"y": a["x"].astype(float).reshape(8, 64)[:, ::-1].sum(0)},
        block=64,
    ),
    "last block reduces, with a fence": Kernel(
        """extern "C" __global__ void k(const float* x, float* part, unsigned* count, float* y) {
          __shared__ float s[64]; __shared__ bool last; int t = threadIdx.x; s[t] = x[blockIdx.x * 64 + t]; __syncthreads();
          for (int o = 32; o; o >>= 1) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
          if (!t) { part[blockIdx.x] = s[0]; __threadfence(); last = atomicAdd(count, 1u) == gridDim.x - 1; }
          __syncthreads(); if (last && !t) { float v = 0; for (int i = 0; i < gridDim.x; i++) v += part[i]; y[0] = v; } }""",
        ["x", "part", "count", "y"], lambda r: {"x": r.random(512, F), "count": np.zeros(1, np.uint32)}, out(1),
        lambda a: {"y": a["x"].sum(dtype=float, keepdims=True), "count": np.array([8])}, grid=8, block=64,
        inout=["count"], scratch={"part": ("float32", 8)},
    ),
    "cooperative groups": Kernel(
        """#include <cooperative_groups.h>
          #include <cooperative_groups/reduce.h>
          namespace cg = cooperative_groups;
          """ + HEAD + """auto b = cg::this_thread_block(); auto w = cg::tiled_partition<32>(b);
          float v = cg::reduce(w, x[b.thread_rank()], cg::plus<float>()); __shared__ float s[8];
          if (w.thread_rank() == 0) s[w.meta_group_rank()] = v; b.sync();
          if (b.thread_rank() == 0) { float r = 0; for (int i = 0; i < w.meta_group_size(); i++) r += s[i]; y[0] = r; } }""",
        ["x", "y", 256], x_of(256), out(1), lambda a: {"y": a["x"].sum(dtype=float, keepdims=True)}, block=256,
        tolerance=1e-4,
    ),
    "cp.async in two stages": Kernel(
        "#include <cuda_pipeline.h>\n" + HEAD + """__shared__ __align__(16) float s[2][128]; int t = threadIdx.x; float acc = 0;
          __pipeline_memcpy_async(&s[0][t * 4], &x[t * 4], 16); __pipeline_commit();
          for (int i = 0, b = 0; i < n; i += 128, b ^= 1) {
            if (i + 128 < n) __pipeline_memcpy_async(&s[b ^ 1][t * 4], &x[i + 128 + t * 4], 16);
            __pipeline_commit(); __pipeline_wait_prior(1); __syncthreads();
            for (int j = 0; j < 4; j++) acc += s[b][(t * 4 + j + 5) & 127]; __syncthreads(); }
          y[t] = acc; }""",
        ["x", "y", 512], x_of(512), out(32),
        lambda a: {"y": np.roll(a["x"].astype(float).reshape(4, 128).sum(0), -5).reshape(32, 4).sum(1)},
    ),
    "half2 arithmetic": Kernel(
        """#include <cuda_fp16.h>
          extern "C" __global__ void k(const half2* x, half2* y, int n) {
            int i = threadIdx.x; if (i < n) y[i] = __hfma2(x[i], x[i], __float2half2_rn(1.f)); }""",
        ["x", "y", 32], x_of(64, dtype=np.float16), out(64, dtype=np.float16),
        lambda a: {"y": a["x"].astype(float) ** 2 + 1}, tolerance=1e-3,
    ),
    "bfloat16 from bits": Kernel(
        """#include <cuda_bf16.h>
          extern "C" __global__ void k(const __nv_bfloat16* x, float* y, int n) {
            int i = threadIdx.x; if (i < n) y[i] = __bfloat162float(__hmul(x[i], __float2bfloat16(2.f))); }""",
        ["x", "y", 32], lambda r: {"x": (r.standard_normal(32).astype(F).view(np.uint32) >> 16).astype(np.uint16)},
        out(32), lambda a: {"y": 2.0 * (a["x"].astype(np.uint32) << 16).view(F)},
    ),
    "wmma 16x16x16": Kernel(
        """#include <mma.h>
          #include <cuda_fp16.h>
          using namespace nvcuda;
          extern "C" __global__ void k(const half* A, const half* B, float* C, int n) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> c; wmma::fill_fragment(c, 0.f);
            for (int i = 0; i < n; i += 16) { wmma::load_matrix_sync(a, A + i, n); wmma::load_matrix_sync(b, B + i * 16, 16);
              wmma::mma_sync(c, a, b, c); }
            for (int i = 0; i < c.num_elements; i++) c.x[i] *= 2.f;
            wmma::store_matrix_sync(C, c, 16, wmma::mem_row_major); }""",
        ["a", "b", "y", 64], matrices(16, 16, 64, np.float16), out(16, 16),
        lambda a: {"y": 2 * (a["a"].astype(float) @ a["b"].astype(float))},
    ),
    "many threads store one value": Kernel(
        HEAD + """__shared__ int any; if (!threadIdx.x) any = 0; __syncthreads(); if (x[threadIdx.x] > 0.f) any = 1;
          __syncthreads(); y[threadIdx.x] = any; }""",
        ["x", "y", 128], x_of(128), out(128), lambda a: {"y": np.ones(128)}, block=128,
    ),
    "in place, two-dimensional block, template": Kernel(
        """template <typename T> __global__ void scale(T* x, int n) {
          int i = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * T(2); }""",
        ["x", 250], x_of(250, dtype=np.float64), {}, lambda a: {"x": a["x"] * 2}, kernel="scale<double>", grid=2,
        block=(16, 8), inout=["x"],
    ),
    "warp intrinsics": Kernel(
        """extern "C" __global__ void k(const int* x, int* y) {
          int t = threadIdx.x, v = x[t]; unsigned full = 0xffffffffu;
          y[t] = __reduce_add_sync(full, v); y[32 + t] = __reduce_max_sync(full, v);
          y[64 + t] = __popc(__ballot_sync(full, v & 1)); y[96 + t] = __popc(__match_any_sync(full, v & 3));
          y[128 + t] = __shfl_up_sync(full, v, 3); float4 f = __shfl_xor_sync(full, make_float4(v, 0, 0, v + 1), 5);
          y[160 + t] = (int)f.w; y[192 + t] = __any_sync(full, v == 31) + 2 * __all_sync(full, v >= 0);
          y[224 + t] = __shfl_sync(full, v, 1, 8); }""",
        ["x", "y"], lambda r: {"x": r.permutation(32).astype(np.int32)}, out(256, dtype=np.int32),
        lambda a: {"y": warp_expected(a["x"])},
    ),
    "converged lanes of a branch": Kernel(
        """#include <cooperative_groups.h>
          extern "C" __global__ void k(const int* x, int* count, int* y) {
          if (x[threadIdx.x] & 1) { auto g = cooperative_groups::coalesced_threads(); int at = 0;
            if (g.thread_rank() == 0) at = atomicAdd(count, (int)g.size()); at = g.shfl(at, 0);
            y[at + g.thread_rank()] = x[threadIdx.x]; }
          unsigned m = __activemask(); if (threadIdx.x == 0) y[16] = __popc(m); }""",
        ["x", "count", "y"], lambda r: {"x": r.permutation(32).astype(np.int32), "count": np.zeros(1, np.int32)},
        out(17, dtype=np.int32),
        lambda a: {"y": np.array([*(v for v in a["x"] if v & 1), 32]), "count": np.array([16])}, inout=["count"],
    ),
    "portable path beside inline PTX": Kernel(
        HEAD + """#ifndef KERNELWRIGHT_CPU
          asm volatile("bar.sync 0;");
          #endif
          y[threadIdx.x] = __ldcs(x + threadIdx.x) * c[1]; }""".replace("          #", "#"),
        ["x", "y", 32], x_of(32), out(32), lambda a: {"y": a["x"] * 2.0},
    ),
}  # fmt: skip
GOOD["portable path beside inline PTX"].source = "__constant__ float c[2] = {1.f, 2.f};\n" + (
    GOOD["portable path beside inline PTX"].source.replace(HEAD, HEAD + "\n")
)


def warp_expected(x: Any) -> Any:
    lanes = np.arange(32)
    return np.concatenate([
        np.full(32, x.sum()), np.full(32, 31), np.full(32, 16), np.full(32, 8),
        np.where(lanes < 3, x, np.roll(x, 3)), x[lanes ^ 5] + 1, np.full(32, 3), x[(lanes & ~7) + 1],
    ])  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_fast_mode_measures_it(bench: Bench, name: str) -> None:
    result = bench.run(GOOD[name])
    assert result.status == Status.MEASURED, result.reason
    (timing,) = result.timings
    assert len(timing.samples_ms) == 2
    assert min(timing.samples_ms) > 0


@pytest.mark.parametrize("name", GOOD)
def test_checked_mode_stays_silent(bench: Bench, name: str) -> None:
    result = bench.run(GOOD[name], "check")
    assert result.status == Status.MEASURED, result.reason
    assert result.timings == ()
    assert [f for f in result.findings if not f.startswith(("metric ", "note"))] == []
