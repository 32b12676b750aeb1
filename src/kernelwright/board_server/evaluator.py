"""One device's evaluator: takes what waits, in order, and has the harness measure it."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Final, Protocol

from kernelwright.board_server.records import LIBRARY, Listing, Submission, Verdict
from kernelwright.board_server.store import Store
from kernelwright.board_server.text import plain
from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, HarnessError, PlanError, UserError
from kernelwright.core.outcome import KILLED, CaseTiming, Outcome, Status
from kernelwright.core.plan_faults import placed
from kernelwright.core.space import SearchSpace
from kernelwright.devices.base import DuelResult, RunResult
from kernelwright.harness.protocol import Built, CompileResult
from kernelwright.leaderboard.base import CaseTime, Mode, State

AHEAD: Final = 12
"""Submissions that are compiled while another one is timed."""
ATTEMPTS: Final = 3
"""Evaluations of one submission that may end without a verdict: by a kill of the server, or a harness that fails."""
HARNESSES: Final = 3
"""Problems whose harness is kept open."""
RETRY_S: Final = 30.0
LIBRARY_ROUNDS: Final = 8
MAX_REASON: Final = 2000
MAX_SPACE: Final = 200_000
"""Combinations of a template whose configuration is completed here."""
PROBLEM_AT_FAULT: Final = "the board's problem is at fault, not the kernel: whoever serves it has been told"
_FOLDERS: Final = re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+(?=[\w.+@-])")
_STATES: Final = {
    Status.MEASURED: State.PASSED,
    Status.TIMED_OUT: State.TIMED_OUT,
    Status.RULE_BROKEN: State.REJECTED,
    Status.TOO_FAST: State.REJECTED,
}


class Bench(Protocol):
    """What of a started :class:`~kernelwright.harness.local.LocalHarness` a board needs."""

    @property
    def facts(self) -> DeviceFacts:
        """Facts of the device."""
        ...

    async def compile(self, candidate: Candidate) -> CompileResult:
        """Any number at once."""
        ...

    async def check(self, candidate: Candidate, compiled: CompileResult) -> RunResult:
        """Small cases, nothing timed."""
        ...

    async def benchmark(self, candidate: Candidate, compiled: CompileResult) -> Outcome:
        """All cases."""
        ...

    async def against_library(self, challenger: Built, rounds: int) -> DuelResult:
        """A candidate in turn with the vendor library that the problem names."""
        ...

    async def close(self) -> None:
        """End the children."""
        ...


OpenBench = Callable[[Listing, str, int], Awaitable[Bench]]
"""Starts a harness for a problem, a device and the secret seed."""


class NotReady(HarnessError):  # noqa: N818 - reads as what happened
    """No harness could be started: nobody's submission is at fault."""


class Evaluator:
    """Measures the submissions for one device, one at a time; the next ones are compiled meanwhile."""

    def __init__(
        self,
        store: Store,
        device: str,
        listings: Mapping[str, Listing],
        open_bench: OpenBench,
        notify: Callable[[str], None],
    ) -> None:
        self.device = device
        self.facts: DeviceFacts | None = None
        self._store = store
        self._listings = listings
        self._open_bench = open_bench
        self._notify = notify
        self._work = asyncio.Event()
        self._benches: OrderedDict[str, Bench] = OrderedDict()
        self._builds: dict[int, asyncio.Task[tuple[Candidate, CompileResult]]] = {}

    def wake(self) -> None:
        """Something waits."""
        self._work.set()

    async def prepare(self) -> DeviceFacts:
        """Start with the first problem, so that a device that cannot be used is known at once.

        Raises HarnessError, and UserError where the device is another one than in the board's file.
        """
        try:
            bench = await self._bench(next(iter(self._listings)))
        except NotReady as error:
            raise (error.__cause__ or error) from None
        self._store.adopt_device(self.device, bench.facts.model)
        self.facts = bench.facts
        return bench.facts

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._work.clear()
            waiting = self._store.waiting(self.device, tuple(self._listings), AHEAD)
            if waiting:
                await self._next(waiting)
            else:
                await self._work.wait()

    async def _next(self, waiting: Sequence[Submission]) -> None:
        """The first one; whatever goes wrong in it ends as its state."""
        first = waiting[0]
        if first.attempts >= ATTEMPTS:
            reason = f"its evaluation ended {ATTEMPTS} times without a verdict, the board's harness with it"
            self._store.end(first, Verdict(State.FAILED, reason))
            return
        self._store.begin(first)
        work = asyncio.create_task(self._verdict(waiting))
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            work.cancel()
            self._store.again(first, counted=False)
            raise
        error = work.exception()
        if error is None:
            self._store.end(first, work.result())
        else:
            await self._failed(first, error)

    async def _failed(self, submission: Submission, error: BaseException) -> None:
        reason = plain(str(error), MAX_REASON)
        if isinstance(error, PlanError | ExpressionError):
            self._store.end(submission, Verdict(State.FAILED, without_folders(reason)))
            return
        self._notify(f"{self.device}: {submission.id}: {type(error).__name__}: {reason}")
        if isinstance(error, UserError):  # of the problem's own files
            self._store.end(submission, Verdict(State.FAILED, PROBLEM_AT_FAULT))
            return
        await self.close()
        if isinstance(error, HarnessError):
            self._store.again(submission, counted=not isinstance(error, NotReady))
        else:
            verdict = Verdict(
                State.FAILED, f"a fault of the board ({type(error).__name__}), not of the kernel"
            )
            self._store.end(submission, verdict)
        if isinstance(error, NotReady):
            await asyncio.sleep(RETRY_S)

    async def _verdict(self, waiting: Sequence[Submission]) -> Verdict:
        first = waiting[0]
        listing = self._listings[first.draft.problem]
        bench = await self._bench(first.draft.problem)
        if first.draft.user == LIBRARY:
            return await library_verdict(bench, listing)
        for each in waiting:
            if (
                each.draft.user != LIBRARY
                and each.draft.problem == first.draft.problem
                and each.number not in self._builds
            ):
                self._builds[each.number] = asyncio.create_task(_built(bench, each))
        candidate, compiled = await self._builds.pop(first.number)
        if compiled.status is not None:
            return _verdict(compiled.status, compiled.reason)
        if first.draft.mode is Mode.TEST:
            checked = await bench.check(candidate, compiled)
            return _verdict(checked.status, checked.reason, checked.check)
        return _judged(await bench.benchmark(candidate, compiled), listing, first.draft.mode)

    async def _bench(self, problem: str) -> Bench:
        """The problem's harness; few are kept open."""
        if problem not in self._benches:
            await self._drop_builds()  # they belong to another problem's harness
            while len(self._benches) >= HARNESSES:
                await self._benches.popitem(last=False)[1].close()
            listing = self._listings[problem]
            try:
                bench = await self._open_bench(listing, self.device, self._store.adopt(listing))
            except (UserError, HarnessError) as error:
                raise NotReady(str(error)) from error
            self._benches[problem] = bench
        self._benches.move_to_end(problem)
        return self._benches[problem]

    async def _drop_builds(self) -> None:
        builds = list(self._builds.values())
        self._builds.clear()
        for build in builds:
            build.cancel()
        await asyncio.gather(*builds, return_exceptions=True)

    async def close(self) -> None:
        """End the harnesses."""
        await self._drop_builds()
        while self._benches:
            await self._benches.popitem()[1].close()


async def library_verdict(bench: Bench, listing: Listing) -> Verdict:
    """Checked and timed like everybody, in turn with the baseline, whose times are not kept."""
    problem = listing.problem
    template = parse_template(problem.baseline_source, "baseline.cu")
    baseline = Candidate(template, await asyncio.to_thread(completed, template, bench.facts, Configuration()))
    compiled = await bench.compile(baseline)
    if compiled.status is not None:
        return _verdict(compiled.status, compiled.reason)
    found = await bench.against_library(Built(baseline, compiled), LIBRARY_ROUNDS)
    if found.status is not Status.MEASURED:
        return _verdict(found.status, found.reason, found.check)
    samples = {case.case: case for case in found.cases}
    timings = [
        CaseTiming(name, samples[name].incumbent_ms, samples[name].method, 0.0) for name in listing.cases
    ]
    times = {timing.case: timing.median_ms for timing in timings}
    cases = tuple(_case_time(listing, timing) for timing in timings)
    return Verdict(State.PASSED, "", listing.score_s(times), cases)


async def _built(bench: Bench, submission: Submission) -> tuple[Candidate, CompileResult]:
    template = parse_template(submission.draft.source, submission.draft.file)
    given = Configuration.from_key(submission.draft.configuration)
    candidate = Candidate(template, await asyncio.to_thread(completed, template, bench.facts, given))
    return candidate, await bench.compile(candidate)


def completed(template: Template, facts: DeviceFacts, given: Configuration) -> Configuration:
    """The configuration with its values as the template writes them; missing ones are the first valid ones.

    Raises PlanError.
    """
    with placed(template):
        return _completed(template, template.plan.space(facts), given)


def _completed(template: Template, space: SearchSpace, given: Configuration) -> Configuration:
    if set(given) == set(space.names):
        if violated := space.violated(given):
            raise PlanError(f"the configuration is not valid: {violated}", template.name)
        return space.configuration_of(space.row_of(given))
    if odd := sorted(set(given) - set(space.names)):
        raise PlanError(f"the configuration names {odd[0]!r}, which is no tunable of it", template.name)
    if space.cartesian > MAX_SPACE:
        raise PlanError("there are too many configurations: give a value for every tunable", template.name)
    for index in range(len(space)):
        configuration = space.configuration(index)
        if all(configuration[name] == value for name, value in given.items()):
            return configuration
    raise PlanError("no valid configuration has these values", template.name)


def _judged(outcome: Outcome, listing: Listing, mode: Mode) -> Verdict:
    if outcome.status is not Status.MEASURED:
        return _verdict(outcome.status, outcome.reason, outcome.check)
    cases = tuple(_case_time(listing, timing) for timing in outcome.cases)
    score = listing.score_s(outcome.times_ms()) if mode is Mode.RANKED else None
    return Verdict(State.PASSED, "", score, cases)


def _verdict(status: Status, reason: str, check: str = "") -> Verdict:
    """What a submitter is told. Raises HarnessError where a kill of the worker left nothing to tell."""
    if check == KILLED:
        raise HarnessError(reason)
    state = _STATES.get(status, State.FAILED)
    told = "" if state is State.PASSED else plain(f"{status}: {without_folders(reason)}", MAX_REASON)
    return Verdict(state, told)


def without_folders(text: str) -> str:
    """With the names of files, but without the folders of this machine that they lie in."""
    return _FOLDERS.sub(lambda found: "" if Path("/", found[0].split("/")[1]).is_dir() else found[0], text)


def _case_time(listing: Listing, timing: CaseTiming) -> CaseTime:
    samples = [sample / 1e3 for sample in timing.samples_ms]
    return CaseTime(
        case=dict(listing.cases[timing.case].sizes),
        mean_s=timing.median_ms / 1e3,
        std_s=stdev(samples) if len(samples) > 1 else None,
        best_s=min(samples),
        runs=len(samples),
    )
