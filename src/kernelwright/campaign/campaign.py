"""One campaign: baseline, search, confirmation.

What an experiment changes, it changes in :meth:`Campaign._learn` (the standing) and :meth:`Campaign._tell` (the
search): for a new experiment after it is in the memory, and for an old one when a campaign is resumed. Who leads is
decided in :mod:`kernelwright.campaign.succession`.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kernelwright.campaign.aim import Aim
from kernelwright.campaign.attaching import Attached
from kernelwright.campaign.baseline import BaselineFailed, failed, outcome_of
from kernelwright.campaign.binaries import Binaries
from kernelwright.campaign.budget import Budget
from kernelwright.campaign.events import Listener, Progress
from kernelwright.campaign.origins import baseline_work, experiment_of, origin
from kernelwright.campaign.places import Places
from kernelwright.campaign.policy import Policy, Work
from kernelwright.campaign.result import CampaignResult
from kernelwright.campaign.scene import Past, Scene
from kernelwright.campaign.scheduler import Scheduler, cancelled, unless
from kernelwright.campaign.seeing import Seeing
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.specialists import put_together
from kernelwright.campaign.standing import Entry, Standing, median_errors
from kernelwright.campaign.submitting import Submitter
from kernelwright.campaign.succession import Succession
from kernelwright.campaign.summary import summary
from kernelwright.campaign.twins import Twins
from kernelwright.campaign.writers import make_writing
from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import PlanError
from kernelwright.core.objective import Objective
from kernelwright.core.outcome import Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.generation.base import Proposal, Proposer
from kernelwright.generation.model import Model
from kernelwright.harness.protocol import CompileResult, Harness
from kernelwright.memory.records import Experiment, Milestone
from kernelwright.memory.store import Memory
from kernelwright.optimiser import make_optimiser
from kernelwright.problems.loader import Problem

__all__ = ["BaselineFailed", "Campaign"]

DISPATCH_EVERY: Final = 20
"""Experiments between two looks at whether putting specialists together would pay."""


@dataclass
class Campaign:
    """Runs or continues one campaign; :mod:`kernelwright.campaign.sitting` builds it."""

    id: str
    settings: Settings
    problem: Problem
    harness: Harness
    memory: Memory
    proposer: Proposer
    listener: Listener
    budget: Budget
    models: Mapping[str, Model] = field(default_factory=dict)
    board: Attached | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """The state that :meth:`_learn` moves on."""
        facts = self.harness.facts
        self.objective = Objective(self.settings.objective or self.problem.objective)
        self.standing = Standing(self.objective)
        self.policy = Policy(self.settings, lambda p: p.template.plan.space(facts), make_optimiser)
        self.candidates: dict[str, Candidate] = {}
        self.counts: dict[str, int] = {}
        self.baseline: Entry | None = None
        self.scene = Scene(
            campaign=self.id,
            harness=self.harness,
            memory=self.memory,
            standing=self.standing,
            budget=self.budget,
            listener=self.listener,
            binaries=Binaries(self.harness),
            candidates=self.candidates,
            trials=self.problem.every_trial(slow=self.settings.slow_cases, seed=self.settings.seed),
        )
        self.succession = Succession(self.scene, self._hail)
        self._hailed: Entry | None = None
        self._started = 0
        self._in_flight = 0
        self._all_tried = False
        self.asking = asyncio.Lock()
        self._news = asyncio.Event()
        self._cases = self.problem.cases(slow=self.settings.slow_cases)
        self.twins = Twins(facts, self.problem, self._cases, self._outcome)
        seeing = Seeing(self.scene, self.problem, self._cases)
        places = Places(self.scene) if self.board else None
        self.aim = Aim(self.settings.aim, self.standing, lambda: seeing.floors_ms, places)
        self.submitting = (
            Submitter(self.scene, self.board, places, checks=self.succession, heard=self._look_at_goal)
            if self.board and places
            else None
        )
        self.reached = False
        self.writing = make_writing(
            self.scene,
            self.settings,
            self.policy,
            self.models,
            objective=self.objective,
            problem=self.problem,
            seeing=seeing,
            aim=self.aim,
            take_in=self.take_in,
            wake=self.wake,
            asking=self.asking,
        )

    # -- the three parts ------------------------------------------------------------------------------

    async def run(self) -> CampaignResult:
        """Baseline (unless known), search within the budget, confirmation. Raises BaselineFailed."""
        baseline = self.baseline or await self._measure_baseline()
        await self.succession.begin(baseline)
        await self._take_proposals()
        self._look_at_goal()
        try:
            interrupted = await self._search(baseline)
            confirmation = None if interrupted else await self.succession.finish(baseline)
            if self.submitting is not None and not interrupted:
                await self.submitting.finish(winner=self.standing.incumbent if confirmation else None)
        finally:
            if self.submitting is not None:
                await self.submitting.close()
        state = "interrupted" if interrupted else "finished"
        self.memory.progress(self.id, state, self.budget.used)
        return summary(
            self.scene,
            self.settings,
            problem=self.problem,
            state=state,
            baseline=baseline,
            counts=self.counts,
            succession=self.succession,
            confirmation=confirmation,
            aim=self.aim,
            board=self.submitting.as_json() if self.submitting else None,
        )

    async def _search(self, baseline: Entry) -> bool:
        """Until something ends it; whether that was a person."""
        scheduler = Scheduler(
            harness=self.harness,
            compile_workers=self.settings.compile_workers,
            take=self._take,
            known=self._known,
            started=lambda work: self.listener.trying(work.candidate, work.why),
            done=self._done,
            between=self._between,
            screen=self._screen,
        )
        deadline = asyncio.get_running_loop().call_later(self.budget.left, self.stop.set)
        beside = [
            asyncio.create_task(self.writing.run(self.stop)),
            asyncio.create_task(scheduler.care(self.stop, lambda: not self._in_flight, lambda: self._news)),
        ]
        beside[1].add_done_callback(lambda _: self.stop.set())  # it goes on to the end, or failed
        if self.submitting is not None:
            self.submitting.start(baseline, self.stop)
        try:
            await scheduler.run(self.stop)
            return self.stop.is_set() and self.budget.left > 0 and not self.reached
        finally:
            self.stop.set()
            deadline.cancel()
            # Requests in flight are given up; a fault of ours in them is not hidden.
            errors = await cancelled(beside)
            await self.writing.seeing.close()
            for error in errors:
                raise error

    async def _measure_baseline(self) -> Entry:
        work = baseline_work(self.problem, self.harness.facts)
        self.take_in(work.proposal)
        self.listener.trying(work.candidate, work.why)
        outcome = await outcome_of(self.harness, work.candidate)
        self._started += 1
        await self._done(work, outcome)
        if self.baseline is None:
            self.memory.progress(self.id, "failed", self.budget.used)
            slow = self.settings.slow_cases
            raise failed(self.problem, self.harness.facts, outcome, slow_cases=slow)
        return self.baseline

    async def _take_proposals(self) -> None:
        while (proposal := await self.proposer.propose()) is not None:
            self.take_in(proposal)

    def take_in(self, proposal: Proposal) -> bool:
        """A template whose constraints leave nothing on this device is left out, and said so."""
        try:
            self.policy.add(proposal)
        except PlanError as error:
            self.listener.note(f"left out: {error}")
            return False
        self.writing.add(proposal)
        return True

    # -- what the scheduler calls ---------------------------------------------------------------------

    async def _take(self) -> Work | None:
        """Next work; waits while everything askable is in flight, ``None`` when nothing can come any more."""
        while not self.stop.is_set():
            news = self._news
            async with self.asking:
                if not self.budget.allows(self._started):
                    return None
                work = await self._ask()
                if work is not None:
                    return work
            if not self._in_flight and not self.writing.may_bring_more:
                if not self._all_tried:  # every lane comes here
                    self._all_tried = True
                    self.listener.note("every configuration of every template has been tried")
                return None
            await unless(self.stop, news.wait())
        return None

    async def _ask(self) -> Work | None:
        """A candidate that was never tried; the surrogate works in a thread, so that the lanes go on."""
        front, kept = self.standing.front, self.writing.reserved
        best = self.objective.cost(front.times) if front else None
        fresh = self.budget.short(self._started, kept) or (self.writing.may_bring_more and self._crowded)
        ask = partial(self.policy.next, best, fresh=fresh, unproven=self.writing.unproven)
        while (work := await asyncio.to_thread(ask)) is not None:
            if work.candidate.id not in self.candidates:
                self.candidates[work.candidate.id] = work.candidate
                self._started += 1
                self._in_flight += 1
                return work
        return None

    @property
    def _crowded(self) -> bool:
        """Whether the last quarter of a queue's places is left, for new templates: a trip takes long, they need not wait."""
        return not self.harness.exclusive and 4 * self._in_flight >= 3 * self.harness.places

    async def _between(self) -> None:
        """Before a candidate's turn on the device: what is due for those who lead or might."""
        await self.succession.between(self.stop.is_set)
        if self.submitting is not None and not self.stop.is_set():
            await self.submitting.clear()
        if not self.stop.is_set():
            await self.writing.seeing.look(stagnating=self.writing.stagnant)

    def _screen(self) -> Screen | None:
        leader = self.standing.incumbent
        return Screen(self.objective, leader.times) if leader else None

    def _known(self, work: Work, compiled: CompileResult) -> Outcome | None:
        self.scene.binaries.keep(work.candidate, compiled)
        if compiled.static is not None:  # helps the surrogate before the device has spoken
            self.policy.static(work.candidate, compiled.static)
        return self.twins.of(work.candidate, compiled.digest)

    async def _done(self, work: Work, outcome: Outcome) -> None:
        # In one go, so that what the memory has and what is known agree at any instant.
        number = self._record(work, outcome)
        self._learn(number, work.candidate, outcome)
        self.writing.learn(number, work.candidate, outcome, self._cost(outcome))
        self.writing.seeing.learned()
        async with self.asking:
            self._tell(work.candidate, outcome)
        self._in_flight = max(0, self._in_flight - 1)
        self.wake()
        self.listener.finished(work.candidate, outcome, self.progress())
        self._hail()
        if self.policy.finished % DISPATCH_EVERY == 0:
            async with self.asking:
                proposal = put_together(
                    self.problem, self.standing, self.policy, self.candidates, self._cases
                )
                if proposal is not None:
                    self.take_in(proposal)

    def wake(self) -> None:
        """Lanes that wait for work look again."""
        self._news.set()
        self._news = asyncio.Event()

    def _outcome(self, number: int) -> Outcome:
        return self.memory.experiment(self.id, str(number)).outcome

    def _cost(self, outcome: Outcome) -> float | None:
        return self.objective.cost(outcome.times_ms()) if outcome.status is Status.MEASURED else None

    def _hail(self) -> None:
        """Note a change of the incumbent, whatever brought it about."""
        leader, before = self.standing.incumbent, self._hailed
        if leader is not None and leader is not before:
            self._hailed = leader
            self.writing.leads(leader)
            self._lead(leader, before)
            if self.submitting is not None:
                self.submitting.news()
            self._look_at_goal()

    def _look_at_goal(self) -> None:
        """A goal that is reached ends the search; what leads is confirmed as ever."""
        if not self.reached and self.aim.reached(self.baseline):
            self.reached = True
            self.listener.note(f"goal reached: {self.aim.goal}")
            self.stop.set()

    def _lead(self, leader: Entry, before: Entry | None) -> None:
        """Note a new incumbent. It can be an old candidate: a leader can turn out to be faulty."""
        candidate, progress = self.candidates[leader.candidate], self.progress()
        strategy = f"{candidate}: {self.policy.arms[candidate.template.id].proposal.rationale}"
        if before is not None and before.candidate in self.standing.disqualified:
            strategy = f"{candidate}: the former leader was disqualified"
        elif before is not None and leader.score < before.score:
            strategy = f"{candidate}: the former leader sacrifices a case, as a new best time there shows"
        self.memory.milestone(
            Milestone(self.id, leader.number, progress.seconds, strategy, progress.ratio or 1.0)
        )
        self.listener.leads(candidate, progress)

    def _record(self, work: Work, outcome: Outcome) -> int:
        measured = outcome.status is Status.MEASURED
        eligible = measured and self.standing.eligible(outcome.times_ms(), median_errors(outcome))
        experiment = experiment_of(
            self.id, work, outcome, self.objective, seconds=self.budget.used, eligible=eligible
        )
        return self.memory.record(experiment, origin(work.proposal))

    def history(self) -> list[Past]:
        """All that is recorded, in the order in which it happened."""
        past = [
            Past(experiment.seconds, experiment, partial(self._relearn, experiment))
            for experiment in self.memory.experiments(self.id)
        ]
        return sorted(past + self.succession.recall(), key=lambda each: each.seconds)

    def recall(self) -> None:
        """Take all that is recorded into the state, in order, as if it had just happened."""
        for past in self.history():
            past.take_in()
        self._hailed, noted = self.standing.incumbent, self.memory.milestones(self.id)
        if self._hailed is not None and (not noted or noted[-1].experiment != self._hailed.number):
            # Killed between what made it the incumbent and its milestone.
            self._lead(self._hailed, None)

    def _relearn(self, experiment: Experiment) -> None:
        template = self.policy.arms[experiment.template].proposal.template
        candidate = Candidate(template, experiment.configuration)
        self._learn(experiment.number, candidate, experiment.outcome)
        self.writing.learn(experiment.number, candidate, experiment.outcome, experiment.cost_ms)
        self._tell(candidate, experiment.outcome)
        self._started += 1

    def _tell(self, candidate: Candidate, outcome: Outcome) -> None:
        """Let the policy learn from an experiment."""
        if self.policy.record(candidate, outcome, self._cost(outcome)):
            self.listener.note(f"{candidate.template.name}: paused after repeated compile failures")

    def _learn(self, number: int, candidate: Candidate, outcome: Outcome) -> None:
        """Take one recorded experiment into the standing."""
        self.candidates[candidate.id] = candidate
        self.counts[outcome.status] = self.counts.get(outcome.status, 0) + 1
        if outcome.status is not Status.MEASURED:
            return
        times = outcome.times_ms()
        twin = self.twins.add(number, candidate, outcome)
        self.standing.add(number, candidate.id, times, median_errors(outcome), twin=twin)
        if self.baseline is None:
            self.scene.protected.add(candidate.id)
            self.baseline = Entry(-self.objective.score(times), number, candidate.id, times)
            self.writing.began(self.baseline)

    def progress(self) -> Progress:
        """Standing right now."""
        leader, base = self.standing.incumbent, self.baseline
        time = self.objective.time(leader.times) if leader else None
        return Progress(
            seconds=self.budget.used,
            budget_seconds=self.budget.seconds,
            experiments=sum(self.counts.values()),
            measured=self.counts.get(Status.MEASURED, 0),
            incumbent=leader.candidate if leader else None,
            incumbent_ms=time,
            ratio=time / self.objective.time(base.times) if time and base else None,
            paused=tuple(self.policy.paused()),
        )
