"""The cuda device's runner: checks every run of a candidate and times it."""

import time
from pathlib import Path

from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import DeviceLost, HarnessError
from kernelwright.core.outcome import CaseTiming, Status
from kernelwright.devices.alternate import alternate
from kernelwright.devices.base import (
    CaseRequest,
    CaseSource,
    DuelRequest,
    DuelResult,
    RunRequest,
    RunResult,
    TimingProtocol,
)
from kernelwright.devices.cuda.casedata import CaseStore
from kernelwright.devices.cuda.driver import CudaError
from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.module import Module
from kernelwright.devices.cuda.operations import CandidateFailed
from kernelwright.devices.cuda.reference import Reference
from kernelwright.devices.cuda.session import CaseSession
from kernelwright.devices.cuda.state import DeviceState, StateReader, findings


class CudaRunner:
    """Owns one GPU. Keep one source for many runs: its inputs and right outputs stay on the device.

    ``broken`` turns true when the context is lost with a candidate (a crash, an endless kernel): the result is
    returned, and the process has to be replaced. ``spent`` has seconds by phase over all runs.
    Raises MissingError without a device or NVIDIA's packages, with the install line.
    """

    def __init__(self, ordinal: int = 0, cache_dir: Path | None = None, memory_share: float = 0.4) -> None:
        self.gpu = Gpu(ordinal, cache_dir, memory_share)
        self.store = CaseStore(self.gpu, Reference(self.gpu.pool, ordinal))
        self.broken = False
        self.state: DeviceState | None = None
        self._reader = StateReader(self.gpu.facts.uuid)
        self._load_s = 0.0

    @property
    def facts(self) -> DeviceFacts:
        """Facts of the device."""
        return self.gpu.facts

    @property
    def spent(self) -> dict[str, float]:
        """Seconds in module loading, in putting work into the stream, and in waiting for the device."""
        return {"load": self._load_s, **self.gpu.spent}

    def run(self, request: RunRequest, source: CaseSource) -> RunResult:
        """First every case once, checked; then the timed runs, each checked. Stops at the first failure.

        ``timeout_s`` bounds one untimed run, and a case's timed runs together. ``CaseTiming.max_error`` is the
        worst error over all runs in multiples of the tolerance.
        Raises DeviceLost after :attr:`broken`, HarnessError or ProblemError when it is not the candidate's fault.
        """
        if self.broken:
            raise DeviceLost(f"{self.facts.name} lost its context with an earlier candidate")
        driver = self.gpu.driver
        driver.ok(driver.api.cuCtxSetCurrent(driver.context), "cuCtxSetCurrent")
        clock, late = _Clock(), self.gpu.late_gates
        try:
            timings = self._run(request, source, clock)
        except CandidateFailed as failure:
            return RunResult(
                failure.status, failure.reason, check_seconds=clock.check(), time_seconds=clock.time()
            )
        except CudaError as error:
            self.broken = self.broken or error.sticky
            raise
        self.state = self._reader.read() if timings else None
        return RunResult(
            Status.MEASURED,
            timings=timings,
            findings=findings(self.state) + _late(self.gpu.late_gates - late),
            check_seconds=clock.check(),
            time_seconds=clock.time(),
        )

    def duel(self, request: DuelRequest, source: CaseSource) -> DuelResult:
        """Blocks of runs in turn."""
        return alternate(self, request, source)

    def close(self) -> None:
        """Free the device."""
        if not self.broken:
            self.store.clear()
            self.gpu.pool.trim()
            self.gpu.close()
        self.broken = True

    def _run(self, request: RunRequest, source: CaseSource, clock: "_Clock") -> tuple[CaseTiming, ...]:
        started = time.perf_counter()
        try:
            cubin = Path(request.artifact).read_bytes()
        except OSError as error:
            raise HarnessError(f"the artifact cannot be read: {error}") from None
        module = Module(self.gpu.driver, self.facts, cubin)
        self._load_s += time.perf_counter() - started
        try:
            for case in request.cases:
                self._check(request, case, module, source)
            clock.checked()
            if request.check_only:
                return ()
            return tuple(self._time(request, case, module, source) for case in request.cases)
        except CandidateFailed as failure:
            self.broken = failure.broken
            raise
        except CudaError as error:
            self.broken = error.sticky
            raise
        finally:
            if not self.broken:
                module.close()

    def _check(self, request: RunRequest, case: CaseRequest, module: Module, source: CaseSource) -> None:
        with CaseSession(self.gpu, self.store, module, source, case, slots=1) as session:
            first_ms = session.check(request.timeout_s)
        runs = request.timing.runs
        if not request.check_only and first_ms * runs > request.timeout_s * 1e3:
            raise CandidateFailed(
                Status.TIMED_OUT,
                f"case {case.case}: one run took {first_ms:.4g} ms, {runs} timed runs"
                f" would pass the limit of {request.timeout_s:g} s",
            )

    def _time(self, request: RunRequest, case: CaseRequest, module: Module, source: CaseSource) -> CaseTiming:
        graph = is_short(case, request.timing)
        slots = request.timing.graph_runs if graph else max(1, request.timing.input_sets)
        with CaseSession(self.gpu, self.store, module, source, case, slots=slots) as session:
            return session.time(request.timing, request.timeout_s, graph=graph)


def is_short(case: CaseRequest, timing: TimingProtocol) -> bool:
    """Whether a case is timed through a graph: its known physical floor is below the limit."""
    return 0 < case.floor_ms < timing.graph_below_ms and timing.graph_runs > 1


def _late(gates: int) -> tuple[str, ...]:
    text = "the host was too slow to keep the queue ahead of the GPU: timings may hold launch overhead"
    return (text,) if gates else ()


class _Clock:
    """Seconds of checking and of timing, also when a run ends early."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._checked: float | None = None

    def checked(self) -> None:
        self._checked = time.perf_counter()

    def check(self) -> float:
        return (self._checked or time.perf_counter()) - self._start

    def time(self) -> float:
        return time.perf_counter() - self._checked if self._checked else 0.0
