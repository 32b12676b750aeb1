"""Notes of a campaign that a certificate rests on: it says something that only they tell.

Notes are written again as a campaign goes on, so their values are held against nothing; none is ever removed.
"""

from collections.abc import Collection, Iterator

from kernelwright.campaign.succession import CONFIRMATION
from kernelwright.certificate import Certificate
from kernelwright.certificate.build import ONCE_MORE, UNKNOWN, UNTESTED
from kernelwright.certificate.checks import NOT_RECORDED
from kernelwright.certificate.evidence import SANITIZER, TRIALS
from kernelwright.core.outcome import Check


def missing_note(document: Certificate, notes: Collection[str]) -> str:
    """The first note that has to be among ``notes`` (keys) and is not; empty when all are."""
    return next((keys[0] for keys in _needed(document) if not any(key in notes for key in keys)), "")


def _needed(document: Certificate) -> Iterator[tuple[str, ...]]:
    """Keys of a note each; where there are several, one of them will do."""
    evidence = {part.check: part.evidence for part in document.checks}
    said = {
        "kernelwright": document.kernelwright != UNKNOWN,
        "sandbox": bool(document.sandbox),
        "ceilings": any(case.floor_ms for case in document.cases),
        "timing": evidence.get(Check.GUARD_BANDS, NOT_RECORDED) != NOT_RECORDED,
        "selftest": UNTESTED not in document.warnings,
        "strongest": document.ratio_to_strongest is not None,
        CONFIRMATION: document.ratio_to_baseline.source == ONCE_MORE,
    }
    yield from ((key,) for key, told in said.items() if told)
    names = [name for name in (document.hashes.candidate, document.subject.twin_of) if name]
    for kind, check in ((SANITIZER, Check.SANITIZER), (TRIALS, Check.STRESS_INPUTS)):
        if evidence.get(check, NOT_RECORDED) != NOT_RECORDED:
            yield tuple(kind + name for name in names)
