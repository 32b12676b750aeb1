"""The harness on this machine: a pool of compile workers and one device worker, each a child behind a sandbox."""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Sequence
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
from kernelwright.harness.compile_pool import CompilePool
from kernelwright.harness.device_lock import device_lock, silent
from kernelwright.harness.processes import import_roots, readable_folders
from kernelwright.harness.protocol import CompileResult, ProfileResult, SubmitResult
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.scratch import Artifacts, Scratch, shared_cache
from kernelwright.harness.setup import DEVICES, Role, WorkerSetup
from kernelwright.harness.turns import Turns
from kernelwright.harness.wire import Ceilings, Hello, Request
from kernelwright.problems.loader import Case, load_problem

MAX_SOURCE_BYTES: Final = 256 * 1024
PREPARE_TIMEOUT_S: Final = 900.0
TOO_FAST: Final = 0.8
"""A time below this share of the physical floor is not believed."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Timeouts:
    """Seconds for each step. ``run_s`` bounds one case (the device's own watchdog); the rest is the parent's."""

    compile_s: float = 60.0
    run_s: float = 30.0
    grace_s: float = 90.0


class LocalHarness:
    """Implements :class:`~kernelwright.harness.protocol.Harness`. Use as an async context manager, or start and close.

    ``checked`` runs every candidate once in the cpu device's checked mode, at the smallest case, before it is
    timed (by default on the cpu). ``ceilings`` stands in for what the device worker measures. ``notify`` hears
    messages for people. ``maker`` names another class that makes compiler and runner.
    """

    def __init__(
        self,
        problem: str | Path,
        device: str,
        *,
        seed: int = 0,
        compile_workers: int = 4,
        slow_cases: bool = False,
        checked: bool | None = None,
        timeouts: Timeouts | None = None,
        timing: TimingProtocol | None = None,
        ceilings: Ceilings | None = None,
        scratch_root: Path | None = None,
        notify: Callable[[str], None] = silent,
        maker: str = DEVICES,
    ) -> None:
        self.problem = load_problem(problem)
        self.device = device
        self.timeouts = timeouts or Timeouts()
        self.timing = timing or TimingProtocol()
        cases = self.problem.cases(slow=slow_cases)
        self.cases = sorted(cases, key=lambda case: sum(self.problem.work(case)))
        self.checked = device == "cpu" if checked is None else checked
        self.notify = notify
        self._order = [case.id for case in cases]
        self._ceilings = ceilings
        self._seed, self._slow_cases = seed, slow_cases
        self._compile_workers = max(1, min(compile_workers, os.cpu_count() or 1))
        self._scratch_root = scratch_root
        self._maker = maker
        self._on_device = Turns()
        self._children: list[Child] = []
        self._scratch: Scratch | None = None
        self._hello: Hello | None = None

    # -- life -----------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Start the device worker and the first compile worker; the others start when they are needed.

        Raises UserError (something to install, a wrong problem) or HarnessError.
        """
        self._scratch = Scratch(self._scratch_root)
        try:
            self._cache = shared_cache(self._scratch.folder("cache"))
            self._artifacts = Artifacts(self._scratch.artifacts)
            preparing = self._child(self._scratch, "prepare", "prepare", PREPARE_TIMEOUT_S)
            await preparing.start()
            await preparing.kill()
            self._worker = self._child(self._scratch, "device", "device")
            compilers = [
                self._child(self._scratch, "compile", f"compile-{n}") for n in range(self._compile_workers)
            ]
            self._hello, _ = await asyncio.gather(self._worker.start(), compilers[0].start())
            self._pool = CompilePool(compilers, self._artifacts, self.timeouts.compile_s, self._compiling)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the children and remove the scratch."""
        await asyncio.gather(*(child.kill() for child in self._children))
        self._children.clear()
        if self._scratch is not None:
            self._scratch.close()

    def _child(self, scratch: Scratch, role: Role, name: str, start_timeout_s: float = 180.0) -> Child:
        roots = import_roots(self._maker)
        setup = WorkerSetup(
            role=role,
            device=self.device,
            parent=os.getpid(),
            scratch=str(scratch.folder(name)),
            artifacts=str(scratch.artifacts),
            cache=str(self._cache),
            problem=str(self.problem.folder.resolve()),
            seed=self._seed,
            slow_cases=self._slow_cases,
            memory_bytes=_memory_share(role, self._compile_workers),
            readable=readable_folders(roots, *([self.problem.folder] if role == "device" else [])),
            maker=self._maker,
        )
        child = Child(setup, start_timeout_s)
        self._children.append(child)
        return child

    @property
    def facts(self) -> DeviceFacts:
        """Facts of the device, from its worker."""
        if self._hello is None or self._hello.facts is None:
            raise HarnessError("the harness is not started")
        return self._hello.facts

    @property
    def sandbox(self) -> SandboxReport:
        """What holds in the device worker."""
        return self._hello.sandbox if self._hello else SandboxReport()

    @property
    def ceilings(self) -> Ceilings:
        """What the device can do at best: as given, else as measured when its worker started."""
        return self._ceilings or (self._hello.ceilings if self._hello else Ceilings())

    # -- compile --------------------------------------------------------------------------------------

    async def compile(self, candidate: Candidate) -> CompileResult:
        """Static refusals, resolve, compile (and the checked build beside it), static metrics."""
        if refusal := _refusal(candidate.template.source):
            return CompileResult(candidate.id, status=Status.RULE_BROKEN, reason=refusal)
        try:
            plans = self._resolve(candidate)
            request = self._build_request(candidate)
        except (PlanError, ExpressionError) as error:
            return CompileResult(candidate.id, status=Status.LAUNCH_FAILED, reason=str(error))
        modes = ("fast", "check") if self.checked else ("fast",)
        builds = await asyncio.gather(*(self._pool.build(replace(request, mode=mode)) for mode in modes))
        fast = builds[0]
        failed = next((build for build in builds if build.status is not None), None)
        static = self._complete(fast.static, list(plans.values()))
        if failed is None and (reason := cannot_run(static)):
            failed = BuildResult(status=Status.LAUNCH_FAILED, reason=reason)
        return CompileResult(
            candidate=candidate.id,
            artifact="" if failed else fast.artifact,
            digest="" if failed else fast.digest,
            status=failed.status if failed else None,
            reason=failed.reason if failed else "",
            static=static,
            log=(failed or fast).log,
            seconds=max(build.seconds for build in builds),
            check_artifact=builds[1].artifact if self.checked and not failed else "",
        )

    def _compiling(self) -> contextlib.AbstractAsyncContextManager[None]:
        """On the cpu device compilers would disturb the clock: they wait while a candidate is timed."""
        return self._on_device.shared() if self.device == "cpu" else contextlib.nullcontext()

    def _resolve(self, candidate: Candidate) -> dict[str, ResolvedPlan]:
        signature = self.problem.signature
        return {case.id: resolve(candidate, case.sizes, self.facts, signature) for case in self.cases}

    def _build_request(self, candidate: Candidate) -> BuildRequest:
        return BuildRequest(
            source=candidate.template.source,
            macros=macros(candidate, self.facts),
            options=compiler_options(candidate),
            kernels=candidate.template.kernels,
            arch=self.facts.arch,
        )

    def _complete(self, static: StaticMetrics | None, plans: Sequence[ResolvedPlan]) -> StaticMetrics | None:
        """Occupancy, for the launches of the largest case that uses the kernel."""
        if static is None or self.facts.kind != "cuda":
            return static
        launches = [launch for plan in plans for launch in plan.launches]
        threads = {launch.kernel: prod(launch.block) for launch in launches}
        shared = {launch.kernel: launch.dynamic_shared_bytes for launch in launches}
        return with_occupancy(static, threads, shared, self.facts)

    # -- benchmark ------------------------------------------------------------------------------------

    async def benchmark(self, candidate: Candidate, compiled: CompileResult) -> Outcome:
        """The checked run where there is one, then every case checked and timed; the device is exclusive.

        Raises HarnessError also when the binary is not kept any more: compile again.
        """
        if compiled.artifact not in self._artifacts:
            raise HarnessError(f"{candidate.id} has no binary (any more): compile it first")
        plans = self._resolve(candidate)
        async with self._on_device.alone(), device_lock(self.facts.uuid, waiting=self.notify):
            start = monotonic()
            notes: tuple[str, ...] = ()
            check_seconds = 0.0
            if compiled.check_artifact:
                check = self._run_request(compiled.check_artifact, self.cases[:1], plans, check_only=True)
                found = await self._run(check)
                if found.status is not Status.MEASURED:
                    return self._outcome(found, compiled, monotonic() - start)
                notes, check_seconds = found.findings, found.check_seconds
            result = await self._run(self._run_request(compiled.artifact, self.cases, plans))
            result = replace(
                result,
                findings=tuple(dict.fromkeys(notes + result.findings)),
                check_seconds=result.check_seconds + check_seconds,
            )
        return self._believe(self._outcome(result, compiled, monotonic() - start))

    def _run_request(
        self,
        artifact: str,
        cases: Sequence[Case],
        plans: dict[str, ResolvedPlan],
        *,
        check_only: bool = False,
    ) -> RunRequest:
        return RunRequest(
            artifact=artifact,
            cases=tuple(CaseRequest(case.id, plans[case.id], self.floor_ms(case)) for case in cases),
            timing=self.timing,
            check_only=check_only,
            timeout_s=self.timeouts.run_s,
        )

    async def _run(self, request: RunRequest) -> RunResult:
        """One request to the device worker; a fault of the harness's own gets one more try, with a new worker."""
        limit = (len(request.cases) + 1) * self.timeouts.run_s + self.timeouts.grace_s
        try:
            return await self._ask_device(request, limit)
        except HarnessError as error:
            self.notify(f"the device worker is started anew: {error}")
            await self._worker.kill()
        return await self._ask_device(request, limit)

    async def _ask_device(self, request: RunRequest, limit: float) -> RunResult:
        try:
            reply = await self._worker.ask(Request(0, run=request), limit)
        except StepTimeout:
            return RunResult(Status.TIMED_OUT, f"the device worker did not answer within {limit:g} s")
        except WorkerDied as error:
            return RunResult(Status.CRASHED, str(error))
        if reply.ran is None or (reply.ran.status is Status.MEASURED and not _complete(reply.ran, request)):
            raise HarnessError("the device worker gave no result for some case")
        return reply.ran

    def _outcome(self, result: RunResult, compiled: CompileResult, seconds: float) -> Outcome:
        timings = {timing.case: timing for timing in result.timings}
        measured = result.status is Status.MEASURED
        known = result.check_seconds + result.time_seconds
        return Outcome(
            status=result.status,
            reason=result.reason,
            static=compiled.static,
            cases=tuple(timings[case] for case in self._order) if measured else (),
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
        times = outcome.times_ms()
        for case in self.cases if outcome.status is Status.MEASURED else ():
            floor = self.believed_floor_ms(case)
            if times[case.id] < TOO_FAST * floor:
                reason = f"case {case.id}: {times[case.id]:.4g} ms, the device needs at least {floor:.4g} ms"
                return replace(outcome, status=Status.TOO_FAST, reason=reason)
        return outcome

    def floor_ms(self, case: Case) -> float:
        """Time that the case's bytes and operations need at the device's ceilings; 0 unknown."""
        return self.ceilings.floor_ms(*self.problem.work(case))

    def believed_floor_ms(self, case: Case) -> float:
        """The floor as a limit of belief: data that fits in L2 may come from there, tensor cores are faster."""
        moved, flops = self.problem.work(case)
        from_memory = moved if moved > 2 * self.facts.l2_bytes else 0
        return self.ceilings.floor_ms(from_memory, flops if self.problem.spec.rules.no_tensor_cores else 0)

    # -- the rest -------------------------------------------------------------------------------------

    async def profile(self, candidate: Candidate, case: str) -> ProfileResult:  # noqa: ARG002 - the protocol's
        """Hardware counters are not read; static metrics and the physical floor are what there is."""
        return ProfileResult("not_available", f"hardware counters of {self.device} are not read")

    async def submit(self, candidate: Candidate, board: str | None) -> SubmitResult:  # noqa: ARG002 - the protocol's
        """No leaderboard is attached."""
        return SubmitResult("no_board", "no leaderboard is attached")


def _refusal(source: str) -> str:
    """Why a source is not even compiled; empty when nothing is wrong."""
    size = len(source.encode())
    if size > MAX_SOURCE_BYTES:
        return f"the source has {size} bytes, {MAX_SOURCE_BYTES} are allowed"
    if found := _CONTROL.search(source):
        line = source.count("\n", 0, found.start()) + 1
        return f"line {line}: the source holds the control character {found[0]!r}"
    return ""


def cannot_run(static: StaticMetrics | None) -> str:
    """Why no block of a kernel fits on the device, known without using it; empty when all fit or it is unknown."""
    for kernel in static.kernels if static else ():
        if kernel.theoretical_occupancy == 0:
            return (
                f"no block of kernel {kernel.name!r} fits on a multiprocessor: {kernel.registers} registers a thread, "
                f"{kernel.threads_per_block} threads, "
                f"{(kernel.static_shared_bytes or 0) + (kernel.dynamic_shared_bytes or 0)} bytes of shared memory "
                f"(limited by {kernel.occupancy_limiter})"
            )
    return ""


def _complete(result: RunResult, request: RunRequest) -> bool:
    """Whether every case has its timing."""
    wanted = () if request.check_only else request.cases
    return {timing.case for timing in result.timings} == {case.case for case in wanted}


def _memory_share(role: Role, compile_workers: int) -> int:
    """Bytes that a child may take: the device worker most of the machine's, compile workers half of it together."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if role == "compile":
        return max(2 << 30, min(8 << 30, total // (2 * compile_workers)))
    return max(4 << 30, total * 3 // 4)
