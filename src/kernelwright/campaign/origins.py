"""Where a template came from: proposals and experiments as the memory keeps them, and back."""

from kernelwright.campaign.policy import Work
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.objective import Objective
from kernelwright.core.outcome import Outcome, Status
from kernelwright.generation.base import Proposal
from kernelwright.memory.records import Experiment, TemplateRecord
from kernelwright.problems.loader import Problem


def baseline_work(problem: Problem, facts: DeviceFacts) -> Work:
    """The problem's naive kernel, in its first configuration."""
    template = problem.baseline()
    proposal = Proposal(
        template, direction="baseline", proposer="baseline", rationale="the problem's naive kernel"
    )
    space = template.plan.space(facts)
    first = space.configuration(0) if template.plan.tunables else Configuration()
    return Work(Candidate(template, first), proposal, "the baseline that everything is compared with")


def experiment_of(
    campaign: str, work: Work, outcome: Outcome, objective: Objective, *, seconds: float, eligible: bool
) -> Experiment:
    """The record of what came of a candidate, ``seconds`` after the campaign's start."""
    times = outcome.times_ms() if outcome.status is Status.MEASURED else None
    return Experiment(
        campaign=campaign,
        candidate=work.candidate.id,
        template=work.candidate.template.id,
        configuration=work.candidate.configuration,
        outcome=outcome,
        why=work.why,
        seconds=seconds,
        cost_ms=objective.cost(times) if times else None,
        score=objective.score(times) if times else None,
        eligible=eligible,
    )


def origin(proposal: Proposal) -> TemplateRecord:
    """The record of a proposal."""
    template = proposal.template
    return TemplateRecord(
        id=template.id,
        name=template.name,
        source=template.source,
        proposer=proposal.proposer,
        direction=proposal.direction,
        rationale=proposal.rationale,
        predicted=proposal.predicted,
        parents=proposal.parents,
    )


def proposal_of(record: TemplateRecord) -> Proposal:
    """The proposal of a record."""
    return Proposal(
        template=parse_template(record.source, record.name),
        direction=record.direction,
        proposer=record.proposer,
        rationale=record.rationale,
        predicted=record.predicted,
        parents=record.parents,
    )
