"""The cuda device's runner: checks every run of a candidate and times it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import DeviceLost, MissingError, ProblemError
from kernelwright.core.outcome import CaseTiming, Status
from kernelwright.devices.base import (
    CaseRequest,
    CaseSource,
    DuelRequest,
    DuelResult,
    RunRequest,
    RunResult,
)
from kernelwright.devices.cuda.bench import Bench, is_short
from kernelwright.devices.cuda.casedata import CaseStore
from kernelwright.devices.cuda.driver import CudaError
from kernelwright.devices.cuda.duel import duel
from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.library import Library
from kernelwright.devices.cuda.module import loaded
from kernelwright.devices.cuda.operations import CandidateFailed
from kernelwright.devices.cuda.reference import Reference
from kernelwright.devices.cuda.session import Entrant
from kernelwright.devices.cuda.state import StateReader, findings
from kernelwright.devices.cuda.trusted import POISON
from kernelwright.devices.cuda.watched import Repeats


class CudaRunner:
    """Owns one GPU. Keep one source for many runs: its inputs and right outputs stay on the device.

    Raises MissingError without a device or NVIDIA's packages, with the install line.
    """

    def __init__(self, ordinal: int = 0, cache_dir: Path | None = None, memory_share: float = 0.4) -> None:
        self.gpu = Gpu(ordinal, cache_dir, memory_share)
        self.store = CaseStore(self.gpu, Reference(self.gpu))
        self._reader = StateReader(self.gpu.facts.uuid)

    @property
    def facts(self) -> DeviceFacts:
        """Facts of the device."""
        return self.gpu.facts

    @property
    def broken(self) -> bool:
        """The context is lost with a candidate (a crash, an endless kernel): this process has to be replaced."""
        return self.gpu.lost

    @property
    def spent(self) -> dict[str, float]:
        """Seconds in module loading, in putting work into the stream, and in waiting for the device."""
        return dict(self.gpu.spent)

    def run(self, request: RunRequest, source: CaseSource) -> RunResult:
        """First every case once, checked; then, loaded anew, the timed runs, each checked. Stops at the first failure.

        ``timeout_s`` bounds one untimed run, and a case's timed runs together. ``CaseTiming.max_error`` is the
        worst error over all runs in multiples of the tolerance.
        Raises DeviceLost after :attr:`broken`, HarnessError or ProblemError when it is not the candidate's fault.
        """
        clock, late = _Clock(), self.gpu.late_gates
        bench = Bench(self.gpu, self.store, self._reader, source, request.timing, request.timeout_s)
        timings: tuple[CaseTiming, ...] = ()
        errors: tuple[tuple[str, float], ...] = ()
        try:
            with self._current():
                if request.check_only:
                    errors = _check_only(bench, request)
                else:
                    timings = _run(bench, request, clock)
        except CandidateFailed as failure:
            return RunResult(
                failure.status,
                failure.reason,
                check_seconds=clock.check(),
                time_seconds=clock.time(),
                check=failure.check,
            )
        return RunResult(
            Status.MEASURED,
            timings=timings,
            findings=findings([(t.case, t.conditions) for t in timings]) + _late(self.gpu.late_gates - late),
            check_seconds=clock.check(),
            time_seconds=clock.time(),
            errors=errors,
        )

    def duel(self, request: DuelRequest, source: CaseSource) -> DuelResult:
        """Single runs in turn (see :func:`kernelwright.devices.cuda.duel.duel`). Raises as :meth:`run`."""
        started, late = time.perf_counter(), self.gpu.late_gates
        bench = Bench(self.gpu, self.store, self._reader, source, request.timing, request.timeout_s)
        name = ""
        try:
            with self._current(), self._library(request, source) as library:
                name = library.name if library else ""
                cases = duel(bench, request, library)
        except MissingError as error:
            return DuelResult(Status.NOT_RUN, str(error))
        except CandidateFailed as failure:
            seconds = time.perf_counter() - started
            return DuelResult(
                failure.status,
                failure.reason,
                failure.check,
                at_fault=failure.side,
                seconds=seconds,
                library=name,
            )
        return DuelResult(
            Status.MEASURED,
            cases=cases,
            findings=findings([(c.case, c.conditions) for c in cases]) + _late(self.gpu.late_gates - late),
            seconds=time.perf_counter() - started,
            library=name,
        )

    @contextmanager
    def _library(self, request: DuelRequest, source: CaseSource) -> Iterator[Library | None]:
        """The vendor library where a side has no artifact; what it refuses is its failure, not the device's."""
        if request.challenger.artifact and request.incumbent.artifact:
            yield None
            return
        with Library(self.gpu, source) as library:
            try:
                yield library
            except (CudaError, ProblemError) as error:
                if isinstance(error, CudaError) and error.sticky:
                    raise
                failure = library.failed(error)
                failure.side = "incumbent" if request.challenger.artifact else "challenger"
                raise failure from None

    def close(self) -> None:
        """Free the device."""
        if not self.broken:
            self.store.clear()
            self.gpu.pool.trim()
            self.gpu.close()
        self.gpu.lost = True

    @contextmanager
    def _current(self) -> Iterator[None]:
        """The device's context is current in this thread."""
        if self.broken:
            raise DeviceLost(f"{self.facts.name} lost its context with an earlier candidate")
        driver = self.gpu.driver
        driver.ok(driver.api.cuCtxSetCurrent(driver.context), "cuCtxSetCurrent")
        try:
            yield
        except CudaError as error:
            self.gpu.lost = self.gpu.lost or error.sticky
            raise


def _check_only(bench: Bench, request: RunRequest) -> tuple[tuple[str, float], ...]:
    with loaded(bench.gpu, request.artifact) as module:
        entrant = Entrant(module, Repeats())
        return tuple((c.case, bench.check(entrant, c, passes=len(POISON)).worst) for c in request.cases)


def _run(bench: Bench, request: RunRequest, clock: "_Clock") -> tuple[CaseTiming, ...]:
    repeats = Repeats()
    runs = []
    with loaded(bench.gpu, request.artifact) as module:
        entrant = Entrant(module, repeats)
        for case in request.cases:
            first_ms = bench.check(entrant, case).first_ms
            runs.append(_runs(bench, case, first_ms))
            bench.in_time(entrant, case, first_ms, runs[-1])
    clock.checked()
    with loaded(bench.gpu, request.artifact) as module:
        entrant = Entrant(module, repeats)
        return tuple(_time(bench, entrant, *pair) for pair in zip(request.cases, runs, strict=True))


def _runs(bench: Bench, case: CaseRequest, first_ms: float) -> int:
    """Timed runs of a case: few for a clear loser. The first run of a short kernel is mostly launch overhead."""
    timing = bench.timing
    if first_ms <= case.loser_above_ms or is_short(case, timing):
        return timing.runs
    return min(timing.runs, max(timing.loser_runs, timing.dropped + 1))


def _time(bench: Bench, entrant: Entrant, case: CaseRequest, runs: int) -> CaseTiming:
    with bench.session(entrant, case, runs) as session:
        if is_short(case, bench.timing):
            method, divisor = "graph", len(session.slots)
            with session.graph() as graph:
                block = bench.take(bench.steps(session, runs, graph))
        else:
            method, divisor = "events", 1
            block = bench.take(bench.steps(session, runs, None))
    samples = tuple(ms / divisor for ms in block.samples_ms[bench.timing.dropped :])
    return CaseTiming(case.case, samples, method, block.worst_error, block.conditions, block.discarded)


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
