"""What launches cost before and after many were queued together, and after another context had a turn.

    python bench/bench_turn.py --device 0

A graph of ten short kernels is timed as candidates are (L2 cleared, a gate, CUDA events), per kernel in us: in a fresh
context, after 300 small kernels of CuPy that were queued together, and after another context of the process did something
tiny, which the harness has it do before every block of runs (docs/trust.md). Needs CuPy.
"""

import ctypes
import json
import statistics
from collections.abc import Iterator
from contextlib import contextmanager

from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.operations import Operation
from opened import cubin_of, gpu_of_command_line

NODES, RUNS, QUEUED = 10, 40, 300
COUNT = 1 << 17
SOURCE = """/* kernelwright
*/
extern "C" __global__ void add_one(float* out, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] + 1;
}
"""


@contextmanager
def graph(gpu: Gpu, cubin: bytes) -> Iterator[Operation]:
    """Ten launches as one operation."""
    driver, api = gpu.driver, gpu.driver.api
    module = driver.ok(api.cuModuleLoadData(cubin), "cuModuleLoadData")
    kernel = driver.ok(api.cuModuleGetFunction(module, b"add_one"), "cuModuleGetFunction")
    values = (driver.allocate(4 * COUNT), driver.allocate(4 * COUNT), COUNT)
    parameters = (values, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int))
    mode = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    driver.ok(api.cuStreamBeginCapture(driver.stream, mode), "cuStreamBeginCapture")
    for _ in range(NODES):
        shape = (COUNT // 256, 1, 1, 256, 1, 1, 0)
        driver.ok(api.cuLaunchKernel(kernel, *shape, driver.stream, parameters, 0), "cuLaunchKernel")
    captured = driver.ok(api.cuStreamEndCapture(driver.stream), "cuStreamEndCapture")
    executable = driver.ok(api.cuGraphInstantiate(captured, 0), "cuGraphInstantiate")
    driver.ok(api.cuGraphUpload(executable, driver.stream), "cuGraphUpload")
    yield Operation(api.cuGraphLaunch, (executable, driver.stream), "cuGraphLaunch")
    api.cuGraphExecDestroy(executable)


def us_a_kernel(gpu: Gpu, launch: Operation) -> float:
    """Median over the runs."""
    samples = []
    for run in range(RUNS):
        gpu.run([gpu.clear_l2(run + 1), gpu.record(0), launch, gpu.record(1)], 10.0, gated=True)
        samples.append(gpu.driver.elapsed_ms(gpu.event(0), gpu.event(1)) * 1e3 / NODES)
    return statistics.median(samples)


def main() -> None:
    with gpu_of_command_line(__doc__) as (gpu, folder):
        import cupy

        found = {"device": gpu.facts.model}
        cubin = cubin_of(gpu, folder, SOURCE, ("add_one",))
        with graph(gpu, cubin) as launch, cupy.cuda.Device(gpu.driver.ordinal):
            rows = {"fresh": us_a_kernel(gpu, launch)}
            values = cupy.ones((4096, 128))
            for _ in range(QUEUED):
                cupy.exp(values)
            gpu.driver.synchronize()
            rows["after many"] = us_a_kernel(gpu, launch)
            gpu.driver.give_turn()
            rows["after a turn"] = us_a_kernel(gpu, launch)
    print(json.dumps(found | {"us_a_kernel": {name: round(us, 3) for name, us in rows.items()}}))


if __name__ == "__main__":
    main()
