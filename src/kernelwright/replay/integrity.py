"""Whether a memory is as it was written: hashes of its texts, columns that follow from others, issued certificates.

The memory's triggers keep honest programs from changing history. Whoever has the file can drop them: what is looked at
here is whether the parts of the memory still say the same.
"""

import contextlib
import re
from collections.abc import Iterator
from itertools import chain
from sqlite3 import Row
from typing import Final

from pydantic import ValidationError

from kernelwright.certificate import Certificate, verify_certificate
from kernelwright.core.errors import UserError
from kernelwright.core.identity import content_id
from kernelwright.memory.opening import open_for_reading
from kernelwright.memory.problems import recorded_problem
from kernelwright.memory.records import CertificateRecord, Experiment, ProblemRecord, TemplateRecord
from kernelwright.replay.decisions import unmeasured_fault
from kernelwright.replay.noted import missing_note
from kernelwright.replay.subject import Subject
from kernelwright.replay.verdicts import Part, failed, reproduced, unknown

_CASE: Final = r"\[\d+\]\.(samples_ms|median_ms|method|discarded|max_error|conditions).*"
_RAW: Final = re.compile(
    r"content_sha256|problem|hashes\.(template|source|configuration|candidate|artifact)|baseline|device\..*"
    rf"|(baseline_)?cases({_CASE})?|(promotion|confirmation).*"
)
"""Parts of a certificate that are as recorded, whatever this version makes of them and however the campaign went on."""
_MEDIANS: Final = """
SELECT m.experiment, m.position, m.median_ms FROM measurements m JOIN experiments e ON e.number = m.experiment
WHERE e.campaign = ?
"""


def memory_part(subject: Subject) -> Part:
    """Hashes computed anew from the recorded texts, and what is recorded twice held against each other."""
    faults = [*problem_faults(subject.problem), *_of(subject.winner, subject.winner_template)]
    faults += _of(subject.baseline, subject.baseline_template)
    numbers = chain(_duel_faults(subject), _median_faults(subject))
    if fault := next(chain(faults, numbers), ""):
        return failed("memory", f"tampered: {fault}")
    hashes = "problem, template and candidate have their hashes"
    records = subject.memory.certificates(subject.campaign.id)
    documents = [_document(record) for record in records]
    for record, document in zip(records, documents, strict=True):
        if document is not None and (fault := _own_fault(document, record)):
            return failed("memory", f"tampered: {fault}")
    if None in documents:
        number = records[documents.index(None)].number
        return unknown("memory", f"{hashes}; certificate {number} is none that this version can read")
    mine = [each for each in documents if each and each.hashes.candidate == subject.winner.candidate]
    if not mine:
        return reproduced("memory", f"{hashes}; no certificate was issued")
    try:
        fault = _against(mine[-1], subject)
    except UserError as error:
        return unknown("memory", f"the certificate cannot be held against it: {error}")
    if fault:
        return failed("memory", f"tampered: {fault}")
    return reproduced("memory", f"{hashes}; the certificate agrees")


# -- texts ----------------------------------------------------------------------------------------------


def problem_faults(problem: ProblemRecord) -> Iterator[str]:
    """A problem whose texts are not those of its id, or that goes by another name than its own."""
    computed = content_id("problem", problem.spec, problem.reference, problem.baseline)
    if computed != problem.id:
        yield f"the problem is recorded as {problem.id}, its texts are those of {computed}"
        return
    try:
        name = recorded_problem(problem).name
    except UserError:
        return  # of another version, which is told where the problem is needed
    if name != problem.name:
        yield f"the problem is recorded as {problem.name!r}, its specification calls it {name!r}"


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


# -- numbers --------------------------------------------------------------------------------------------


def _duel_faults(subject: Subject) -> Iterator[str]:
    """Duels without the samples that they need. ``promoted`` is a column that no record is read from."""
    query = "SELECT number, promoted FROM duels WHERE campaign = ?"
    promoted = {row["number"]: row["promoted"] for row in _rows(subject, query)}
    for duel in subject.memory.duels(subject.campaign.id):
        # A running campaign may have more by now.
        if (found := promoted.get(duel.number, duel.promoted)) != duel.promoted:
            what = "a confirmation" if duel.confirmation else f"its verdict is {duel.decision.verdict}"
            yield f"duel {duel.number}: promoted is recorded as {found}, but {what}"
        if not duel.cases and (fault := unmeasured_fault(duel.decision)):
            yield f"duel {duel.number}: {fault}"
        for case in duel.cases:
            if len(case.challenger_ms) != len(case.incumbent_ms):
                yield f"duel {duel.number}: the samples of {case.case} are no pairs"


def _median_faults(subject: Subject) -> Iterator[str]:
    """Medians that are not those of their samples: another column that no record is read from."""
    times = {(row["experiment"], row["position"]): row["median_ms"] for row in _rows(subject, _MEDIANS)}
    for experiment in subject.memory.experiments(subject.campaign.id):
        for position, timing in enumerate(experiment.outcome.cases):
            time = times.get((experiment.number, position), timing.median_ms)
            if time != timing.median_ms:
                yield (
                    f"experiment {experiment.number}: the median of {timing.case} is recorded as {time}, "
                    f"that of its samples is {timing.median_ms}"
                )


def _rows(subject: Subject, query: str) -> list[Row]:
    """Rows of the campaign as they lie in the file."""
    with contextlib.closing(open_for_reading(subject.memory.path)) as database:
        return database.rows(query, subject.campaign.id)


# -- certificates ---------------------------------------------------------------------------------------


def _document(record: CertificateRecord) -> Certificate | None:
    try:
        return Certificate.model_validate_json(record.document)
    except ValidationError:
        return None


def _own_fault(document: Certificate, record: CertificateRecord) -> str:
    """What a certificate's own record or hash says otherwise, whatever the campaign has become since."""
    if document.campaign != record.campaign:
        return f"certificate {record.number} is recorded for {record.campaign}, it is of {document.campaign}"
    if document.hashes.candidate != record.candidate:
        return (
            f"certificate {record.number} is recorded for the candidate {record.candidate}, "
            f"it is of {document.hashes.candidate}"
        )
    if document.content_hash() != document.content_sha256:
        return f"the content of certificate {record.number} is not that of its hash"
    return ""


def _against(document: Certificate, subject: Subject) -> str:
    if document.hashes.problem != subject.problem.id:
        return (
            f"the certificate is of the problem {document.hashes.problem}, recorded is {subject.problem.id}"
        )
    if fault := _missing(document, subject):
        return fault
    later = tuple(_went_on(document, subject))
    for mismatch in verify_certificate(document, subject.memory):
        if _RAW.fullmatch(mismatch.where) and not (later and mismatch.where.startswith(later)):
            return f"the issued certificate and the recorded samples differ: {mismatch}"
    return ""


def _went_on(document: Certificate, subject: Subject) -> Iterator[str]:
    """Parts that are of a later duel by now, since the campaign went on after the certificate."""
    promotions = [
        duel
        for duel in subject.memory.duels(subject.campaign.id)
        if duel.promoted and duel.challenger == subject.winner.candidate
    ]
    last = {"promotion": promotions[-1] if promotions else None, "confirmation": subject.confirmation()}
    for name, duel in last.items():
        then = getattr(document, name)
        if then is None or duel is None or duel.number != then.number:
            yield name


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
    if note := missing_note(document, subject.memory.notes(subject.campaign.id)):
        return f"the issued certificate rests on the note {note!r}, which is not recorded"
    numbers = {part.number for part in (document.promotion, document.confirmation) if part is not None}
    gone = sorted(numbers - {duel.number for duel in duels})
    return f"duel {gone[0]} of the issued certificate is not recorded" if gone else ""
