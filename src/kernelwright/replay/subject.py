"""What a replay begins with: a campaign's winner as the memory has it."""

import json
from dataclasses import dataclass

from kernelwright.campaign.settings import Settings, read_settings
from kernelwright.certificate.build import incumbent_of
from kernelwright.certificate.facts import BASELINE, Facts, read_facts
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import MemoryFileError, UserError
from kernelwright.core.objective import ObjectiveName
from kernelwright.memory.records import CampaignRecord, Duel, Experiment, ProblemRecord, TemplateRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem
from kernelwright.replay.verdicts import Part, differs, reproduced, unknown


@dataclass(frozen=True)
class Subject:
    """The last incumbent and the baseline of a campaign, as recorded. ``milestone`` is when the incumbent took the lead."""

    memory: Memory
    campaign: CampaignRecord
    settings: Settings
    problem: ProblemRecord
    winner: Experiment
    winner_template: TemplateRecord
    baseline: Experiment
    baseline_template: TemplateRecord
    problem_here: str = ""
    """Where the problem is to be found here; by default as the campaign called it."""

    @property
    def is_baseline(self) -> bool:
        """Whether nothing better than the baseline was found."""
        return self.winner.candidate == self.baseline.candidate

    def facts(self) -> Facts:
        """The winner's, parsed. Raises UserError for texts that this version cannot read."""
        return read_facts(self.memory, self.campaign, self.winner.candidate)

    def confirmation(self) -> Duel | None:
        """The last duel of the winner with the baseline that ran to its end."""
        duels = [
            duel
            for duel in self.memory.duels(self.campaign.id)
            if duel.challenger == self.winner.candidate
            and duel.incumbent == self.baseline.candidate
            and duel.decision.ratio is not None
        ]
        return next((duel for duel in reversed(duels) if duel.confirmation), duels[-1] if duels else None)


def read_subject(memory: Memory, name: str, problem: str | None = None) -> Subject:
    """Raises UserError, one line, when there is nothing to replay, or when ``problem`` is another one."""
    campaign = memory.campaign(name)
    if problem is not None:
        _check_named(problem, memory.problem(campaign.problem_id).name)
    _readable_records(memory, campaign)
    candidate = incumbent_of(memory, campaign)
    if candidate is None:
        raise UserError(f"{campaign.id}: nobody leads: there is nothing to replay")
    winner = memory.experiment(campaign.id, candidate)
    templates = memory.templates(campaign.id)
    first = next(
        (
            e
            for e in memory.experiments(campaign.id)
            if e.template in templates and templates[e.template].direction == BASELINE
        ),
        None,
    )
    if first is None or winner.template not in templates:
        raise UserError(
            f"{campaign.id}: its baseline or its winner's source is not recorded: nothing to replay"
        )
    settings = read_settings(campaign.id, campaign.settings)
    return Subject(
        memory=memory,
        campaign=campaign,
        settings=settings,
        problem=memory.problem(campaign.problem_id),
        winner=winner,
        winner_template=templates[winner.template],
        baseline=first,
        baseline_template=templates[first.template],
        problem_here=settings.problem if problem is None else problem,
    )


def _check_named(problem: str, recorded: str) -> None:
    """What somebody names must be there, and go by the recorded name; its texts may have changed."""
    here = load_problem(problem)
    if here.name != recorded:
        raise UserError(f"--problem {problem}: is the problem {here.name}, the campaign is on {recorded}")


def _readable_records(memory: Memory, campaign: CampaignRecord) -> None:
    """Raises MemoryFileError, one line, for a record that was never written so."""
    try:
        DeviceFacts(**json.loads(campaign.device))
        ObjectiveName(campaign.objective)
        memory.templates(campaign.id)
        memory.duels(campaign.id)
        for _ in memory.experiments(campaign.id):
            pass
    except (ValueError, TypeError, KeyError) as error:
        raise MemoryFileError(
            f"{memory.path}: a record of {campaign.id} cannot be read ({error}): "
            "the memory is damaged or was tampered with"
        ) from None


def problem_part(subject: Subject) -> Part:
    """Whether the problem that goes by the campaign's name here is still the recorded one."""
    name = subject.problem_here
    try:
        here = load_problem(name)
    except UserError as error:
        return reproduced("problem", f"from the memory; none to compare with here ({error})")
    record = subject.problem
    if here.id == record.id:
        return reproduced("problem", f"{record.name} here is the recorded one, {record.id}")
    texts = {
        "specification": (here.spec.model_dump_json(), record.spec),
        "reference": (here.reference_source, record.reference),
        "baseline": (here.baseline_source, record.baseline),
    }
    changed = " and ".join(name for name, (now, then) in texts.items() if now != then)
    return differs(
        "problem", f"changed since: the {changed} of {name} here is another; the recorded one is replayed"
    )


def library_of(subject: Subject) -> str:
    """Text of the vendor library of the recorded problem, where that is here; no library is recorded."""
    try:
        here = load_problem(subject.problem_here)
    except UserError:
        return ""
    return here.library_source if here.id == subject.problem.id else ""


def readable(subject: Subject) -> Part | Facts:
    """The winner's facts, or that this version cannot read them."""
    try:
        return subject.facts()
    except UserError as error:
        return unknown("candidate", f"{error}")


def device_values(campaign: CampaignRecord) -> dict[str, object]:
    """Facts of the device that the campaign was measured on."""
    values: dict[str, object] = json.loads(campaign.device)
    return values
