from dataclasses import replace

import pytest

from kernelwright.core.device import DeviceFacts
from kernelwright.core.outcome import KernelStatics, StaticMetrics
from kernelwright.devices.cuda.occupancy import LIMITS, limits_of, occupancy, with_occupancy

H200 = DeviceFacts(
    name="cuda:0",
    kind="cuda",
    model="NVIDIA H200",
    arch="sm_90a",
    uuid="",
    num_sms=132,
    warp_size=32,
    max_threads_per_block=1024,
    max_shared_bytes=232448,
    l2_bytes=0,
    memory_bytes=0,
    registers_per_sm=65536,
    shared_bytes_per_sm=233472,
    max_threads_per_sm=2048,
    max_blocks_per_sm=32,
    toolchain="",
)


@pytest.mark.parametrize(
    ("arch", "block", "share", "limiter"),
    [
        # By hand from NVIDIA's formula: 64 registers x 32 lanes = 2048 a warp, 8 warps in each quarter.
        (90, (128, 64, 0), 0.5, "registers"),
        (90, (256, 32, 0), 1.0, "threads"),
        (90, (256, 33, 0), 0.75, "registers"),
        (90, (1024, 64, 0), 0.5, "registers"),
        (90, (1024, 128, 0), 0.0, "registers"),
        (90, (32, 16, 0), 0.5, "blocks"),
        (90, (128, 32, 48 * 1024), 0.25, "shared memory"),
        (90, (128, 32, 227 * 1024), 4 / 64, "shared memory"),
        (80, (128, 255, 0), 0.125, "registers"),
        (86, (256, 40, 0), 1.0, "threads"),
        (86, (32, 16, 0), 16 / 48, "blocks"),
        (89, (1024, 32, 0), 32 / 48, "threads"),
        (120, (33, 16, 0), 1.0, "threads"),
    ],
)
def test_known_values(arch: int, block: tuple[int, int, int], share: float, limiter: str) -> None:
    threads, registers, shared = block
    assert occupancy(LIMITS[arch], threads, registers, shared) == (pytest.approx(share), limiter)


def test_filled_into_static_metrics() -> None:
    kernels = (
        KernelStatics("a", registers=64, static_shared_bytes=0),
        KernelStatics("b", registers=None, static_shared_bytes=0),
        KernelStatics("unlaunched", registers=8, static_shared_bytes=0),
    )
    done = with_occupancy(StaticMetrics(kernels, 100), {"a": 128, "b": 64}, {"a": 1024}, H200)
    first, second, third = done.kernels
    assert (first.threads_per_block, first.dynamic_shared_bytes) == (128, 1024)
    assert first.theoretical_occupancy == pytest.approx(0.5)
    assert first.occupancy_limiter == "registers"
    assert (second.threads_per_block, second.theoretical_occupancy) == (64, None)
    assert third == kernels[2]
    assert done.code_bytes == 100


def test_limits_come_from_the_device_or_the_table() -> None:
    assert limits_of(H200) == LIMITS[90]
    blank = replace(
        H200, registers_per_sm=0, shared_bytes_per_sm=0, max_threads_per_sm=0, max_blocks_per_sm=0
    )
    assert limits_of(blank) == LIMITS[90]
    assert limits_of(replace(blank, arch="sm_999")) is None
    assert limits_of(replace(H200, arch="sm_999")) == LIMITS[90]
