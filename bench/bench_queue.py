"""What a GPU's queue and the clearing of its L2 cache add to short kernels.

    python bench/bench_queue.py --device 0

Two launches in turn, a tiny one and one that reads 5 MB, are timed as candidates are (L2 cleared, a gate, CUDA events) at
each place in the queue's groups of four entries; in us. One kernel that averages three planes into one is timed behind
the harness's clear, whose blocks write 4 KiB each, and behind one whose blocks stride over the buffer (docs/trust.md).
"""

import ctypes
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.operations import Operation
from opened import cubin_of, gpu_of_command_line

RUNS = 40
READ, PIXELS = 5 << 20, 2048 * 2048
SOURCE = """/* kernelwright
*/
extern "C" __global__ void zero(unsigned* out) { out[threadIdx.x] = 0; }

extern "C" __global__ void add(const uint4* in, unsigned* out, int n)
{
    unsigned sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const uint4 v = in[i];
        sum += v.x + v.y + v.z + v.w;
    }
    atomicAdd(out + threadIdx.x % 256, sum);
}

extern "C" __global__ void average(const float* in, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = (in[3 * i] + in[3 * i + 1] + in[3 * i + 2]) / 3;
}

extern "C" __global__ void stride(uint4* data, long long n)
{
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] = make_uint4(1, 1, 1, 1);
}
"""


class Workbench:
    """Kernels of ``SOURCE`` as operations of a GPU."""

    def __init__(self, gpu: Gpu, folder: Path) -> None:
        self.gpu, self.driver, api = gpu, gpu.driver, gpu.driver.api
        names = ("zero", "add", "average", "stride")
        cubin = cubin_of(gpu, folder, SOURCE, names)
        module = self.driver.ok(api.cuModuleLoadData(cubin), "cuModuleLoadData")
        self.kernels = {n: self.driver.ok(api.cuModuleGetFunction(module, n.encode()), n) for n in names}

    def launch(self, name: str, blocks: int, values: Sequence[Any], types: Sequence[Any]) -> Operation:
        """256 threads a block."""
        shape = (blocks, 1, 1, 256, 1, 1, 0)
        arguments = (self.kernels[name], *shape, self.driver.stream, (tuple(values), tuple(types)), 0)
        return Operation(self.driver.api.cuLaunchKernel, arguments, name)

    def us(self, clear: Operation, timed: Sequence[Operation]) -> float:
        """Median over the runs."""
        gpu, samples = self.gpu, []
        for _ in range(RUNS):
            gpu.run([clear, gpu.record(0), *timed, gpu.record(1)], 10.0, gated=True)
            samples.append(self.driver.elapsed_ms(gpu.event(0), gpu.event(1)) * 1e3)
        return round(statistics.median(samples), 2)


def by_place(bench: Workbench) -> list[float]:
    """Gate, clear and the two launches fill a group: one launch of nothing more moves all runs behind it."""
    gpu, pointer = bench.gpu, ctypes.c_void_p
    source, target = bench.driver.allocate(READ), bench.driver.allocate(1024)
    two = [
        bench.launch("zero", 1, (target,), (pointer,)),
        bench.launch("add", 160, (source, target, READ // 16), (pointer, pointer, ctypes.c_int)),
    ]
    found = []
    for _ in range(4):
        found.append(bench.us(gpu.clear_l2(1), two))
        gpu.run([gpu.trusted.nothing()], 10.0, gated=False)
    return found


def by_clear(bench: Workbench) -> dict[str, float]:
    """Behind each of the two clears, twice, the lower one: what else happens only adds."""
    gpu, pointer = bench.gpu, ctypes.c_void_p
    source, target = bench.driver.allocate(12 * PIXELS), bench.driver.allocate(4 * PIXELS)
    shape = ((source, target, PIXELS), (pointer, pointer, ctypes.c_int))
    timed = [bench.launch("average", PIXELS // 256, *shape)]
    cleared = bench.driver.allocate(gpu.l2_bytes)
    values = ((cleared, gpu.l2_bytes // 16), (pointer, ctypes.c_longlong))
    clears = {
        "blocks": gpu.clear_l2(1),
        "stride": bench.launch("stride", 8 * gpu.facts.num_sms, *values),
    }
    return {name: min(bench.us(clear, timed) for _ in range(2)) for name, clear in clears.items()}


def main() -> None:
    with gpu_of_command_line(__doc__) as (gpu, folder):
        bench = Workbench(gpu, folder)
        found = {"device": gpu.facts.model, "two_launches_us": by_place(bench), "average_us": by_clear(bench)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
