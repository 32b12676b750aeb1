"""What this GPU can do at best, as JSON: copy bandwidth, fp32 rate, cuBLAS sgemm without tf32.

Timed as candidates are: L2 cleared before each run, the queue ahead of the GPU, CUDA events, 10 runs, the first
2 dropped, median. Run: ``python bench/bench_cuda_ceilings.py [--device 0] [--sizes 128 256 ...]``.
"""

import json
import statistics
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from command_line import parser_of
from kernelwright.devices.cuda.driver import CudaError
from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.nvrtc import Nvrtc
from kernelwright.devices.cuda.operations import Operation
from kernelwright.devices.cuda.parameters import Parameters, pointer
from kernelwright.problems.loader import load_problem

RUNS, DROPPED, TIMEOUT_S = 10, 2, 60.0
COPY_BYTES = 4 << 30
FMA_CHAINS, FMA_STEPS = 8, 1 << 14
Size = tuple[int, int, int]

FMA_SOURCE = """
extern "C" __global__ void __launch_bounds__(256) fma_rate(float* out, float a, float b) {
    float x[CHAINS];
    #pragma unroll
    for (int c = 0; c < CHAINS; ++c) x[c] = threadIdx.x + c;
    for (int i = 0; i < STEPS / 16; ++i) {
        #pragma unroll
        for (int k = 0; k < 16; ++k) {
            #pragma unroll
            for (int c = 0; c < CHAINS; ++c) x[c] = fmaf(x[c], a, b);
        }
    }
    float sum = 0;
    #pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum += x[c];
    if (sum == 1.25f) out[0] = sum;
}
"""


def median_ms(
    gpu: Gpu, work: Callable[[], Sequence[Operation]], *, clear_l2: bool = True
) -> dict[str, float]:
    """Median and spread (coefficient of variation) of the kept runs."""
    samples = []
    for run in range(RUNS):
        clear = [gpu.clear_l2(run)] if clear_l2 else []
        if not gpu.run([*clear, gpu.record(0), *work(), gpu.record(1)], TIMEOUT_S, gated=True):
            raise TimeoutError(f"not done within {TIMEOUT_S:g} s")
        samples.append(gpu.driver.elapsed_ms(gpu.event(0), gpu.event(1)))
    kept = samples[DROPPED:]
    return {"ms": statistics.median(kept), "cv": statistics.pstdev(kept) / statistics.mean(kept)}


def copy_bandwidth(gpu: Gpu) -> dict[str, float]:
    """Device-to-device copy by the driver, counting bytes read and bytes written."""
    nbytes = min(COPY_BYTES, gpu.driver.free_bytes() // 4)
    source, target = gpu.driver.allocate(nbytes), gpu.driver.allocate(nbytes)
    found = median_ms(gpu, lambda: [gpu.copy(target, source, nbytes)])
    gpu.driver.free(source)
    gpu.driver.free(target)
    return {**found, "bytes": nbytes, "tb_per_s": 2 * nbytes / found["ms"] / 1e9}


def fp32_rate(gpu: Gpu) -> dict[str, float]:
    """Independent chains of fused multiply-adds in registers, every SM full."""
    driver = gpu.driver
    options = [f"--gpu-architecture={gpu.facts.arch}", f"-DCHAINS={FMA_CHAINS}", f"-DSTEPS={FMA_STEPS}"]
    compiled = Nvrtc().compile(FMA_SOURCE, "fma_rate.cu", options)
    module = driver.ok(driver.api.cuModuleLoadData(compiled.cubin), "cuModuleLoadData")
    function = driver.ok(driver.api.cuModuleGetFunction(module, b"fma_rate"), "cuModuleGetFunction")
    driver.preload(function)
    scalars = np.array([1.0001, 0.5], np.float32)
    held = Parameters([pointer(gpu.row(0)), scalars[:1].tobytes(), scalars[1:].tobytes()])
    grid = (gpu.facts.num_sms * 16, 1, 1)
    arguments = (function, *grid, 256, 1, 1, 0, driver.stream, held.address, 0)
    found = median_ms(gpu, lambda: [Operation(driver.api.cuLaunchKernel, arguments, "fma_rate", held)])
    flops = 2 * prod(grid) * 256 * FMA_CHAINS * FMA_STEPS
    driver.ok(driver.api.cuModuleUnload(module), "cuModuleUnload")
    return {**found, "tflop_per_s": flops / found["ms"] / 1e9}


def cublas_sgemm(gpu: Gpu, sizes: Sequence[Size]) -> dict[str, Any]:
    """Time cuBLAS fp32 through cupy, tf32 off, on the same stream and by the same procedure; checked once a size."""
    try:
        import cupy
        from cupy_backends.cuda.libs import cublas
    except ImportError as error:
        return {"skipped": f"cupy is not installed: {error}"}
    stream = cupy.cuda.ExternalStream(int(gpu.driver.stream))
    results: dict[str, Any] = {}
    with cupy.cuda.Device(gpu.driver.ordinal), stream:
        handle = cupy.cuda.get_cublas_handle()
        cublas.setMathMode(handle, 0)  # CUBLAS_DEFAULT_MATH: full fp32, no tf32
        for size in sizes:
            results[",".join(f"{name}={value}" for name, value in zip("MNK", size, strict=True))] = _one_size(
                gpu, cupy, cublas, handle, size
            )
    return results


def _one_size(gpu: Gpu, cupy: Any, cublas: Any, handle: int, size: Size) -> dict[str, float]:
    m, n, k = size
    a = cupy.random.standard_normal((m, k), dtype=cupy.float32)
    b = cupy.random.standard_normal((k, n), dtype=cupy.float32)
    c = cupy.empty((m, n), cupy.float32)
    one, zero = np.array(1, np.float32), np.array(0, np.float32)

    def gemm(*_: object) -> tuple[int]:
        # Row-major C = A B is column-major C' = B' A'.
        cublas.sgemm(
            handle,
            0,
            0,
            n,
            m,
            k,
            one.ctypes.data,
            b.data.ptr,
            n,
            a.data.ptr,
            k,
            zero.ctypes.data,
            c.data.ptr,
            n,
        )
        return (0,)

    gemm()
    worst = float(cupy.abs(c - a.astype(cupy.float64) @ b.astype(cupy.float64)).max())
    gpu.settle(TIMEOUT_S)
    found = median_ms(gpu, lambda: [Operation(gemm, (), "cublasSgemm")])
    return {**found, "tflop_per_s": 2 * m * n * k / found["ms"] / 1e9, "worst_error": worst}


def _gemm_sizes() -> list[Size]:
    """The cases of the bundled problem ``gemm``."""
    cases = load_problem("gemm").cases(slow=False)
    return [(case.sizes["M"], case.sizes["N"], case.sizes["K"]) for case in cases]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=None)
    options = parser.parse_args()
    gpu = Gpu(options.device, options.cache, 0.4)
    facts = gpu.facts
    report: dict[str, Any] = {"model": facts.model, "arch": facts.arch, "toolchain": facts.toolchain}
    report["procedure"] = f"L2 cleared, queue ahead, events, {RUNS} runs, {DROPPED} dropped, median"
    report["copy"] = copy_bandwidth(gpu)
    report["fp32_fma"] = fp32_rate(gpu)
    try:
        report["cublas_fp32"] = cublas_sgemm(gpu, _gemm_sizes())
    except (CudaError, RuntimeError, AttributeError) as error:
        report["cublas_fp32"] = {"skipped": str(error)}
    report["late_gates"] = gpu.late_gates
    print(json.dumps(report))
    gpu.close()


if __name__ == "__main__":
    main()
