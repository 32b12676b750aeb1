"""What static metrics decide before the device is used."""

from kernelwright.core.outcome import KernelStatics, StaticMetrics
from kernelwright.harness.belief import cannot_run


def test_a_kernel_of_which_no_block_fits_needs_no_device_time() -> None:
    fits = KernelStatics("fits", registers=64, threads_per_block=256, theoretical_occupancy=0.5)
    full = KernelStatics(
        "full",
        registers=255,
        threads_per_block=1024,
        theoretical_occupancy=0.0,
        occupancy_limiter="registers",
    )
    reason = cannot_run(StaticMetrics((fits, full)))
    assert "'full'" in reason
    assert "255 registers a thread, 1024 threads" in reason
    assert "limited by registers" in reason
    assert cannot_run(StaticMetrics((fits, KernelStatics("unknown")))) == ""
    assert cannot_run(None) == ""
