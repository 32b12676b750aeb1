"""(c) The trajectory derived again from what is recorded: whether every decision follows.

The product's own campaign is walked through its recorded history, event by event; what it says after each must be
what the memory says. No device is used: a harness that only knows the recorded device stands in for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelwright.campaign.budget import Budget
from kernelwright.campaign.campaign import Campaign
from kernelwright.campaign.events import Silent
from kernelwright.campaign.origins import proposal_of
from kernelwright.campaign.scene import Past
from kernelwright.campaign.sitting import NoProposals
from kernelwright.campaign.standing import median_errors
from kernelwright.campaign.succession import CONFIRMATION
from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import UserError
from kernelwright.core.objective import ObjectiveName
from kernelwright.core.outcome import Status
from kernelwright.memory.problems import recorded_problem
from kernelwright.memory.records import Duel, Experiment, TemplateRecord
from kernelwright.problems.loader import Case, Problem
from kernelwright.problems.plans import plans_for
from kernelwright.replay.decisions import confirmation_fault, decision_fault
from kernelwright.replay.derivation import CATALOGUE, Derivation
from kernelwright.replay.integrity import candidate_fault, memory_part, problem_faults, template_fault
from kernelwright.replay.leads import Leads
from kernelwright.replay.play import play
from kernelwright.replay.recorded_harness import RecordedHarness
from kernelwright.replay.subject import Subject
from kernelwright.replay.verdicts import Part, Replayed, Verdict, differs, failed, reproduced, unknown


async def rederive(subject: Subject) -> Replayed:
    """Needs no device. The first deviation is named; what lies behind it follows from it."""
    parts = list(_parts(subject))
    if all(part.verdict in {Verdict.REPRODUCED, Verdict.DIFFERS} for part in parts):
        parts.append(await play(subject))
    return Replayed("rederive", subject.campaign.id, tuple(parts))


def _parts(subject: Subject) -> Iterator[Part]:
    fault = next(problem_faults(subject.problem), "")
    templates = subject.memory.templates(subject.campaign.id)
    fault = fault or next(filter(None, map(template_fault, templates.values())), "")
    if fault:
        yield failed("memory", f"tampered: {fault}")
        return
    yield memory_part(subject)
    try:
        walk = Walk.begin(subject, templates)
    except UserError as error:
        yield unknown("trajectory", f"{error}")
        return
    deviation = walk.first_deviation()
    for note in walk.notes:
        yield differs("catalogue", note)
    if deviation is None:
        yield reproduced("trajectory", walk.summary)
    else:
        yield failed("trajectory", f"{deviation} ({walk.summary} before it)")


@dataclass
class Walk:
    """A campaign on its way through its own history."""

    subject: Subject
    campaign: Campaign
    problem: Problem
    templates: dict[str, TemplateRecord]
    derivation: Derivation
    leads: Leads
    notes: list[str] = field(default_factory=list)
    experiments: int = 0
    duels: int = 0
    _seen: set[str] = field(default_factory=set)
    _taken_over: dict[tuple[object, ...], Candidate] = field(default_factory=dict)
    _outcomes: dict[str, Experiment] = field(default_factory=dict)

    @classmethod
    def begin(cls, subject: Subject, templates: dict[str, TemplateRecord]) -> "Walk":
        """Before the first experiment. Raises UserError for texts that this version cannot read."""
        problem = recorded_problem(subject.problem)
        campaign = Campaign(
            id=subject.campaign.id,
            settings=subject.settings.model_copy(
                update={"objective": ObjectiveName(subject.campaign.objective)}
            ),
            problem=problem,
            harness=RecordedHarness(subject.campaign),
            memory=subject.memory,
            proposer=NoProposals(),
            listener=Silent(),
            budget=Budget(subject.settings.seconds),
        )
        for template in templates.values():
            campaign.take_in(proposal_of(template))
        derivation = Derivation(
            problem,
            subject.settings.problem,
            slow=subject.settings.slow_cases,
            templates=templates.values(),
            requests=subject.memory.requests(subject.campaign.id),
        )
        ended = subject.campaign.state in {"finished", "failed"}
        leads = Leads(subject.memory.milestones(subject.campaign.id), complete=ended)
        return cls(subject, campaign, problem, templates, derivation, leads)

    @property
    def summary(self) -> str:
        """What was derived so far."""
        return (
            f"{self.experiments} experiments of {len(self._seen)} templates, {self.duels} duels and "
            f"{self.leads.confirmed} milestones follow"
        )

    def first_deviation(self) -> str | None:
        """What does not follow, with what does; ``None`` when everything does."""
        for past in self.campaign.history():
            if fault := self._before(past) or self._after(past):
                return fault
        return self.leads.rest() or self._confirmation_fault() or None

    def _confirmation_fault(self) -> str:
        note = self.subject.memory.notes(self.subject.campaign.id).get(CONFIRMATION)
        duels = self.subject.memory.duels(self.subject.campaign.id)
        return "" if note is None else confirmation_fault(note, duels, self.campaign.objective)

    def _before(self, past: Past) -> str:
        if isinstance(past.what, Experiment):
            fault = self._experiment_fault(past.what)
            return fault and f"experiment {past.what.number}: {fault}"
        if isinstance(past.what, Duel):
            fault = self._duel_fault(past.what)
            return fault and f"duel {past.what.number}: {fault}"
        return ""

    def _after(self, past: Past) -> str:
        past.take_in()
        self.experiments += isinstance(past.what, Experiment)
        self.duels += isinstance(past.what, Duel)
        leader, ratio = self.campaign.standing.incumbent, self.campaign.progress().ratio
        if leader is None:
            return ""
        return self.leads.follow(leader.number, ratio or 1.0, by_rule=isinstance(past.what, Experiment))

    # -- experiments ----------------------------------------------------------------------------------

    def _experiment_fault(self, experiment: Experiment) -> str:
        template = self.templates.get(experiment.template)
        arm = self.campaign.policy.arms.get(experiment.template)
        if template is None or arm is None:
            return f"its template {experiment.template} has no configuration on the recorded device"
        candidate = Candidate(arm.proposal.template, experiment.configuration)
        return (
            candidate_fault(experiment, template.source)
            or self._origin_fault(template)
            or self._configuration_fault(candidate)
            or self._numbers_fault(experiment)
            or self._twin_fault(experiment, candidate)
        )

    def _origin_fault(self, template: TemplateRecord) -> str:
        if template.id in self._seen:
            return ""
        self._seen.add(template.id)
        fault = self.derivation.fault(template, self.campaign.candidates)
        if fault and template.proposer == CATALOGUE:
            # The catalogue belongs to the product and may have changed with it: its text is in the memory.
            self.notes.append(f"{template.name} ({template.id}): {fault}")
            return ""
        return fault and f"its template {template.name} ({template.id}) does not follow: {fault}"

    def _configuration_fault(self, candidate: Candidate) -> str:
        space = candidate.template.plan.space(self.campaign.harness.facts)
        violated = space.violated(candidate.configuration)
        return (
            violated and f"[{candidate.configuration}] is no configuration of its template: {violated}"
        ) or ""

    def _numbers_fault(self, experiment: Experiment) -> str:
        """Cost, score and eligibility from the recorded samples and what was known before."""
        objective, outcome = self.campaign.objective, experiment.outcome
        measured, times = outcome.status is Status.MEASURED, outcome.times_ms()
        if measured and list(times) != [case.id for case in self._cases]:
            return f"its cases are {', '.join(times)}, those of the problem {', '.join(c.id for c in self._cases)}"
        follows = {
            "cost_ms": objective.cost(times) if measured else None,
            "score": objective.score(times) if measured else None,
            "eligible": measured and self.campaign.standing.eligible(times, median_errors(outcome)),
        }
        for name, value in follows.items():
            if getattr(experiment, name) != value:
                return f"{name} is recorded as {getattr(experiment, name)}, from its samples follows {value}"
        return ""

    @property
    def _cases(self) -> tuple[Case, ...]:
        return self.problem.cases(slow=self.subject.settings.slow_cases)

    def _twin_fault(self, experiment: Experiment, candidate: Candidate) -> str:
        """An outcome that was taken over is that of an equal binary, launched in the same way."""
        outcome = experiment.outcome
        if not outcome.cases:
            return ""
        taken = (tuple(timing.samples_ms for timing in outcome.cases), tuple(sorted(outcome.seconds.items())))
        if experiment.twin_of and experiment.twin_of not in self._outcomes:
            return f"it is recorded as a twin of {experiment.twin_of}, which was not measured before it"
        first = self._taken_over.setdefault(taken, candidate)
        self._outcomes.setdefault(candidate.id, experiment)
        other = self.campaign.candidates.get(experiment.twin_of, first)
        if other.id == candidate.id:
            return ""
        before = self._outcomes[other.id].outcome
        if before.artifact_digest != outcome.artifact_digest:
            return f"it has the measurement of {other.id}, whose binary is another"
        if self._plans(other) != self._plans(candidate):
            return f"it has the measurement of {other.id}, which is launched otherwise"
        return (
            ""
            if before.cases == outcome.cases
            else f"it is recorded as a twin of {other.id} with other samples"
        )

    def _plans(self, candidate: Candidate) -> list[object]:
        facts, signature = self.campaign.harness.facts, self.problem.signature
        return list(plans_for(candidate, self._cases, facts, signature).values())

    # -- duels ----------------------------------------------------------------------------------------

    def _duel_fault(self, duel: Duel) -> str:
        leader, contender = self.campaign.standing.incumbent, self.campaign.standing.contender()
        due = [entry.candidate if entry else "nobody" for entry in (contender, leader)]
        confirming = [due[1], self.subject.baseline.candidate]
        recorded = [duel.challenger, duel.incumbent]
        if duel.confirmation or (duel.at_fault and recorded == confirming):
            due = confirming  # one in which a side broke a check is kept as a duel that decides
        # A device elsewhere answers while other results come in: who was due is known only to it.
        if due != recorded and not self.subject.settings.device.startswith("detached"):
            return f"recorded is {recorded[0]} against {recorded[1]}, due was {due[0]} against {due[1]}"
        names = [case.id for case in self._cases]
        return decision_fault(duel, self.campaign.objective, self.campaign.succession.fought + 1, names)
