"""How long atomics to a few counters take, by where the counters lie.

    python bench/bench_places.py --device 0

A histogram of 2.6 million bytes (256 counters of 8 bytes, bound by the atomics at its end) is timed as candidates are
(L2 cleared, a gate, CUDA events), its counters at one place after another, twice. Shown are the medians in us, and how
well the second turn repeats the first: what depends on the place comes back (docs/trust.md).
"""

import ctypes
import json
import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.operations import Operation
from opened import cubin_of, gpu_of_command_line

COUNT, RUNS = 2_621_440, 24
BYTES = 256 << 20
APART = {
    "one place": (0, 16),
    "2 KiB apart": (2048, 32),
    "64 KiB apart": (1 << 16, 32),
    "2 MiB apart": (2 << 20, 64),
}
SOURCE = """/* kernelwright
*/
extern "C" __global__ void __launch_bounds__(512)
histogram(const unsigned char* values, unsigned long long* counts, int n)
{
    __shared__ unsigned bins[256 * 8];
    for (int i = threadIdx.x; i < 2048; i += 512)
        bins[i] = 0;
    __syncthreads();
    unsigned* own = bins + threadIdx.x % 8;
    const uint4* from = (const uint4*)values;
    for (int i = blockIdx.x * 512 + threadIdx.x; i < n / 16; i += gridDim.x * 512) {
        const uint4 four = __ldcs(from + i);
        const unsigned words[4] = {four.x, four.y, four.z, four.w};
        for (int word = 0; word < 4; ++word)
            for (int k = 0; k < 4; ++k)
                atomicAdd(&own[((words[word] >> (8 * k)) & 255) * 8], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += 512) {
        unsigned sum = 0;
        for (int copy = 0; copy < 8; ++copy)
            sum += bins[bin * 8 + copy];
        atomicAdd(&counts[bin], (unsigned long long)sum);
    }
}
"""


class Histogram:
    """The kernel on a device, and room for its counters."""

    def __init__(self, gpu: Gpu, folder: Path) -> None:
        self.gpu, driver = gpu, gpu.driver
        api = driver.api
        cubin = cubin_of(gpu, folder, SOURCE, ("histogram",))
        module = driver.ok(api.cuModuleLoadData(cubin), "cuModuleLoadData")
        self._kernel = driver.ok(api.cuModuleGetFunction(module, b"histogram"), "cuModuleGetFunction")
        values = np.random.default_rng(0).integers(0, 256, COUNT, dtype=np.uint8)
        self._values = driver.allocate(COUNT)
        driver.upload(self._values, values.ctypes.data, COUNT)
        page = 2 << 20
        self.room = -(-driver.allocate(BYTES) // page) * page

    def median_us(self, place: int) -> float:
        """With the counters at an address."""
        gpu, driver = self.gpu, self.gpu.driver
        values = (self._values, place, COUNT)
        parameters = (values, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int))
        shape = (2 * gpu.facts.num_sms, 1, 1, 512, 1, 1, 0)
        launch = Operation(
            driver.api.cuLaunchKernel, (self._kernel, *shape, driver.stream, parameters, 0), "histogram"
        )
        samples = []
        for run in range(RUNS):
            lead = [gpu.trusted.nothing()] * (run % 4)
            gpu.run([*lead, gpu.clear_l2(run + 1), gpu.record(0), launch, gpu.record(1)], 10.0, gated=True)
            samples.append(driver.elapsed_ms(gpu.event(0), gpu.event(1)) * 1e3)
        return statistics.median(samples)


def likeness(first: Sequence[float], second: Sequence[float]) -> float:
    """Correlation of both turns; 0 where there is nothing to repeat."""
    if min(np.std(first), np.std(second)) < 0.005 * statistics.fmean(first):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def main() -> None:
    with gpu_of_command_line(__doc__) as (gpu, folder):
        histogram = Histogram(gpu, folder)
        for name, (step, number) in APART.items():
            places = [histogram.room + step * i for i in range(number)]
            turns = [[histogram.median_us(place) for place in places] for _ in range(2)]
            row = {
                "places": name,
                "least": round(min(turns[0]), 2),
                "median": round(statistics.median(turns[0]), 2),
                "most": round(max(turns[0]), 2),
                "repeats": round(likeness(*turns), 2),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
