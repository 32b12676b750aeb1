"""One GPU as the runner uses it: stream, gate, events, result rows, a watchdog."""

import ctypes
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kernelwright.core.errors import DeviceLost
from kernelwright.devices.cuda.buffers import BufferPool, Guarded
from kernelwright.devices.cuda.driver import CudaError, Driver
from kernelwright.devices.cuda.facts import read_facts
from kernelwright.devices.cuda.nvrtc import Nvrtc
from kernelwright.devices.cuda.operations import Operation, enqueue
from kernelwright.devices.cuda.trusted import ROW_BYTES, Trusted, trusted_cubin

ROWS: Final = 8192
GATE_LIMIT_S: Final = 2.0
SETTLE_S: Final = 60.0
_FLAG, _LATE, _MARK = 0, 64, 128
_SPIN_S: Final = 0.002
_WARM_UP_S: Final = 60.0

ROW: Final = np.dtype(
    [
        ("bad", "<u8"),
        ("first_inverted", "<u8"),
        ("worst", "<f8"),
        ("mask", "<u8"),
        ("hash", "<u8"),
        ("unwritten", "<u8"),
    ]
)
Rows = npt.NDArray[Any]


class Gpu:
    """Owns the context and what every run needs. Raises MissingError where there is no device.

    ``lost``: the context is gone with a candidate (a crash, an endless kernel).
    """

    def __init__(self, ordinal: int, cache_dir: Path | None, memory_share: float) -> None:
        nvrtc = Nvrtc()
        self.driver = Driver(ordinal)
        self.facts = read_facts(self.driver)
        cubin = trusted_cubin(nvrtc, self.facts.arch, cache_dir)
        self.trusted = Trusted(self.driver, cubin, self.facts.num_sms, secrets.randbits(64))
        self.budget = int(self.driver.free_bytes() * memory_share)
        self.pool = BufferPool(self.driver, self.budget // 2)
        self.rows = self.driver.allocate(ROWS * ROW_BYTES)
        self._mirror, _ = self.driver.pinned(ROWS * ROW_BYTES)
        self._host, self._mapped = self.driver.pinned(4096)
        self.l2_bytes = 2 * max(self.facts.l2_bytes, 16 << 20)
        self._l2 = self.driver.allocate(self.l2_bytes)
        self._events: list[Any] = []
        self._done = self.driver.event()
        self._turn = 0
        self.late_gates = 0
        self.lost = False
        self.spent: dict[str, float] = {"load": 0.0, "enqueue": 0.0, "wait": 0.0}
        self._limit_persisting_l2()
        self._warm_up()
        self.driver.open_other()

    def event(self, index: int) -> Any:
        """Timing event number ``index``, made when first asked for."""
        while len(self._events) <= index:
            self._events.append(self.driver.event())
        return self._events[index]

    def record(self, index: int) -> Operation:
        """Operation that records event number ``index``."""
        driver = self.driver
        return Operation(driver.api.cuEventRecord, (self.event(index), driver.stream), "cuEventRecord")

    def copy(self, target: int, source: int, nbytes: int) -> Operation:
        """Operation that copies on the device."""
        api = self.driver.api
        return Operation(
            api.cuMemcpyDtoDAsync, (target, source, nbytes, self.driver.stream), "cuMemcpyDtoDAsync"
        )

    def zero_rows(self, count: int) -> Operation:
        """Operation that zeroes the first ``count`` result rows."""
        api = self.driver.api
        arguments = (self.rows, 0, count * ROW_BYTES, self.driver.stream)
        return Operation(api.cuMemsetD8Async, arguments, "cuMemsetD8Async")

    def fetch_rows(self, count: int) -> Operation:
        """Operation that brings the first ``count`` result rows to the host."""
        if count > ROWS:
            raise ValueError(f"{count} result rows asked for, there are {ROWS}")
        api = self.driver.api
        arguments = (self._mirror, self.rows, count * ROW_BYTES, self.driver.stream)
        return Operation(api.cuMemcpyDtoHAsync, arguments, "cuMemcpyDtoHAsync")

    def row(self, index: int) -> int:
        """Device address of a result row."""
        return self.rows + index * ROW_BYTES

    def read_rows(self, count: int) -> Rows:
        """The rows that the last :meth:`fetch_rows` brought (a copy)."""
        rows: Rows = np.frombuffer(ctypes.string_at(self._mirror, count * ROW_BYTES), dtype=ROW)
        return rows

    def clear_l2(self, value: int) -> Operation:
        """Operation that overwrites twice the L2 cache's size."""
        return self.trusted.clear(self._l2, self.l2_bytes, value & 0xFFFFFFFF)

    def fill_shared(self, pattern: int) -> Operation:
        """Operation that poisons the shared memory of every multiprocessor."""
        return self.trusted.fill_shared(pattern, self.facts.max_shared_bytes)

    def fill_local(self, pattern: int, nbytes: int) -> list[Operation]:
        """Operation that poisons local memory for kernels with so many bytes a thread; none for none."""
        return [self.trusted.fill_local(pattern, nbytes, self.facts.max_threads_per_sm)] if nbytes else []

    def mark(self, value: int) -> Operation:
        """Operation that notes progress where the host sees it."""
        return self.trusted.mark(self._mapped + _MARK, value)

    @property
    def progress(self) -> int:
        """Last mark that was reached; readable after the context is lost."""
        return int(ctypes.c_uint32.from_address(self._host + _MARK).value)

    def reset_progress(self) -> None:
        """Start counting marks at 0."""
        ctypes.c_uint32.from_address(self._host + _MARK).value = 0

    def run(
        self,
        operations: Sequence[Operation],
        timeout_s: float,
        *,
        gated: bool,
        meanwhile: Callable[[], None] | None = None,
    ) -> bool:
        """Put all into the stream and wait. ``False`` when the time-out passed (the stream still runs then).

        ``gated``: the stream is held until everything is queued, so that the GPU never waits for the host.
        ``meanwhile`` is called while the GPU works. After a time-out or a crash the GPU is :attr:`lost`.
        Raises CudaError when the device fails, LaunchRefused when it refuses a launch.
        """
        try:
            done = self._run(operations, timeout_s, gated=gated, meanwhile=meanwhile)
        except CudaError as error:
            self.lost = self.lost or error.sticky
            raise
        self.lost = self.lost or not done
        return done

    def fingerprints(self, held: Sequence[Guarded]) -> list[int]:
        """Of what these hold now, as ``Trusted.hash`` gives them later."""
        if not held:
            return []
        number = len(held)
        operations = [
            self.zero_rows(number),
            *self.trusted.hash(held, self.row(0)),
            self.fetch_rows(number),
        ]
        self.run(operations, SETTLE_S, gated=False)
        return [int(row["bad"]) for row in self.read_rows(number)]

    def settle(self, timeout_s: float) -> None:
        """Wait until the stream is empty. Raises CudaError when the device fails meanwhile."""
        self.run([], timeout_s, gated=False)

    def _run(
        self,
        operations: Sequence[Operation],
        timeout_s: float,
        *,
        gated: bool,
        meanwhile: Callable[[], None] | None,
    ) -> bool:
        flag = ctypes.c_uint32.from_address(self._host + _FLAG)
        start = time.perf_counter()
        if gated:
            self._turn = (self._turn + 1) & 0x7FFFFFFF
            gate = self.trusted.gate(self._mapped + _FLAG, self._mapped + _LATE, self._turn, GATE_LIMIT_S)
            enqueue([gate])
        try:
            enqueue(operations)
            self.driver.record(self._done)
        finally:
            flag.value = self._turn
        queued = time.perf_counter()
        if meanwhile is not None:
            meanwhile()
        done = self._wait(timeout_s)
        self.spent["enqueue"] += queued - start
        self.spent["wait"] += time.perf_counter() - queued
        if done and gated and ctypes.c_uint32.from_address(self._host + _LATE).value == self._turn:
            self.late_gates += 1
        return done

    def _wait(self, timeout_s: float) -> bool:
        start = time.perf_counter()
        while not self.driver.reached(self._done):
            passed = time.perf_counter() - start
            if passed > timeout_s:
                return False
            if passed > _SPIN_S:
                time.sleep(min(0.002, passed / 20))
        return True

    def _warm_up(self) -> None:
        """Use every driver path once, so that nothing is set up while a stream is held."""
        operations = [self.clear_l2(0), self.mark(0), self.zero_rows(2), self.fetch_rows(2), self.record(0)]
        operations.append(self.copy(self.row(0), self.row(1), ROW_BYTES))
        for gated in (False, True):
            if not self.run(operations, _WARM_UP_S, gated=gated):
                raise DeviceLost(f"{self.facts.name} did not finish the warm-up within {_WARM_UP_S:g} s")

    def _limit_persisting_l2(self) -> None:
        """No L2 set aside for persisting lines: a candidate's lines must not survive clearing."""
        api = self.driver.api
        # Not supported everywhere (MIG slices, compute capability below 8): then there is nothing to switch off.
        api.cuCtxSetLimit(api.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0)

    def reset_persisting_l2(self) -> None:
        """Return persisting cache lines to normal."""
        self.driver.api.cuCtxResetPersistingL2Cache()

    def close(self) -> None:
        """Release the context. After a lost context there is nothing to release but the handle."""
        try:
            self.driver.synchronize()
        except CudaError:
            return
        self.driver.close()
