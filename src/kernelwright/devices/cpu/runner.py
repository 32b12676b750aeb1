"""Runs a built candidate on the CPU: checks every run's outputs and times the launches."""

import math
import mmap
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import LaunchSpec
from kernelwright.core.outcome import CaseTiming, Check, Status
from kernelwright.devices.alternate import alternate
from kernelwright.devices.base import (
    Array,
    Buffer,
    CaseRequest,
    CaseSource,
    DuelRequest,
    DuelResult,
    RunRequest,
    RunResult,
)
from kernelwright.devices.compare import POISONS, compare, draw_poisons, poison, root_mean_square
from kernelwright.devices.cpu.batches import available_memory, batches, largest_file, memory_fault
from kernelwright.devices.cpu.data import CaseData, DataCache, read_array
from kernelwright.devices.cpu.facts import MAX_BLOCK, MAX_GRID, MAX_SHARED, MAX_THREADS, cpu_facts
from kernelwright.devices.cpu.findings import Symboliser, finding_lines, metric_lines
from kernelwright.devices.cpu.job import (
    FORWARD,
    RANDOM,
    REVERSE,
    Job,
    PlannedRun,
    Settings,
    bytes_per_run,
    scratch_buffers,
)
from kernelwright.devices.cpu.process import Report, run_process
from kernelwright.devices.cpu.repeat import Repeats
from kernelwright.devices.cpu.symbols import shared_storage, static_shared_bytes
from kernelwright.devices.cpu.toolchain import Toolchain
from kernelwright.devices.cpu.verdict import Verdict, judge, left_out, with_cause
from kernelwright.devices.elf import ElfFile, read_elf


class CpuRunner:
    """The CPU as a device. See :class:`kernelwright.devices.base.Runner`.

    ``threads`` OS threads run the blocks of a launch (default: the CPUs this process may use). ``cache`` holds
    the runner's executable (default: ``cpu-cache`` in ``scratch``). ``memory_bytes`` is what a candidate's
    process may take beyond its buffers; ``buffer_bytes`` bounds outputs and scratch of the runs of one process and
    ``data_bytes`` the inputs and right outputs kept between candidates. ``stack_bytes`` is the stack of one
    CUDA thread; a guard page lies below each.
    """

    def __init__(
        self,
        scratch: Path,
        threads: int | None = None,
        *,
        cxx: str = "g++",
        cache: Path | None = None,
        memory_bytes: int = 2 << 30,
        buffer_bytes: int = 512 << 20,
        data_bytes: int = 1 << 30,
        stack_bytes: int = 128 << 10,
    ) -> None:
        self._toolchain = Toolchain(cxx, cache or scratch / "cpu-cache")
        self._threads = threads or len(os.sched_getaffinity(0))
        self._facts = cpu_facts(self._threads, self._toolchain.version)
        self._memory_bytes = memory_bytes
        self._buffer_bytes = buffer_bytes
        self._stack_bytes = stack_bytes
        self._data = DataCache(data_bytes)

    @property
    def facts(self) -> DeviceFacts:
        """Facts of the CPU."""
        return self._facts

    def close(self) -> None:
        """Drop the kept inputs."""
        self._data.clear()

    def duel(self, request: DuelRequest, source: CaseSource) -> DuelResult:
        """Blocks of runs in turn."""
        return alternate(self, request, source)

    def run(self, request: RunRequest, source: CaseSource) -> RunResult:
        """Run every case; the candidate's code has ``request.timeout_s`` in all.

        An artifact built in mode ``check`` runs once a case and is never timed: that needs ``check_only``.
        Raises HarnessError when our own side fails.
        """
        mode = request.artifact.rsplit(".", 2)[-2]
        if mode == "check" and not request.check_only:
            raise HarnessError("an artifact of mode check can only be checked, not timed")
        try:
            elf = read_elf(Path(request.artifact))
            storage = shared_storage(elf)
        except (OSError, ValueError) as error:
            raise HarnessError(f"the artifact cannot be read: {error}") from error
        settings = Settings(1 if mode == "check" else self._threads, self._stack_bytes, self._memory_bytes,
                            metrics=mode == "check", shared=storage)  # fmt: skip
        session = _Session(request, source, elf, settings, self._toolchain.runner(mode), self._data)
        timings = []
        for case in request.cases:
            verdict = session.run_case(case, self._buffer_bytes)
            if verdict is not None:
                return session.result(verdict, ())
            if request.check_only:
                session.errors.append((case.case, session.max_error))
            else:
                timings.append(session.timing(case.case))
        return session.result(Verdict(Status.MEASURED, ""), tuple(timings))


@dataclass
class _Session:
    """State of one call of :meth:`CpuRunner.run`."""

    request: RunRequest
    source: CaseSource
    elf: ElfFile
    settings: Settings
    runner: Path
    data: DataCache
    findings: list[str] = field(default_factory=list)
    samples_ms: dict[int, float] = field(default_factory=dict)
    max_error: float = 0.0
    errors: list[tuple[str, float]] = field(default_factory=list)
    repeats: Repeats = field(default_factory=Repeats)
    candidate_seconds: float = 0.0
    begin: float = field(default_factory=time.monotonic)

    def result(self, verdict: Verdict, timings: tuple[CaseTiming, ...]) -> RunResult:
        seconds = time.monotonic() - self.begin
        return RunResult(
            status=verdict.status,
            reason=verdict.reason,
            check=verdict.check,
            timings=timings,
            findings=tuple(dict.fromkeys(self.findings)),
            check_seconds=max(0.0, seconds - self.candidate_seconds),
            time_seconds=self.candidate_seconds,
            errors=tuple(self.errors) if verdict.status is Status.MEASURED else (),
        )

    def timing(self, case: str) -> CaseTiming:
        kept = [ms for run, ms in sorted(self.samples_ms.items()) if run >= self.request.timing.dropped]
        return CaseTiming(case, tuple(kept), "clock", self.max_error)

    def run_case(self, case: CaseRequest, buffer_bytes: int) -> Verdict | None:
        """All runs of a case, in as few processes as the outputs allow."""
        verdict = self._check_launches(case)
        if verdict is not None:
            return verdict
        self.samples_ms, self.max_error, self.repeats = {}, 0.0, Repeats()
        buffers = self.source.buffers(case.case)
        room = min(buffer_bytes, largest_file(), available_memory() // 2)
        most_runs = max(1, room // bytes_per_run([*buffers, *scratch_buffers(case.plan)]))
        most_sets = self.data.fitting(buffers)
        for runs in self._rounds(case):
            for batch in batches(runs, most_runs, most_sets):
                verdict = self._run_batch(case, buffers, batch)
                if verdict is not None:
                    return verdict
            if not self.request.check_only and self._loses(case):
                break
        return None

    def _rounds(self, case: CaseRequest) -> list[list[PlannedRun]]:
        """The runs of a case; where it may turn out to lose, the first few on their own."""
        runs, timing = self._planned_runs(), self.request.timing
        first = max(timing.loser_runs, timing.dropped + 1)
        if self.request.check_only or math.isinf(case.loser_above_ms) or first >= len(runs):
            return [runs]
        return [runs[:first], runs[first:]]

    def _loses(self, case: CaseRequest) -> bool:
        return min(self.timing(case.case).samples_ms) > case.loser_above_ms

    def _planned_runs(self) -> list[PlannedRun]:
        """Dropped runs double as a test: their threads run in other orders.

        Without timing: one run for each kind of poison, in every order. The checked mode sees by itself what is
        read before it is written: it needs one run.
        """
        timing = self.request.timing
        if self.request.check_only:
            orders = [FORWARD, REVERSE, RANDOM][: 1 if self.settings.metrics else POISONS]
            sets = [0] * len(orders)
        else:
            orders = [REVERSE, RANDOM][: timing.dropped]
            orders += [FORWARD] * (timing.runs - len(orders))
            sets = [i % max(1, timing.input_sets) for i in range(timing.runs)]
        each = zip(sets, orders, draw_poisons(sets), strict=False)
        return [PlannedRun(i, *run) for i, run in enumerate(each)]

    def _check_launches(self, case: CaseRequest) -> Verdict | None:
        shared = static_shared_bytes(self.elf)
        for launch in case.plan.launches:
            if launch.cluster != (1, 1, 1):
                return Verdict(Status.NOT_RUN, "not run: thread block clusters cannot run on the cpu device")
            message = launch_fault(launch, shared.get(launch.kernel.split("<")[0], 0))
            if message:
                reason = f"case {case.case}: kernel {launch.kernel}: {message}"
                return Verdict(Status.LAUNCH_FAILED, reason, Check.LAUNCH_LIMITS)
        return None

    def _run_batch(
        self, case: CaseRequest, buffers: Sequence[Buffer], runs: Sequence[PlannedRun]
    ) -> Verdict | None:
        job = Job(case.plan, buffers, runs)
        sets = {run.input_set for run in runs}
        missing = self.data.missing(self.source, case.case, sets)
        verdict = memory_fault(case.case, buffers, job.output_bytes, missing, checked=self.settings.metrics)
        if verdict is not None:
            return verdict
        data = self.data.get(self.source, case.case, sets)
        verdict, seen = self._attempt(case, job, data), 1
        while verdict is not None and verdict.sightings > seen:
            verdict, seen = self._attempt(case, job, data), seen + 1
        return verdict

    def _attempt(self, case: CaseRequest, job: Job, data: dict[int, CaseData]) -> Verdict | None:
        """A batch in a file of its own: what a failed attempt left in its file is not there for the next one."""
        output_fd = os.memfd_create("kernelwright-outputs", os.MFD_CLOEXEC)
        try:
            os.ftruncate(output_fd, max(job.output_bytes, 1))
            with (
                mmap.mmap(output_fd, max(job.output_bytes, 1)) as mapped,
                memoryview(mapped) as memory,
            ):
                for region in job.written:
                    region.write_canaries(memory)
                report, verdict = self._execute(case.case, job, data, output_fd)
                if verdict is not None:
                    return verdict
                threads = job.busy_threads(self.settings)
                for i, run in enumerate(job.runs):
                    self.samples_ms[run.number] = report.runs[i].milliseconds(threads)
                return self._check_outputs(case, job, data, memory)
        finally:
            os.close(output_fd)

    def _execute(
        self, case: str, job: Job, data: dict[int, CaseData], output_fd: int
    ) -> tuple[Report, Verdict | None]:
        budget = self.request.timeout_s - self.candidate_seconds
        if budget <= 0:
            reason = f"case {case}: the {self.request.timeout_s:g} s for all cases were over"
            return Report(), Verdict(Status.TIMED_OUT, reason, Check.RUN_LIMITS)
        cpu_seconds = math.ceil(budget * self.settings.threads) + 2
        report = run_process(
            self.runner,
            self.request.artifact,
            job.parts(self.settings, data, output_fd, cpu_seconds),
            files=[output_fd, *(d.fd for d in data.values())],
            tls_bytes=self.elf.tls_bytes() + (64 << 10),
            seconds=budget,
        )
        self.candidate_seconds += report.seconds
        symbols = Symboliser(Path(self.request.artifact), report)
        report.findings = symbols.place(report.findings)
        self.findings += finding_lines(case, report) + metric_lines(case, report, symbols)
        verdict = judge(
            report, case, job.runs[0].number, self.request.timeout_s, job.busy_threads(self.settings)
        )
        return report, with_cause(verdict, job.plan)

    def _check_outputs(
        self, case: CaseRequest, job: Job, data: dict[int, CaseData], memory: memoryview
    ) -> Verdict | None:
        for i, run in enumerate(job.runs):
            where = f"case {case.case} (run {run.number})"
            for region in (*job.outputs[i].values(), *job.scratch[i].values()):
                if not region.canaries_intact(memory):
                    reason = f"{where}: out-of-bounds: bytes next to {region.name} were overwritten"
                    return Verdict(Status.WRONG, reason, Check.GUARD_BANDS)
            for name, region in job.outputs[i].items():
                got = read_array(memory, region, job.buffers[name])
                right = data[run.input_set].expected[name]
                verdict = self._compare(case, job.buffers[name], run, right, got)
                if verdict is not None:
                    return replace(verdict, reason=f"{where}: {verdict.reason}")
        return None

    def _compare(
        self, case: CaseRequest, buffer: Buffer, run: PlannedRun, expected: Array, got: Array
    ) -> Verdict | None:
        """The output against the right values, then bit by bit against earlier runs on the same inputs."""
        tolerance = self.source.tolerance(case.case, buffer.name, root_mean_square(expected))
        pattern = poison(buffer.dtype, run.poison) if buffer.role == "out" else None
        comparison = compare(got, expected, buffer.dtype, tolerance, pattern)
        self.max_error = max(self.max_error, comparison.worst)
        if comparison.wrong:
            if comparison.nothing_written:  # whatever the order of its threads
                hint = left_out(case.plan, buffer.name)
            else:
                hint = f", {run.order.text}" if run.order.text else ""
            check = Check.POISON if comparison.unwritten else case.check
            return Verdict(Status.WRONG, comparison.message(buffer.name) + hint, check)
        difference = "" if case.plan.atomic_noise else self.repeats.difference(run, buffer.name, got)
        return Verdict(Status.UNSTABLE, difference, Check.REPEAT) if difference else None


def launch_fault(launch: LaunchSpec, static_shared: int) -> str:
    """Why no device could launch this, with the numbers; empty when it can."""
    for what, extents, limits in (("grid", launch.grid, MAX_GRID), ("block", launch.block, MAX_BLOCK)):
        for axis, extent, limit in zip("xyz", extents, limits, strict=True):
            if not 1 <= extent <= limit:
                return f"{what}.{axis} is {extent}, the limit is {limit}"
    threads = math.prod(launch.block)
    if threads > MAX_THREADS:
        return f"a block of {threads} threads, the limit is {MAX_THREADS}"
    shared = launch.dynamic_shared_bytes + static_shared
    if shared > MAX_SHARED:
        return (
            f"{launch.dynamic_shared_bytes} bytes of dynamic and {static_shared} of static shared memory,"
            f" the limit is {MAX_SHARED}"
        )
    return ""
