"""Rate of the tensor units for float16: a loop of matrix instructions that touches no memory, measured.

Products accumulate in float16: where that is faster than in float32 (GeForce) it is the higher rate that bounds.
Source of shapes and descriptors: PTX ISA, "Matrix multiply-accumulate operations using wgmma" and "using mma".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Final

from kernelwright.core.errors import HarnessError
from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.nvrtc import Nvrtc
from kernelwright.devices.cuda.operations import Operation
from kernelwright.devices.cuda.parameters import Parameters, pointer

REPEATS: Final = 5
THREADS: Final = 128
"""One warpgroup."""
BLOCKS_PER_SM: Final = 4
UNROLL: Final = 8
LIMIT_S: Final = 30.0

_MMA: Final = """
extern "C" __global__ void __launch_bounds__(128) tensor_rate(unsigned* out, int steps) {
    unsigned a[4], b[2], d[UNROLL][2] = {}, sum = 0;
    for (int i = 0; i < 4; ++i) a[i] = 0x2c00u + threadIdx.x + i;
    for (int i = 0; i < 2; ++i) b[i] = 0x2c002c00u + threadIdx.x + i;
    for (int step = 0; step < steps; ++step) {
        #pragma unroll
        for (int j = 0; j < UNROLL; ++j)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                         : "+r"(d[j][0]), "+r"(d[j][1])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    #pragma unroll
    for (int j = 0; j < UNROLL; ++j) sum += d[j][0] ^ d[j][1];
    if (sum == 0xdeadbeefu) out[0] = sum;
}
"""
_WGMMA: Final = """
// A matrix in shared memory as 8 x 8 core matrices of 128 bytes: neighbours along k 128 bytes apart, those along m or
// n 256 bytes, no swizzle. Addresses and offsets are in units of 16 bytes.
__device__ static unsigned long long descriptor(const void* at) {
    unsigned long long address = __cvta_generic_to_shared(at);
    return ((address & 0x3ffff) >> 4) | (128ull >> 4) << 16 | (256ull >> 4) << 32;
}
extern "C" __global__ void __launch_bounds__(128) tensor_rate(unsigned* out, int steps) {
    __shared__ __align__(128) unsigned tiles[512 + 2048];  // halves: A is 64 x 16, B is 16 x 256
    for (int i = threadIdx.x; i < 512 + 2048; i += 128) tiles[i] = 0x2c002c00u + i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    unsigned long long a = descriptor(tiles), b = descriptor(tiles + 512);
    unsigned d[64] = {}, sum = 0;
    for (int step = 0; step < steps; ++step) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        #pragma unroll
        for (int j = 0; j < UNROLL; ++j)
            asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16 {REGISTERS}, %64, %65, 1, 1, 1, 0, 0;"
                         : OUTPUTS : "l"(a), "l"(b));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    #pragma unroll
    for (int j = 0; j < 64; ++j) sum += d[j];
    if (sum == 0xdeadbeefu) out[0] = sum;
}
"""


@dataclass(frozen=True)
class Loop:
    """A kernel, its operations in one step of one block, and steps for some milliseconds."""

    source: str
    operations: float
    steps: int


def _wgmma() -> Loop:
    registers = ", ".join(f"%{i}" for i in range(64))
    outputs = ", ".join(f'"+r"(d[{i}])' for i in range(64))
    source = _WGMMA.replace("REGISTERS", registers).replace("OUTPUTS", outputs)
    return Loop(source, 2.0 * 64 * 256 * 16 * UNROLL, 2048)


def _mma() -> Loop:
    return Loop(_MMA, 2.0 * 16 * 8 * 16 * UNROLL * (THREADS // 32), 16384)


LOOPS: Final[Mapping[str, Callable[[], Loop]]] = MappingProxyType(
    {"sm_90a": _wgmma, **dict.fromkeys(("sm_80", "sm_86", "sm_87", "sm_89", "sm_120a", "sm_121a"), _mma)}
)
"""By compile target. Data center Blackwell (sm_100) reaches its peak with tcgen05 only: unknown."""


def tensor_cubin(nvrtc: Nvrtc, arch: str) -> bytes:
    """The loop for a target of :data:`LOOPS`. Raises HarnessError when it does not compile."""
    options = [f"--gpu-architecture={arch}", "--std=c++17", f"-DUNROLL={UNROLL}"]
    compiled = nvrtc.compile(LOOPS[arch]().source, "tensor_rate.cu", options)
    if compiled.cubin is None:
        raise HarnessError(f"tensor_rate.cu does not compile for {arch}: {compiled.log[:500]}")
    return compiled.cubin


def tensor_rate(gpu: Gpu) -> float:
    """Float16 operations per second (a multiply-add is two), median of a few runs; 0 is unknown."""
    arch = gpu.facts.arch
    if arch not in LOOPS:
        return 0.0
    loop, driver = LOOPS[arch](), gpu.driver
    module = driver.ok(driver.api.cuModuleLoadData(tensor_cubin(Nvrtc(), arch)), "loading tensor_rate.cu")
    try:
        function = driver.ok(driver.api.cuModuleGetFunction(module, b"tensor_rate"), "tensor_rate")
        driver.preload(function)
        held = Parameters([pointer(gpu.row(0)), loop.steps.to_bytes(4, "little")])
        blocks = BLOCKS_PER_SM * gpu.facts.num_sms
        arguments = (function, blocks, 1, 1, THREADS, 1, 1, 0, driver.stream, held.address, 0)
        launch = Operation(driver.api.cuLaunchKernel, arguments, "tensor_rate", held)
        times = []
        for _ in range(REPEATS):
            if not gpu.run([gpu.record(0), launch, gpu.record(1)], LIMIT_S, gated=True):
                raise HarnessError(f"the tensor units' loop did not end within {LIMIT_S:g} s")
            times.append(driver.elapsed_ms(gpu.event(0), gpu.event(1)))
    finally:
        driver.ok(driver.api.cuModuleUnload(module), "cuModuleUnload")
    return blocks * loop.steps * loop.operations / (median(times[1:]) * 1e-3)
