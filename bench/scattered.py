"""The product's devices with small buffers far apart, for comparisons with a process that allocates otherwise."""

from typing import Any

from kernelwright.devices.cuda import CudaRunner
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import Ceilings
from kernelwright.harness.worker.devices import DeviceMaker

FILLER = 1 << 20
"""The driver puts small allocations into pages of 2 MiB: no two of ours get the same one."""


class Maker(DeviceMaker):
    """Behind every buffer that is allocated lies one that nobody uses."""

    def runner(self, setup: WorkerSetup) -> tuple[Any, Ceilings]:
        """As always on the cpu device."""
        runner, ceilings = super().runner(setup)
        if isinstance(runner, CudaRunner):
            driver, allocate = runner.gpu.driver, runner.gpu.pool.allocate

            def apart(nbytes: int) -> int:
                place = allocate(nbytes)
                driver.allocate(FILLER)  # freed with the process
                return place

            runner.gpu.pool.allocate = apart  # type: ignore[method-assign]
        return runner, ceilings
