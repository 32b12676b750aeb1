"""The recorded facts of one candidate of one campaign, read from the memory once."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kernelwright.certificate.evidence import FAULT, Evidence, read_evidence
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import UserError
from kernelwright.core.launch import ResolvedPlan
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.harness.wire import Ceilings
from kernelwright.memory.database import damaged
from kernelwright.memory.problems import recorded_problem
from kernelwright.memory.records import CampaignRecord, Duel, Experiment, TemplateRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import Case, Problem
from kernelwright.problems.plans import plans_for

BASELINE: Final = "baseline"
"""Direction of the template that every campaign begins with."""


@dataclass(frozen=True)
class Facts:
    """What the memory has; ``notes`` are the campaign's."""

    campaign: CampaignRecord
    problem: Problem
    device: DeviceFacts
    objective: Objective
    cases: tuple[Case, ...]
    experiment: Experiment
    template: TemplateRecord
    candidate: Candidate
    plans: dict[str, ResolvedPlan]
    baseline: Experiment
    duels: tuple[Duel, ...]
    notes: Mapping[str, str]
    experiments: int

    @property
    def evidence(self) -> Evidence:
        """What was noted of the candidate, or of the twin whose measurement it has."""
        return read_evidence(self.notes, (self.experiment.candidate, self.experiment.twin_of))

    @property
    def ceilings(self) -> Ceilings:
        """Of the device, as measured when the campaign began."""
        return Ceilings(**json.loads(self.notes["ceilings"])) if "ceilings" in self.notes else Ceilings()

    @property
    def settings(self) -> dict[str, object]:
        """The campaign's."""
        values: dict[str, object] = json.loads(self.campaign.settings)
        return values


def read_facts(memory: Memory, campaign: CampaignRecord, candidate: str) -> Facts:
    """Raises UserError, one line, when the memory does not hold what a certificate needs."""
    experiments = {e.candidate: e for e in memory.experiments(campaign.id)}
    templates = memory.templates(campaign.id)
    experiment = experiments.get(candidate)
    if experiment is None or not experiment.outcome.cases:
        raise UserError(f"{campaign.id}: {candidate} was not measured in it: there is nothing to certify")
    notes = memory.notes(campaign.id)
    if fault := notes.get(FAULT + candidate):
        why = json.loads(fault).get("reason", "")
        raise UserError(f"{campaign.id}: {candidate} is disqualified: {why}")
    baseline = next(
        (e for e in experiments.values() if templates[e.template].direction == BASELINE and e.outcome.cases),
        None,
    )
    if baseline is None:
        raise UserError(f"{campaign.id}: its baseline was not measured: there is nothing to compare with")
    problem = recorded_problem(memory.problem(campaign.problem_id))
    device = DeviceFacts(**json.loads(campaign.device))
    slow = bool(json.loads(campaign.settings).get("slow_cases", False))
    template = templates[experiment.template]
    whole = Candidate(parse_template(template.source, template.name), experiment.configuration)
    cases = problem.cases(slow=slow)
    try:
        plans = plans_for(whole, cases, device, problem.signature)
    except ValueError as error:
        raise damaged(memory.path, f"experiment {experiment.number}", error) from None
    return Facts(
        campaign=campaign,
        problem=problem,
        device=device,
        objective=Objective(ObjectiveName(campaign.objective)),
        cases=cases,
        experiment=experiment,
        template=template,
        candidate=whole,
        plans=plans,
        baseline=baseline,
        duels=tuple(memory.duels(campaign.id)),
        notes=notes,
        experiments=len(experiments),
    )
