"""The harness on this machine: a pool of compile workers and one device worker, each a child behind a sandbox."""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Final, Self

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, HarnessError, PlanError, UserError
from kernelwright.core.launch import BuildRequest, ResolvedPlan
from kernelwright.core.outcome import Check, Outcome, StaticMetrics, Status
from kernelwright.core.resolve import compiler_options, macros
from kernelwright.core.rules import MAX_SOURCE_BYTES
from kernelwright.core.screen import Screen
from kernelwright.devices.base import BuildResult, DuelResult, RunResult, TimingProtocol
from kernelwright.devices.cuda.neighbours import compute_processes
from kernelwright.devices.cuda.occupancy import with_occupancy
from kernelwright.harness.belief import believed_floor_ms, cannot_run, for_problem
from kernelwright.harness.child import Child
from kernelwright.harness.compile_pool import CompilePool
from kernelwright.harness.device_lane import DeviceLane, Timeouts
from kernelwright.harness.device_lock import silent, told_once
from kernelwright.harness.enclosure import told
from kernelwright.harness.excess import memory_share
from kernelwright.harness.neighbours import Neighbours
from kernelwright.harness.processes import import_roots, problem_files, readable_folders
from kernelwright.harness.profiler import Profiler
from kernelwright.harness.protocol import (
    AtHand,
    Built,
    CompileResult,
    ProfileResult,
    SanitizerResult,
    SubmitResult,
)
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.sanitizer import Sanitizer
from kernelwright.harness.scratch import Artifacts, Scratch, shared_cache
from kernelwright.harness.setup import DEVICES, Role, WorkerSetup
from kernelwright.harness.turns import Turns
from kernelwright.harness.wire import Ceilings, Hello
from kernelwright.problems.loader import Case, Problem, load_problem
from kernelwright.problems.rules import candidate_rules

PREPARE_TIMEOUT_S: Final = 900.0
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")

__all__ = ["LocalHarness", "Timeouts"]


class LocalHarness(AtHand):
    """Implements :class:`~kernelwright.harness.protocol.Harness`. Use as an async context manager, or start and close.

    ``checked`` runs every candidate once in the cpu device's checked mode, at the smallest case, before it is
    timed (by default on the cpu). ``ceilings`` stands in for what the device worker measures. ``notify`` hears
    messages for people. ``maker`` names another class that makes compiler and runner.
    ``compile_for`` makes a harness that only compiles, for a device that need not be here.
    ``strict`` refuses to start (UserError) where a child would lack a layer of the sandbox.
    """

    places = 2
    exclusive = True

    def __init__(
        self,
        problem: str | Path | Problem,
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
        strict: bool = False,
        compile_for: DeviceFacts | None = None,
    ) -> None:
        self.problem = problem if isinstance(problem, Problem) else load_problem(problem)
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
        self._strict = strict
        self._compile_for = compile_for
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
            greeting, compiler = await asyncio.gather(self._greeting(), compilers[0].start())
            self._hello = greeting if self._compile_for else _compiled_by(greeting, compiler.toolchain)
            if lacking := told(self.sandbox.missing):
                self.notify(lacking)
            self._lane = self._device_lane()
            self._sanitizer = Sanitizer(self._setup(self._scratch, "device", "sanitizer"))
            self._profiler = Profiler(self._setup(self._scratch, "device", "profiler"), arch=self.facts.arch)
            self._pool = CompilePool(compilers, self._artifacts, self.timeouts.compile_s, self._compiling)
        except BaseException:
            await self.close()
            raise

    async def _greeting(self) -> Hello:
        """Of the device worker, unless nothing will run here."""
        return Hello(facts=self._compile_for) if self._compile_for else await self._worker.start()

    def _device_lane(self) -> DeviceLane:
        return DeviceLane(
            worker=self._worker,
            facts=self.facts,
            ceilings=self.ceilings,
            problem=self.problem,
            cases=self.cases,
            order=self._order,
            slow=self._slow_cases,
            seed=self._seed,
            timing=self.timing,
            timeouts=self.timeouts,
            turns=self._on_device,
            notify=self.notify,
            waiting=told_once(self.notify),
            neighbours=self._neighbours(),
        )

    def _neighbours(self) -> Neighbours | None:
        """Watches for foreign processes on a GPU."""
        facts = self.facts
        if facts.kind != "cuda":
            return None
        return Neighbours(facts.name, partial(compute_processes, facts.uuid), notify=self.notify)

    async def close(self) -> None:
        """End the children and remove the scratch."""
        try:
            await asyncio.gather(*(child.kill() for child in self._children))
            self._children.clear()
        finally:
            if self._scratch is not None:
                self._scratch.close()

    def _child(self, scratch: Scratch, role: Role, name: str, start_timeout_s: float = 180.0) -> Child:
        child = Child(self._setup(scratch, role, name), start_timeout_s, strict=self._strict)
        self._children.append(child)
        return child

    def _setup(self, scratch: Scratch, role: Role, name: str) -> WorkerSetup:
        roots = import_roots(self._maker)
        return WorkerSetup(
            role=role,
            device=self.device,
            parent=os.getpid(),
            scratch=str(scratch.folder(name)),
            artifacts=str(scratch.artifacts),
            cache=str(self._cache),
            problem=str(self.problem.folder.resolve()),
            seed=self._seed,
            slow_cases=self._slow_cases,
            memory_bytes=memory_share(role, self._compile_workers),
            readable=readable_folders(
                roots, *(problem_files(self.problem.folder) if role == "device" else [])
            ),
            maker=self._maker,
        )

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
        """What the device can do at best for this problem: as given, else as measured when its worker started."""
        known = self._ceilings or (self._hello.ceilings if self._hello else Ceilings())
        return for_problem(known, self.problem)

    # -- compile --------------------------------------------------------------------------------------

    async def compile(self, candidate: Candidate) -> CompileResult:
        """Static refusals, resolve, compile (and the checked build beside it), static metrics."""
        if refusal := source_refusal(candidate.template.source):
            return CompileResult(
                candidate.id, status=Status.RULE_BROKEN, reason=refusal, check=Check.SOURCE_RULES
            )
        try:
            plans = self._lane.plans(candidate)
            request = self._build_request(candidate)
        except (PlanError, ExpressionError) as error:
            return CompileResult(
                candidate.id, status=Status.LAUNCH_FAILED, reason=str(error), check=Check.PLAN
            )
        modes = ("fast", "check") if self.checked else ("fast",)
        builds = await asyncio.gather(*(self._pool.build(replace(request, mode=mode)) for mode in modes))
        fast = builds[0]
        failed = next((build for build in builds if build.status is not None), None)
        static = self._complete(fast.static, list(plans.values()))
        if failed is None and (reason := cannot_run(static)):
            failed = BuildResult(status=Status.LAUNCH_FAILED, reason=reason, check=Check.LAUNCH_LIMITS)
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
            check=failed.check if failed else "",
        )

    def _compiling(self) -> contextlib.AbstractAsyncContextManager[None]:
        """On the cpu device compilers would disturb the clock: they wait while a candidate is timed."""
        return self._on_device.shared() if self.device == "cpu" else contextlib.nullcontext()

    def _build_request(self, candidate: Candidate) -> BuildRequest:
        return BuildRequest(
            source=candidate.template.source,
            macros=macros(candidate, self.facts),
            options=compiler_options(candidate),
            kernels=candidate.template.kernels,
            arch=self.facts.arch,
            rules=candidate_rules(self.problem),
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

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        """The checked run where there is one, every case checked and timed, trials for a contender.

        The device is exclusive throughout. Without a ``screen`` every candidate is a contender.
        Raises HarnessError also when the binary is not kept any more: compile again.
        """
        return await self._lane.benchmark(self._kept(Built(candidate, compiled)), screen)

    async def check(self, candidate: Candidate, compiled: CompileResult) -> RunResult:
        """Whether the candidate is right on the smallest cases and trials; nothing is timed.

        Raises HarnessError also when the binary is not kept any more: compile again. Raises PlanError or
        ExpressionError where the plan does not hold for sizes off the list.
        """
        return await self._lane.check(self._kept(Built(candidate, compiled)))

    async def try_all(self, candidate: Candidate, compiled: CompileResult) -> RunResult:
        """Every trial, for whoever judges the problem; nothing is timed. Raises HarnessError as :meth:`check`."""
        return await self._lane.try_all(self._kept(Built(candidate, compiled)))

    async def duel(
        self, challenger: Built, incumbent: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        """Two candidates in turn. Raises HarnessError also when a binary is not kept any more: compile again."""
        return await self._lane.duel(self._kept(challenger), self._kept(incumbent), rounds, cases)

    async def against_library(
        self, challenger: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        """A candidate and the vendor library in turn; NOT_RUN, with the reason, where there is no library.

        Raises HarnessError also when the binary is not kept any more: compile again.
        """
        if self.facts.kind != "cuda":
            reason = f"vendor libraries are asked on GPUs only, this is {self.device}"
            return DuelResult(Status.NOT_RUN, reason)
        if not self.problem.library_source:
            return DuelResult(Status.NOT_RUN, f"{self.problem.name} names no vendor library (library.py)")
        return await self._lane.duel(self._kept(challenger), None, rounds, cases)

    def _kept(self, built: Built) -> Built:
        if built.compiled.artifact not in self._artifacts:
            raise HarnessError(f"{built.candidate.id} has no binary (any more): compile it first")
        return built

    def floor_ms(self, case: Case) -> float:
        """Time that the case's bytes and operations need at the device's ceilings; 0 unknown."""
        return self.ceilings.floor_ms(*self.problem.work(case))

    def believed_floor_ms(self, case: Case) -> float:
        """The floor as a limit of belief."""
        return believed_floor_ms(self.problem, case, self.ceilings, self.facts)

    # -- the rest -------------------------------------------------------------------------------------

    async def profile(
        self, candidate: Candidate, case: str, *, compiled: CompileResult | None = None, level: int = 1
    ) -> ProfileResult:
        """Nsight Compute on one case; nobody else uses the device meanwhile.

        Raises UserError for a case that the problem does not have.
        """
        if case not in self._order:
            raise UserError(f"case {case!r}: {self.problem.spec.name} has {', '.join(self._order)}")
        if self.facts.kind != "cuda":
            return ProfileResult("not_available", f"{self.device} has no hardware counters")
        compiled = compiled or await self.compile(candidate)
        if compiled.status is not None:
            return ProfileResult("failed", compiled.reason)
        artifact, source = self._kept(Built(candidate, compiled)).compiled.artifact, ""
        if level > 1:
            build = await self._pool.build(replace(self._build_request(candidate), line_info=True))
            if build.status is None:
                artifact, source = build.artifact, candidate.template.source
        plan = self._lane.plans(candidate)[case]
        async with self._lane.exclusive():
            return await self._profiler.run(artifact, case, plan, source)

    async def sanitize(self, candidate: Candidate, compiled: CompileResult) -> SanitizerResult:
        """compute-sanitizer's tools on the smallest case and a size off the list.

        On the cpu its checked mode, on two cases, the trials and larger sizes. Raises HarnessError also when the
        binary is not kept any more: compile again.
        """
        built = self._kept(Built(candidate, compiled))
        if self.facts.kind != "cuda":
            return await self._lane.run_checked_mode(built)
        async with self._lane.untimed():
            return await self._sanitizer.run(compiled.artifact, self._lane.looks(candidate))

    async def submit(self, candidate: Candidate, board: str | None) -> SubmitResult:  # noqa: ARG002 - the protocol's
        """No leaderboard is attached."""
        return SubmitResult("no_board", "no leaderboard is attached")


def source_refusal(source: str) -> str:
    """Why a source is not even compiled; empty when nothing is wrong."""
    size = len(source.encode())
    if size > MAX_SOURCE_BYTES:
        return f"the source has {size} bytes, {MAX_SOURCE_BYTES} are allowed"
    if found := _CONTROL.search(source):
        line = source.count("\n", 0, found.start()) + 1
        return f"line {line}: the source holds the control character {found[0]!r}"
    return ""


def _compiled_by(greeting: Hello, compiler: str) -> Hello:
    """What the device worker says of itself, with what compiles for it: a GPU's knows its driver only."""
    facts = greeting.facts
    if facts is None or compiler in facts.toolchain:
        return greeting
    return replace(greeting, facts=replace(facts, toolchain=f"{compiler}, {facts.toolchain}"))
