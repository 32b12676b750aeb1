"""The side of a campaign where structure is written: it asks models while experiments are in flight.

The device never waits for a model: requests run beside the scheduler, and a template that comes in gets its first
configuration tried next and then a short numeric budget like any other. A round is asked for when structure is
expected to gain more than the numbers that are left, learned from what requests have brought so far.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from math import inf, log
from typing import Final

from kernelwright.campaign.aim import Aim
from kernelwright.campaign.policy import Policy, Work
from kernelwright.campaign.scene import Scene
from kernelwright.campaign.scheduler import either, unless
from kernelwright.campaign.seeing import Seeing
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.standing import Entry
from kernelwright.campaign.strongest import strongest_ms
from kernelwright.core.candidate import Candidate, Template
from kernelwright.core.objective import Objective
from kernelwright.core.outcome import Check, Outcome, Status
from kernelwright.generation.author import Author, Broken, Prompt, Round
from kernelwright.generation.base import Proposal
from kernelwright.generation.islands import Choice, Islands
from kernelwright.generation.ledger import Asked
from kernelwright.generation.notebook import Notebook, TemplateNotes
from kernelwright.generation.prompt import Ask, PromptBuilder
from kernelwright.generation.source_text import Fingerprint, fingerprint, without_comments

PRIOR_GAIN: Final = 0.15
"""Log gain that a request is taken to bring before any has: models pay early."""
NEWS: Final = 0.99
"""Share of the best cost so far that is a gain, and not the luck of one more."""
STAGNANT: Final = 40
"""Experiments without a new incumbent, or one who might become it, after which exploration is asked for; half of them while a place is missing."""
REST_S: Final = 2.0
"""Pause after a request that failed, so that a broken model does not spin."""
FAILURES_TO_STOP: Final = 12
STOPS: Final = 3
"""Rounds that said stop, one after the other, after which no model is asked any more."""
PARENTS: Final = 2
MOST_TOLD: Final = 160
"""Characters of a reason in a note."""


@dataclass
class Writing:
    """Implements :class:`~kernelwright.generation.author.Desk` on a campaign's state.

    ``take_in`` adds a proposal to the search; ``seeing`` knows bottlenecks and floors.
    """

    scene: Scene
    settings: Settings
    policy: Policy
    objective: Objective
    prompts: PromptBuilder
    take_in: Callable[[Proposal], bool]
    wake: Callable[[], None]
    asking: asyncio.Lock
    """Held while a thread works with the policy."""
    seeing: Seeing
    aim: Aim
    notebook: Notebook = field(default_factory=Notebook)
    islands: Islands = field(default_factory=Islands)
    author: Author | None = None
    rounds: int = 0
    busy: bool = False
    stopped: str = ""
    _baseline: Entry | None = None
    _choice: Choice | None = None
    _found: Sequence[str] = ()
    _unfinished: Asked | None = None
    _waits: bool = False
    _fingerprints: dict[str, tuple[str, Fingerprint]] = field(default_factory=dict)
    """By template, with its name."""
    _waiting: dict[str, asyncio.Future[Outcome]] = field(default_factory=dict)
    _best: dict[str, Candidate] = field(default_factory=dict)
    """By template: looked up for every prompt, however many candidates there are."""
    _judged: set[str] = field(default_factory=set)
    _fastest: float = inf
    _last_gain: int = 0
    _stops: int = 0
    _failures: int = 0

    # -- what the campaign tells ----------------------------------------------------------------------

    def add(self, proposal: Proposal) -> None:
        """A template came into the search, from whomever."""
        front = self.scene.standing.front
        self.notebook.add(proposal, self.objective.cost(front.times) if front else inf)
        self._tell_apart(proposal.template)

    def learn(self, number: int, candidate: Candidate, outcome: Outcome, cost_ms: float | None) -> None:
        """An experiment ended, now or in an earlier sitting."""
        seen = self.notebook.learn(candidate, outcome, cost_ms, number)
        waiting = self._waiting.pop(candidate.id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)
        notes = self.notebook.templates[candidate.template.id]
        if notes.best is seen:
            self._best[candidate.template.id] = candidate
        if cost_ms is not None and cost_ms < NEWS * self._fastest:
            self._fastest, self._last_gain = cost_ms, self.notebook.experiments
        if notes.tried >= self.settings.young_budget:
            self._judge(candidate.template.id, notes)

    def leads(self, leader: Entry) -> None:
        """There is a new incumbent."""
        self._fastest = min(self._fastest, self.objective.cost(leader.times))
        self._last_gain = self.notebook.experiments

    def began(self, baseline: Entry) -> None:
        """The baseline is measured: prompts can be written."""
        self._baseline = baseline

    def recall(self, asked: Asked) -> None:
        """A request of an earlier sitting; what the last reply proposed may not all have been tried."""
        if asked.purpose == "structure":
            self.rounds += 1
            self._unfinished = asked if asked.reply is not None else None
            self.busy = not asked.reason  # unless it failed, templates of it may still come

    def recall_waiting(self) -> None:
        """A round of an earlier sitting whose reply never came: it is asked for again, wanted by now or not.

        Somebody may be at work on the reply, or has it ready; what its proposals need is not spent on numbers.
        """
        self._waits = self.busy = True

    # -- the loop -------------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event) -> None:
        """Rounds of requests until the campaign stops, the money is spent or the models see nothing more.

        What goes wrong here ends the campaign at once: its lanes would wait for templates that cannot come.
        """
        try:
            await self._rounds(stop)
        except Exception:
            stop.set()
            raise

    async def _rounds(self, stop: asyncio.Event) -> None:
        if self._unfinished is not None and self.author is not None:
            self.busy = True
            await unless(stop, self.author.take_up(self._unfinished))
        while not stop.is_set() and self.author is not None:
            if reason := self._over():
                self.stopped = reason
                if not self.author.is_over:  # each was told when it was
                    self.scene.listener.note(f"no model is asked any more: {reason}")
                break
            async with self.asking:
                wanted = await asyncio.to_thread(self._prepared)
            if not wanted:
                self._rest()
                await either(stop, REST_S)
                continue
            self.busy = True
            try:
                done = await unless(stop, self.author.round(self.settings.proposals))
            finally:
                self._rest()
            if done is not None:
                await self._after(done, stop)
        self.busy = False
        self.wake()

    def _rest(self) -> None:
        if self.busy:
            self.busy = False
            self.wake()

    @property
    def reserved(self) -> int:
        """Evaluations that proposals on their way will need: numbers of known templates leave them alone."""
        return self.settings.proposals * self.settings.young_budget if self.busy else 0

    def unproven(self, proposal: Proposal) -> float:
        """Most tries of a template of which nothing passed yet: a few; one of a model's while it may be mended.

        On another machine several travel at once: most templates pass, and a trip costs more than tries.
        """
        if self.author is None or not self.may_bring_more:
            return inf
        mended = self.busy and proposal.proposer in self.author.models
        return 1 if mended and self.scene.harness.exclusive else self.settings.young_budget

    @property
    def may_bring_more(self) -> bool:
        """Whether templates can still come."""
        return self.author is not None and not self.stopped

    async def _after(self, done: Round, stop: asyncio.Event) -> None:
        self.rounds += 1
        if done.failed:
            self._failures += 1
            if not self._over():
                await either(stop, REST_S)
            return
        self._failures = 0
        island = self._choice.island if self._choice else 0
        for template in done.templates:
            self.islands.settle(template, island)
        for focus in done.focus:
            known = self._find(focus.template)
            async with self.asking:
                found = known is not None and self.policy.focus(known, focus.values)
            if found:
                self.wake()
        self._stops = self._stops + 1 if done.stops and not done.templates else 0

    def _over(self) -> str:
        assert self.author is not None
        if self.author.is_over:
            return "the models have nothing left"
        if not self.author.ledger.allows:
            return "what may be asked or spent is used up"
        if self._failures >= FAILURES_TO_STOP:
            return "the models do not answer"
        if self._stops >= STOPS:
            return "the models see nothing more to gain"
        return ""

    def _prepared(self) -> bool:
        """Whether a round is wanted; then what it works from and what is known of that."""
        if not self._waits and not self._wanted():
            return False
        self._waits = False
        self._choice = self.islands.choose(self.rounds, self.notebook, stagnant=self.stagnant)
        self._found = self.policy.findings(self._choice.lead.template) if self._choice else ()
        return True

    def _wanted(self) -> bool:
        """Whether structure is the better use of the next minutes."""
        if self.policy.young > self.settings.proposals:
            return False
        if self.policy.is_exhausted or self.stagnant:
            return True
        front = self.scene.standing.front
        best = self.objective.cost(front.times) if front else None
        return self._structure_rate() >= self.policy.numeric_rate(best)

    def _structure_rate(self) -> float:
        """Expected log gain per second of the device that a round's templates will use."""
        assert self.author is not None
        records = self.author.bandit.records.values()
        requests, gain = sum(r.requests for r in records), sum(r.gain for r in records)
        expected = (gain + PRIOR_GAIN) / (requests + 1)
        arms = [arm for arm in self.policy.arms.values() if arm.told]
        seconds = sum(arm.seconds_each for arm in arms) / len(arms) if arms else 1.0
        return expected / (seconds * self.settings.young_budget * self.settings.proposals)

    @property
    def stagnant(self) -> bool:
        """Whether nothing has led for a while, nor was so much faster that it might."""
        limit = STAGNANT // 2 if self.aim.pressing else STAGNANT
        return self.notebook.experiments - self._last_gain > limit

    def _judge(self, template: str, notes: TemplateNotes) -> None:
        """Once a template had its first numbers, its model is paid what the proposal was worth."""
        if template in self._judged or self.author is None:
            return
        self._judged.add(template)
        best = notes.best.cost_ms if notes.best else None
        gain = log(notes.before_ms / best) if best and notes.before_ms < inf else 0.0
        if notes.proposal.proposer in self.author.bandit.records:
            self.author.bandit.earned(notes.proposal.proposer, gain)

    # -- the desk -------------------------------------------------------------------------------------

    def structure_prompt(self, wanted: int) -> Prompt:
        """Facts of this moment around the template that the islands choose."""
        front, base = self.scene.standing.front, self._baseline
        assert front is not None
        assert base is not None
        fastest = self.scene.candidates[front.candidate]
        cost = self.objective.cost(front.times)
        chosen = [self._choice.lead, *self._choice.mates[:PARENTS]] if self._choice else []
        known = [
            (candidate, (seen.cost_ms or inf) / cost)
            for seen in chosen
            if (candidate := self._best.get(seen.template)) is not None
        ]
        # Of the fastest template the fastest configuration is shown that may lead.
        start = known[0] if known and known[0][0].template.id != fastest.template.id else (fastest, 1.0)
        reference, reference_ms = strongest_ms(self.scene.memory.notes(self.scene.campaign))
        return self.prompts.structure(
            self.notebook,
            Ask(
                wanted=wanted,
                reference_name=reference,
                reference_ms=reference_ms,
                baseline_ms=base.times,
                fastest=fastest,
                fastest_ms=front.times,
                is_incumbent=front is self.scene.standing.incumbent,
                start=start,
                left=self._left(),
                floors_ms=self.seeing.floors_ms,
                parents=known[1:],
                findings=[*self._found, *self.notebook.predictions(4)],
                digest=self._digest(start[0]),
                goal=str(self.aim.goal or ""),
                place=self.aim.place(),
                emphasis=self._choice.emphasis if self._choice else "",
                paused=frozenset(self.policy.paused()),
            ),
        )

    def repair_prompt(self, broken: Broken) -> Prompt:
        """The reason, the lines it names, the draft."""
        return self.prompts.repair(broken)

    def source_of(self, template: str) -> str | None:
        """The text as prompts show it: an edit's search blocks are taken from there."""
        known = self._find(template)
        return None if known is None else without_comments(self.policy.arms[known].proposal.template)

    def twin_of(self, template: Template, drafts: Collection[str] = ()) -> str | None:
        """A known template that is the same, or nearly: numbers are the optimiser's. One that never passed may be mended."""
        own = fingerprint(template)
        for known, (name, other) in self._fingerprints.items():
            stands = known not in drafts and not self.policy.never_passed(known)
            if own.is_same(other) or (stands and own.adds_nothing_to(other)):
                return name
        return None

    def _tell_apart(self, template: Template) -> None:
        if template.id not in self._fingerprints:
            self._fingerprints[template.id] = template.name, fingerprint(template)

    def is_paused(self, direction: str) -> bool:
        """Whether a direction waits after repeated compile failures."""
        return direction in self.policy.paused()

    async def trial(self, proposal: Proposal) -> Outcome | None:
        """The first configuration goes to the head of the queue; what came of it in an earlier sitting counts."""
        if (before := self._before(proposal.template.id)) is not None:
            return before
        # Noted at once: while this one waits for the policy, another of the round may be the same.
        self._tell_apart(proposal.template)
        async with self.asking:
            work = self._urged(proposal)
        if work is None:
            return Outcome(
                Status.LAUNCH_FAILED, "no configuration of it is valid on this device", check=Check.PLAN
            )
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[work.candidate.id] = future
        self.wake()
        return await future

    def _before(self, template: str) -> Outcome | None:
        """What came of the first configuration. A damaged record ends the campaign as it ends ``resume``."""
        first = self.policy.first(template) if template in self.policy.arms else None
        tried = self.scene.memory.find_experiment(self.scene.campaign, first.id) if first else None
        return tried.outcome if tried else None

    def _urged(self, proposal: Proposal) -> Work | None:
        try:
            if self.take_in(proposal):
                return self.policy.urge(proposal.template.id)
        except Exception:
            # Nothing of it may be asked again: that would end the campaign in another place.
            for known in (self.policy.arms, self.notebook.templates, self._fingerprints):
                known.pop(proposal.template.id, None)
            raise
        self._fingerprints.pop(proposal.template.id, None)
        return None

    def tell(self, model: str, reason: str, what: str = "") -> None:
        """Failures of a model name it already."""
        said = reason.removeprefix(f"{model}: ")[:MOST_TOLD]
        self.scene.listener.note(f"{model}: {what}{said}")

    # -- facts for prompts ----------------------------------------------------------------------------

    def _find(self, template: str) -> str | None:
        found = [known for known in self.policy.arms if template and known.startswith(template)]
        return found[0] if len(found) == 1 else None

    def _digest(self, lead: Candidate) -> str:
        notes = self.notebook.templates[lead.template.id]
        best = notes.best
        return self.seeing.text(lead, best) if best else ""

    def _left(self) -> str:
        assert self.author is not None
        parts = [f"{self.scene.budget.left:.0f} s"]
        ledger = self.author.ledger
        if ledger.max_requests is not None:
            parts.append(f"{ledger.max_requests - ledger.requests} requests")
        return " and ".join(parts) + " left"
