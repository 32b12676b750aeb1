"""The harness on this machine: a pool of compile workers and one device worker, each a child behind a sandbox."""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from time import monotonic
from typing import Final, Self

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, HarnessError, PlanError, WorkerDied
from kernelwright.core.launch import BuildRequest, ResolvedPlan
from kernelwright.core.outcome import Outcome, StaticMetrics, Status
from kernelwright.core.resolve import compiler_options, macros, resolve
from kernelwright.devices.base import BuildResult, CaseRequest, RunRequest, RunResult, TimingProtocol
from kernelwright.devices.cuda.occupancy import with_occupancy
from kernelwright.harness.child import Child, StepTimeout
from kernelwright.harness.device_lock import device_lock
from kernelwright.harness.protocol import CompileResult, ProfileResult, SubmitResult
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.turns import Turns
from kernelwright.harness.wire import Ceilings, Hello, Request, WorkerSetup
from kernelwright.problems.loader import Case, load_problem

MAX_SOURCE_BYTES: Final = 256 * 1024
TOO_FAST: Final = 0.8
"""A time below this share of the physical floor is not believed."""


@dataclass(frozen=True)
class Timeouts:
    """Seconds for each step. ``run_s`` bounds one case (the device's own watchdog); the rest is the parent's."""

    compile_s: float = 60.0
    run_s: float = 30.0
    grace_s: float = 90.0


class LocalHarness:
    """Implements :class:`~kernelwright.harness.protocol.Harness`. Use as an async context manager.

    ``checked`` runs every candidate once in the cpu device's checked mode, at the smallest case, before it is timed.
    """

    def __init__(
        self,
        problem: str,
        device: str,
        *,
        seed: int = 0,
        compile_workers: int = 4,
        slow_cases: bool = False,
        checked: bool | None = None,
        timeouts: Timeouts | None = None,
        timing: TimingProtocol | None = None,
    ) -> None:
        self.problem = load_problem(problem)
        self.device = device
        self.timeouts = timeouts or Timeouts()
        self.timing = timing or TimingProtocol()
        cases = self.problem.cases(slow=slow_cases)
        self.cases = sorted(cases, key=lambda case: sum(self.problem.work(case)))
        self.checked = device == "cpu" if checked is None else checked
        self.sandbox = SandboxReport()
        self._order = [case.id for case in cases]
        self._seed = seed
        self._slow_cases = slow_cases
        self._compile_workers = min(compile_workers, os.cpu_count() or 1)
        self._plans: dict[str, dict[str, ResolvedPlan]] = {}
        self._checks: dict[str, str] = {}
        self._uses: Counter[str] = Counter()
        self._on_device = Turns()
        self._idle: asyncio.Queue[Child] = asyncio.Queue()
        self._children: list[Child] = []
        self._hello: Hello | None = None

    async def __aenter__(self) -> Self:
        self._scratch = _make_scratch()
        try:
            (self._scratch / "artifacts").mkdir()
            self._worker = self._child("device", "device")
            compilers = [self._child("compile", f"compile-{n}") for n in range(self._compile_workers)]
            # The first compiler alone builds what all share.
            self._hello, _ = await asyncio.gather(self._worker.start(), compilers[0].start())
            self.sandbox = self._hello.sandbox
            for compiler in compilers:
                self._idle.put_nowait(compiler)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    @property
    def facts(self) -> DeviceFacts:
        """Facts of the device, from its worker."""
        if self._hello is None or self._hello.facts is None:
            raise HarnessError("the harness is not started")
        return self._hello.facts

    @property
    def ceilings(self) -> Ceilings:
        """What the device can do at best, as measured when its worker started."""
        return self._hello.ceilings if self._hello else Ceilings()

    async def close(self) -> None:
        """End the children and remove the scratch."""
        await asyncio.gather(*(child.kill() for child in self._children))
        shutil.rmtree(self._scratch, ignore_errors=True)

    # -- compile --------------------------------------------------------------------------------------

    async def compile(self, candidate: Candidate) -> CompileResult:
        """Static refusals, resolve, compile (and the checked build beside it), static metrics."""
        if len(candidate.template.source.encode()) > MAX_SOURCE_BYTES:
            reason = f"the source is larger than {MAX_SOURCE_BYTES} bytes"
            return CompileResult(candidate.id, status=Status.RULE_BROKEN, reason=reason)
        try:
            plans = self._resolve(candidate)
            fast = self._request(candidate, "fast")
        except (PlanError, ExpressionError) as error:
            return CompileResult(candidate.id, status=Status.LAUNCH_FAILED, reason=str(error))
        if not self.checked:
            built = await self._build(fast)
        else:
            built, check = await asyncio.gather(self._build(fast), self._build(replace(fast, mode="check")))
            built = built if built.status is not None or check.status is None else check
            self._checks[candidate.id] = check.artifact
            self._uses[check.artifact] += 1
        if built.status is None:
            self._plans[candidate.id] = plans
            self._uses[built.artifact] += 1
        return CompileResult(
            candidate=candidate.id,
            artifact=built.artifact,
            digest=built.digest,
            status=built.status,
            reason=built.reason,
            static=self._complete(built.static, plans),
            log=built.log,
            seconds=built.seconds,
        )

    def _resolve(self, candidate: Candidate) -> dict[str, ResolvedPlan]:
        signature = self.problem.signature
        return {case.id: resolve(candidate, case.sizes, self.facts, signature) for case in self.cases}

    def _request(self, candidate: Candidate, mode: str) -> BuildRequest:
        return BuildRequest(
            source=candidate.template.source,
            macros=macros(candidate, self.facts),
            options=compiler_options(candidate),
            kernels=candidate.template.kernels,
            arch=self.facts.arch,
            mode=mode,
        )

    async def _build(self, request: BuildRequest) -> BuildResult:
        compiler = await self._idle.get()
        start = monotonic()
        try:
            async with self._compiling():
                reply = await compiler.ask(Request(0, build=request), self.timeouts.compile_s)
        except StepTimeout:
            reason = f"the compiler did not end within {self.timeouts.compile_s:g} s"
            return BuildResult(status=Status.COMPILE_FAILED, reason=reason, seconds=monotonic() - start)
        except WorkerDied as error:
            reason = f"the compiler died: {error}"
            return BuildResult(status=Status.COMPILE_FAILED, reason=reason, seconds=monotonic() - start)
        finally:
            self._idle.put_nowait(compiler)
        if reply.built is None:
            raise HarnessError("the compile worker gave no result")
        return reply.built

    def _compiling(self) -> contextlib.AbstractAsyncContextManager[None]:
        """On the cpu device compilers would disturb the clock: they wait while a candidate is timed."""
        return self._on_device.shared() if self.device == "cpu" else contextlib.nullcontext()

    def _complete(self, static: StaticMetrics | None, plans: dict[str, ResolvedPlan]) -> StaticMetrics | None:
        """Occupancy, for the launches of the largest case that uses the kernel."""
        if static is None or self.facts.kind != "cuda":
            return static
        launches = [launch for case in self.cases for launch in plans[case.id].launches]
        threads = {launch.kernel: prod(launch.block) for launch in launches}
        shared = {launch.kernel: launch.dynamic_shared_bytes for launch in launches}
        return with_occupancy(static, threads, shared, self.facts)

    # -- benchmark ------------------------------------------------------------------------------------

    async def benchmark(self, candidate: Candidate, compiled: CompileResult) -> Outcome:
        """The checked run where there is one, then every case checked and timed; the device is exclusive."""
        start = monotonic()
        plans = self._plans.pop(candidate.id, None) or self._resolve(candidate)
        check = self._checks.pop(candidate.id, "")
        try:
            async with self._on_device.alone(), device_lock(self.facts.uuid):
                waited = monotonic() - start
                if check:
                    found = await self._run(self._run_request(check, self.cases[:1], plans, check_only=True))
                    if found.status is not Status.MEASURED:
                        return self._outcome(found, compiled, monotonic() - start - waited)
                result = await self._run(self._run_request(compiled.artifact, self.cases, plans))
        finally:
            self._forget(check, compiled.artifact)
        return self._believe(self._outcome(result, compiled, monotonic() - start - waited))

    def _run_request(
        self, artifact: str, cases: list[Case], plans: dict[str, ResolvedPlan], *, check_only: bool = False
    ) -> RunRequest:
        return RunRequest(
            artifact=artifact,
            cases=tuple(CaseRequest(case.id, plans[case.id], self.floor_ms(case)) for case in cases),
            timing=self.timing,
            check_only=check_only,
            timeout_s=self.timeouts.run_s,
        )

    async def _run(self, request: RunRequest) -> RunResult:
        limit = (len(request.cases) + 1) * self.timeouts.run_s + self.timeouts.grace_s
        try:
            reply = await self._worker.ask(Request(0, run=request), limit)
        except StepTimeout:
            return RunResult(Status.TIMED_OUT, f"the device worker did not answer within {limit:g} s")
        except WorkerDied as error:
            return RunResult(Status.CRASHED, str(error))
        if reply.ran is None:
            raise HarnessError("the device worker gave no result")
        return reply.ran

    def _outcome(self, result: RunResult, compiled: CompileResult, seconds: float) -> Outcome:
        timings = {timing.case: timing for timing in result.timings}
        known = result.check_seconds + result.time_seconds
        return Outcome(
            status=result.status,
            reason=result.reason,
            static=compiled.static,
            cases=tuple(timings[case] for case in self._order if case in timings),
            artifact_digest=compiled.digest,
            seconds={
                "compile": compiled.seconds,
                "check": result.check_seconds,
                "time": result.time_seconds,
                "overhead": max(0.0, seconds - known),
            },
            findings=result.findings,
        )

    def _believe(self, outcome: Outcome) -> Outcome:
        """Quarantine times that the device cannot have."""
        if outcome.status is not Status.MEASURED:
            return outcome
        times = outcome.times_ms()
        for case in self.cases:
            floor = self.believed_floor_ms(case)
            if times[case.id] < TOO_FAST * floor:
                reason = f"case {case.id}: {times[case.id]:.4g} ms, the device needs at least {floor:.4g} ms"
                return replace(outcome, status=Status.TOO_FAST, reason=reason)
        return outcome

    def floor_ms(self, case: Case) -> float:
        """Time that the case's bytes and operations need at the measured ceilings; 0 unknown."""
        return self.ceilings.floor_ms(*self.problem.work(case))

    def believed_floor_ms(self, case: Case) -> float:
        """The floor as a limit of belief: data that fits in L2 may come from there, tensor cores are faster."""
        moved, flops = self.problem.work(case)
        from_memory = moved if moved > 2 * self.facts.l2_bytes else 0
        return self.ceilings.floor_ms(from_memory, flops if self.problem.spec.rules.no_tensor_cores else 0)

    def _forget(self, *artifacts: str) -> None:
        """Remove binaries that no waiting candidate shares."""
        for artifact in filter(None, artifacts):
            self._uses[artifact] -= 1
            if self._uses[artifact] <= 0:
                del self._uses[artifact]
                Path(artifact).unlink(missing_ok=True)

    # -- the rest -------------------------------------------------------------------------------------

    async def profile(self, candidate: Candidate, case: str) -> ProfileResult:  # noqa: ARG002 - the protocol's
        """Hardware counters are not read yet; static metrics and the physical floor are what there is."""
        return ProfileResult("not_available", f"hardware counters of {self.device} are not read yet")

    async def submit(self, candidate: Candidate, board: str | None) -> SubmitResult:  # noqa: ARG002 - the protocol's
        """No leaderboard is attached."""
        return SubmitResult("no_board", "no leaderboard is attached")

    def _child(self, role: str, name: str) -> Child:
        child = Child(
            WorkerSetup(
                role=role,
                device=self.device,
                scratch=str(self._scratch / name),
                artifacts=str(self._scratch / "artifacts"),
                problem=str(self.problem.folder) if role == "device" else "",
                seed=self._seed,
                slow_cases=self._slow_cases,
                readable=_readable(self.problem.folder),
            )
        )
        self._children.append(child)
        return child


def _readable(folder: Path) -> tuple[str, ...]:
    """What children read besides the system's folders: Python, the packages, the problem."""
    paths = [sys.prefix, sys.base_prefix, *sys.path, str(folder)]
    return tuple(dict.fromkeys(str(Path(path).resolve()) for path in paths if path and Path(path).exists()))


def _make_scratch() -> Path:
    """A private folder for one harness; those of processes that no longer live are removed."""
    root = Path(tempfile.gettempdir())
    for left in root.glob("kernelwright-*-*"):
        number = left.name.split("-")[1]
        if number.isdecimal() and not Path(f"/proc/{number}").exists():
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"kernelwright-{os.getpid()}-"))
