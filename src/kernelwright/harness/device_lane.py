"""The device's side of the harness: one candidate, or two in turn, with the device worker and nobody else."""

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, HarnessError, PlanError, ProblemError, WorkerDied
from kernelwright.core.launch import ResolvedPlan
from kernelwright.core.outcome import KILLED, Check, Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.devices.base import (
    CaseRequest,
    Contestant,
    DuelRequest,
    DuelResult,
    RunRequest,
    RunResult,
    TimingProtocol,
)
from kernelwright.harness.belief import believe
from kernelwright.harness.child import Child, ChildDied, StepTimeout
from kernelwright.harness.device_lock import device_lock
from kernelwright.harness.neighbours import Neighbours
from kernelwright.harness.protocol import Built, CompileResult, SanitizerResult
from kernelwright.harness.sanitizer import checked_mode_result
from kernelwright.harness.sanitizer_job import Look
from kernelwright.harness.turns import Turns
from kernelwright.harness.wire import Ceilings, Reply, Request
from kernelwright.problems.case import Case, Trial
from kernelwright.problems.loader import Problem
from kernelwright.problems.plans import plans_for

MOST_WATCHED: Final = 2**26
"""Bytes and operations of all that the checked mode watches beyond the smallest cases: seconds."""
UNWATCHED: Final = "not watched at a larger size: the checked mode did not end in time, or cannot run it"


@dataclass(frozen=True)
class Timeouts:
    """Seconds for each step. ``run_s`` bounds one case (the device's own watchdog); the rest is the parent's."""

    compile_s: float = 60.0
    run_s: float = 30.0
    grace_s: float = 90.0


@dataclass(frozen=True)
class DeviceLane:
    """Requests to a started device worker. ``order`` is the problem's order of the cases, ``cases`` cheapest first."""

    worker: Child
    facts: DeviceFacts
    ceilings: Ceilings
    problem: Problem
    cases: Sequence[Case]
    order: Sequence[str]
    slow: bool
    seed: int
    timing: TimingProtocol
    timeouts: Timeouts
    turns: Turns
    notify: Callable[[str], None]
    waiting: Callable[[str], None]
    """Hears that another process has the device."""
    neighbours: Neighbours | None = None

    # -- one candidate --------------------------------------------------------------------------------

    async def benchmark(self, built: Built, screen: Screen | None) -> Outcome:
        """See :meth:`~kernelwright.harness.local.LocalHarness.benchmark`."""
        compiled, plans = built.compiled, self.plans(built.candidate)
        async with self.exclusive():
            start = monotonic()
            result = RunResult(Status.MEASURED)
            if compiled.check_artifact:
                first = self._case_requests(self.cases[:1], plans)
                result = await self._run(self._request(compiled.check_artifact, first, check_only=True))
            if result.status is Status.MEASURED:
                every = self._case_requests(self.cases, plans, screen)
                result = joined(result, await self._run(self._request(compiled.artifact, every)))
            outcome = self._outcome(result, compiled, monotonic() - start)
            if outcome.status is Status.MEASURED and (not screen or screen.is_contender(outcome.times_ms())):
                ahead = not screen or screen.is_ahead(outcome.times_ms())
                result = joined(result, await self._try(built, large=ahead))
                outcome = self._outcome(result, compiled, monotonic() - start)
        return outcome

    async def _try(self, built: Built, *, large: bool) -> RunResult:
        """The trials: other inputs and other sizes; the large ones too for who is about to lead, or checked in full."""
        result = await self._tried(built, self.problem.trials(slow=self.slow))
        if not large or result.status is not Status.MEASURED:
            return result
        trials = self.problem.large_trials(slow=self.slow, seed=self.seed)
        result = joined(result, await self._tried(built, [trial for trial in trials if not trial.told]))
        if result.status is not Status.MEASURED:
            return result
        secret = [trial for trial in trials if trial.told]
        return joined(result, untold(await self._tried(built, secret), secret))

    async def _tried(self, built: Built, trials: Sequence[Trial]) -> RunResult:
        """Trials from a freshly loaded binary."""
        if not trials:
            return RunResult(Status.MEASURED)
        try:
            cases = self._trial_requests(built.candidate, trials)
        except (PlanError, ExpressionError) as error:
            reason = f"the plan does not hold for sizes off the list: {error}"
            return RunResult(Status.LAUNCH_FAILED, reason, check=Check.OTHER_SIZES)
        return await self._run(self._request(built.compiled.artifact, cases, check_only=True))

    def _trial_requests(self, candidate: Candidate, trials: Sequence[Trial]) -> tuple[CaseRequest, ...]:
        plans = self._plans(candidate, trials)
        return tuple(
            CaseRequest(trial.id, plans[trial.id], self._floor_ms(trial), check=trial.check)
            for trial in trials
        )

    async def run_checked_mode(self, built: Built) -> SanitizerResult:
        """The checked build on what :meth:`check` looks at, and on larger sizes: plans may have thresholds."""
        if not built.compiled.check_artifact:
            return SanitizerResult(Status.NOT_RUN, f"{self.facts.name} has no checked mode")
        start = monotonic()
        result = await self.check(built)
        for case in self._watched_larger():
            if result.status is Status.MEASURED:
                result = joined(result, await self._watch(built, case))
        return checked_mode_result(result, monotonic() - start)

    def _watched_larger(self) -> Iterator[Case]:
        """Sizes that the seed draws, the largest first, as far as affordable; those of the list where none is drawn."""
        drawn = [t for t in self.problem.large_trials(slow=self.slow, seed=self.seed) if t.told]
        work = {case: sum(self.problem.work(case)) for case in drawn or self.cases[2:]}
        left = MOST_WATCHED
        for case in sorted(work, key=work.__getitem__, reverse=True):
            if work[case] <= left:
                left -= work[case]
                yield case

    async def _watch(self, built: Built, case: Case) -> RunResult:
        """The checked build on a larger case. It is slow by itself: what does not end in time is no failure, but told."""
        try:
            plans = self._plans(built.candidate, [case])
        except (PlanError, ExpressionError):  # the trials themselves tell that
            return RunResult(Status.MEASURED)
        cases = self._case_requests([case], plans)
        async with self.exclusive():
            result = await self._run(self._request(built.compiled.check_artifact, cases, check_only=True))
        if result.status in {Status.NOT_RUN, Status.TIMED_OUT}:
            return RunResult(Status.MEASURED, findings=(UNWATCHED,))
        return untold(result, [case]) if isinstance(case, Trial) else result

    async def check(self, built: Built) -> RunResult:
        """Times nothing: the two smallest cases, and the trials of no more work than those, in the checked mode if any."""
        first = self.cases[:2]
        most = max(sum(self.problem.work(case)) for case in first)
        trials = [t for t in self.problem.trials(slow=self.slow) if sum(self.problem.work(t)) <= most]
        artifact = built.compiled.check_artifact or built.compiled.artifact
        async with self.exclusive():
            cases = self._case_requests(first, self.plans(built.candidate))
            cases += self._trial_requests(built.candidate, trials)
            return await self._run(self._request(artifact, cases, check_only=True))

    async def try_all(self, built: Built) -> RunResult:
        """Every trial, nothing timed; sizes that nobody is told have their names in it."""
        async with self.exclusive():
            return await self._tried(built, self.problem.every_trial(slow=self.slow, seed=self.seed))

    def looks(self, candidate: Candidate) -> tuple[Look, ...]:
        """What slow tools watch: the smallest case, and sizes off the list, where a bound forgotten shows itself.

        Cases are often multiples of a tile. Of the other sizes the largest of no more work is taken.
        """
        case = self.cases[0]
        found = self._looks_at(candidate, case)
        trials = [t for t in self.problem.trials(slow=self.slow) if t.check is Check.OTHER_SIZES]
        work = {trial.id: sum(self.problem.work(trial)) for trial in trials}
        trials = [trial for trial in trials if work[trial.id] <= sum(self.problem.work(case))]
        if trials:
            other = max(trials, key=lambda trial: work[trial.id])
            with contextlib.suppress(PlanError, ExpressionError):  # the trials themselves tell that
                found += self._looks_at(candidate, other)
        return tuple(found)

    def _looks_at(self, candidate: Candidate, case: Case) -> list[Look]:
        return [Look(case.id, plan) for plan in self._plans(candidate, [case]).values()]

    def plans(self, candidate: Candidate) -> dict[str, ResolvedPlan]:
        """The plan for every case. Raises PlanError or ExpressionError."""
        return self._plans(candidate, self.cases)

    def _plans(self, candidate: Candidate, cases: Sequence[Case]) -> dict[str, ResolvedPlan]:
        return plans_for(candidate, cases, self.facts, self.problem.signature)

    def _case_requests(
        self, cases: Sequence[Case], plans: Mapping[str, ResolvedPlan], screen: Screen | None = None
    ) -> tuple[CaseRequest, ...]:
        return tuple(
            CaseRequest(
                case.id,
                plans[case.id],
                self._floor_ms(case),
                screen.loser_above_ms(case.id) if screen else float("inf"),
            )
            for case in cases
        )

    def _floor_ms(self, case: Case) -> float:
        return self.ceilings.floor_ms(*self.problem.work(case))

    def _request(
        self, artifact: str, cases: tuple[CaseRequest, ...], *, check_only: bool = False
    ) -> RunRequest:
        return RunRequest(artifact, cases, self.timing, check_only, self.timeouts.run_s)

    def _outcome(self, result: RunResult, compiled: CompileResult, seconds: float) -> Outcome:
        timings = {timing.case: timing for timing in result.timings}
        measured = result.status is Status.MEASURED
        known = result.check_seconds + result.time_seconds
        outcome = Outcome(
            status=result.status,
            reason=result.reason,
            static=compiled.static,
            cases=tuple(timings[case] for case in self.order) if measured else (),
            artifact_digest=compiled.digest,
            seconds={
                "compile": compiled.seconds,
                "check": result.check_seconds,
                "time": result.time_seconds,
                "overhead": max(0.0, seconds - known),
            },
            findings=result.findings,
            check=result.check,
        )
        return believe(outcome, self.problem, self.cases, self.ceilings, self.facts)

    # -- two candidates -------------------------------------------------------------------------------

    async def duel(
        self, challenger: Built, incumbent: Built | None, rounds: int, cases: Collection[str] | None
    ) -> DuelResult:
        """See :meth:`~kernelwright.harness.local.LocalHarness.duel`. ``None`` is the vendor library."""
        chosen = [case for case in self.cases if cases is None or case.id in cases]
        sides = [self._contestant(built, chosen) for built in (challenger, incumbent)]
        request = DuelRequest(sides[0], sides[1], rounds, self.timing, self.timeouts.run_s)
        async with self.exclusive():
            reply = await self._ask_again(Request(0, duel=request), 2 * self._limit(len(chosen)))
        if isinstance(reply, RunResult):
            return DuelResult(reply.status, reply.reason, reply.check)
        if reply.dueled is None:
            raise HarnessError("the device worker gave no result of a duel")
        return reply.dueled

    def _contestant(self, built: Built | None, cases: Sequence[Case]) -> Contestant:
        if built is not None:
            plans = self.plans(built.candidate)
            return Contestant(built.compiled.artifact, self._case_requests(cases, plans))
        # A library may add in whatever order it likes.
        plans = {case.id: ResolvedPlan((), atomic_noise=True) for case in cases}
        return Contestant("", self._case_requests(cases, plans))

    # -- the worker -----------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Nobody else, in this process or on this machine, uses the device."""
        async with self.turns.alone(), device_lock(self.facts.uuid, waiting=self.waiting):
            if self.neighbours is not None:
                await self.neighbours.wait()
            yield

    @contextlib.asynccontextmanager
    async def untimed(self) -> AsyncIterator[None]:
        """Others may use the device too, but nobody times anything."""
        async with self.turns.shared(), device_lock(self.facts.uuid, shared=True, waiting=self.waiting):
            yield

    def _limit(self, cases: int) -> float:
        return (cases + 1) * self.timeouts.run_s + self.timeouts.grace_s

    async def _run(self, request: RunRequest) -> RunResult:
        reply = await self._ask_again(Request(0, run=request), self._limit(len(request.cases)))
        if isinstance(reply, RunResult):
            return reply
        if reply.ran is None or (reply.ran.status is Status.MEASURED and not _complete(reply.ran, request)):
            raise HarnessError("the device worker gave no result for some case")
        return reply.ran

    async def _ask_again(self, request: Request, limit: float) -> Reply | RunResult:
        """One request; a fault of the harness's own, or a kill, gets one more try, with a new worker."""
        try:
            return await self._ask(request, limit)
        except HarnessError as error:
            self.notify(f"the device worker is started anew: {error}")
            await self.worker.kill()
        try:
            return await self._ask(request, limit)
        except ChildDied as error:
            if not error.from_outside:
                raise ProblemError(
                    f"{self.problem.folder / 'reference.py'}: while it computed right answers {error}: return values and"
                    " leave the process alone (no _exit, no signals, less memory)"
                ) from None
            reason = f"{error} once more: something outside ends it, a person or a lack of memory"
            return RunResult(Status.NOT_RUN, reason, check=KILLED)

    async def _ask(self, request: Request, limit: float) -> Reply | RunResult:
        """The reply, or what became of the candidate when the worker did not live to give one.

        Raises ChildDied for what no candidate does: it was ended from outside, or by the problem's own reference.
        """
        try:
            return await self.worker.ask(request, limit)
        except StepTimeout:
            reason = f"the device worker did not answer within {limit:g} s"
            return RunResult(Status.TIMED_OUT, reason, check=Check.RUN_LIMITS)
        except WorkerDied as error:
            if isinstance(error, ChildDied) and (error.from_outside or error.in_reference):
                raise
            return RunResult(Status.CRASHED, str(error), check=Check.CRASH)


def untold(result: RunResult, trials: Sequence[Trial]) -> RunResult:
    """A result of trials without what tells their sizes: reasons go to whoever writes candidates, prints do too."""
    if result.status in {Status.MEASURED, Status.NOT_RUN}:
        return replace(result, findings=(), errors=())
    named = [trial for trial in trials if trial.id in result.reason]
    told = max(named, key=lambda trial: len(trial.id)).told if named else "large"
    reason = f"{result.status} for a size off the list that is not told, {told}: be right for every size"
    return replace(result, reason=reason, findings=())


def joined(first: RunResult, second: RunResult) -> RunResult:
    """Two requests about one candidate as one result: the later verdict, the timings of whichever has them."""
    return replace(
        second,
        timings=second.timings or (first.timings if second.status is Status.MEASURED else ()),
        findings=tuple(dict.fromkeys(first.findings + second.findings)),
        errors=first.errors + second.errors,
        check_seconds=first.check_seconds + second.check_seconds,
        time_seconds=first.time_seconds + second.time_seconds,
    )


def _complete(result: RunResult, request: RunRequest) -> bool:
    """Whether every case has its timing."""
    wanted = () if request.check_only else request.cases
    return {timing.case for timing in result.timings} == {case.case for case in wanted}
