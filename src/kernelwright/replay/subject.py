"""What a replay begins with: a campaign's winner as the memory has it, and whether the memory is as it was written."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from kernelwright.campaign.settings import Settings, read_settings
from kernelwright.certificate import Certificate, verify_certificate
from kernelwright.certificate.build import incumbent_of
from kernelwright.certificate.facts import BASELINE, Facts, read_facts
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import MemoryFileError, UserError
from kernelwright.core.identity import content_id
from kernelwright.core.objective import ObjectiveName
from kernelwright.memory.records import CampaignRecord, Duel, Experiment, ProblemRecord, TemplateRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import Problem, load_problem
from kernelwright.problems.spec import ProblemSpec
from kernelwright.replay.verdicts import Part, differs, failed, reproduced, unknown

_RAW: Final = re.compile(
    r"content_sha256|hashes\.(template|source|configuration|candidate|artifact)|baseline"
    r"|(baseline_)?cases(\[\d+\]\.(samples_ms|median_ms).*)?|confirmation.*"
)
"""Parts of a certificate that are as recorded, whatever this version makes of them and however the campaign went on."""


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


def read_subject(memory: Memory, name: str, problem: str = "") -> Subject:
    """Raises UserError, one line, when there is nothing to replay."""
    campaign = memory.campaign(name)
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
        problem_here=problem or settings.problem,
    )


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


# -- is the memory as it was written? -------------------------------------------------------------------


def memory_part(subject: Subject) -> Part:
    """Hashes computed anew from the recorded texts, and the issued certificate against the recorded numbers."""
    faults = [*problem_faults(subject.problem), *_of(subject.winner, subject.winner_template)]
    faults += _of(subject.baseline, subject.baseline_template)
    if faults:
        return failed("memory", f"tampered: {faults[0]}")
    hashes = "problem, template and candidate have their hashes"
    document = _issued(subject)
    if not isinstance(document, Certificate):
        return reproduced("memory", f"{hashes}; {document}")
    try:
        fault = _against(document, subject)
    except UserError as error:
        return unknown("memory", f"the certificate cannot be held against it: {error}")
    if fault:
        return failed("memory", f"tampered: {fault}")
    return reproduced("memory", f"{hashes}; the certificate agrees")


def problem_faults(problem: ProblemRecord) -> Iterator[str]:
    """A problem whose texts are not those of its id."""
    computed = content_id("problem", problem.spec, problem.reference, problem.baseline)
    if computed != problem.id:
        yield f"the problem is recorded as {problem.id}, its texts are those of {computed}"


def template_fault(template: TemplateRecord) -> str:
    """Why a source is not that of its id; empty when it is."""
    computed = content_id("template", template.source)
    if computed == template.id:
        return ""
    return f"the template {template.name!r} is recorded as {template.id}, its source is that of {computed}"


def candidate_fault(experiment: Experiment, source: str) -> str:
    """Why a candidate is not its source and configuration; empty when it is."""
    computed = content_id("candidate", source, experiment.configuration.key)
    if computed == experiment.candidate:
        return ""
    return (
        f"experiment {experiment.number} is recorded as candidate {experiment.candidate}, "
        f"its source and configuration are those of {computed}"
    )


def _of(experiment: Experiment, template: TemplateRecord) -> list[str]:
    return [
        fault for fault in (template_fault(template), candidate_fault(experiment, template.source)) if fault
    ]


def _issued(subject: Subject) -> Certificate | str:
    """The winner's newest certificate, or why there is none."""
    records = subject.memory.certificates(subject.campaign.id)
    mine = [record for record in records if record.candidate == subject.winner.candidate]
    if not mine:
        return "no certificate was issued"
    try:
        return Certificate.model_validate_json(mine[-1].document)
    except ValidationError:
        return "its certificate is none that this version can read"


def _against(document: Certificate, subject: Subject) -> str:
    if document.hashes.problem != subject.problem.id:
        return (
            f"the certificate is of the problem {document.hashes.problem}, recorded is {subject.problem.id}"
        )
    if fault := _missing(document, subject):
        return fault
    confirmed, last = document.confirmation, subject.confirmation()
    went_on = confirmed is None or last is None or last.number != confirmed.number
    for mismatch in verify_certificate(document, subject.memory):
        if _RAW.fullmatch(mismatch.where) and not (went_on and mismatch.where.startswith("confirmation")):
            return f"the issued certificate and the recorded samples differ: {mismatch}"
    return ""


def _missing(document: Certificate, subject: Subject) -> str:
    """History only grows: what the certificate counts is recorded."""
    duels = subject.memory.duels(subject.campaign.id)
    counts = {
        "experiments": (
            document.statistics.experiments,
            sum(subject.memory.counts(subject.campaign.id).values()),
        ),
        "duels": (document.statistics.duels, sum(not duel.confirmation for duel in duels)),
    }
    for what, (then, now) in counts.items():
        if now < then:
            return f"the issued certificate counts {then} {what}, {now} are recorded"
    numbers = {part.number for part in (document.promotion, document.confirmation) if part is not None}
    gone = sorted(numbers - {duel.number for duel in duels})
    return f"duel {gone[0]} of the issued certificate is not recorded" if gone else ""


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


def recorded_problem(record: ProblemRecord) -> Problem:
    """The problem without its folder. Raises UserError when this version cannot read it."""
    try:
        spec = ProblemSpec.model_validate_json(record.spec)
    except ValidationError as error:
        what = error.errors()[0]["msg"]
        raise UserError(f"the problem {record.name} cannot be read by this version: {what}") from None
    return Problem(spec, Path(record.name), record.reference, record.baseline)


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
