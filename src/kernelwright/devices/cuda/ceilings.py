"""What a GPU can do at best: measured copy bandwidth, fp32 rate by its clock, measured rate of the tensor units."""

from statistics import median
from typing import Final

from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.tensor_rate import tensor_rate

COPY_BYTES: Final = 1 << 30
REPEATS: Final = 7
FP32_LANES: Final = {
    "sm_80": 64,
    "sm_86": 128,
    "sm_87": 128,
    "sm_89": 128,
    "sm_90": 128,
    "sm_100": 128,
    "sm_120": 128,
}
"""fp32 lanes of one SM (CUDA C++ Programming Guide, arithmetic instructions per clock cycle)."""


def measure_ceilings(gpu: Gpu) -> tuple[float, float, float]:
    """Bytes per second (reads and writes of a device-to-device copy), operations per second in fp32 and of the tensor units in float16.

    0 is unknown.
    """
    nbytes = min(COPY_BYTES, gpu.driver.free_bytes() // 8)
    source, target = gpu.driver.allocate(nbytes), gpu.driver.allocate(nbytes)
    try:
        times = []
        for _ in range(REPEATS):
            gpu.run([gpu.record(0), gpu.copy(target, source, nbytes), gpu.record(1)], 30.0, gated=True)
            times.append(gpu.driver.elapsed_ms(gpu.event(0), gpu.event(1)))
    finally:
        gpu.driver.free(source)
        gpu.driver.free(target)
    clock_hz = 1e3 * gpu.driver.attribute("CLOCK_RATE")
    lanes = FP32_LANES.get(gpu.facts.arch.rstrip("a"), 0)
    fp32 = 2.0 * lanes * gpu.facts.num_sms * clock_hz
    return 2 * nbytes / (median(times[1:]) * 1e-3), fp32, tensor_rate(gpu)
