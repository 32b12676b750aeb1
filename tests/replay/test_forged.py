"""Memories that somebody changed with one SQL statement: neither rebuild nor rederive calls them reproduced."""

import asyncio
from pathlib import Path

import pytest

from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.memory.store import Memory
from kernelwright.replay import Part, Replayed, Verdict, read_subject, rederive
from kernelwright.replay.decisions import confirmation_fault
from kernelwright.replay.integrity import memory_part

from .campaigns import NAME, tampered

RATIO = "json_set(verdict, '$.ratio', 0.01, '$.low', 0.009, '$.high', 0.011)"
CONFIRMED = "WHERE verdict LIKE '%\"confirmation\": true%'"


def looked_at(file: Path) -> Part:
    """The memory's line, which rebuild and regenerate begin with."""
    with Memory.open(file, read_only=True) as memory:
        return memory_part(read_subject(memory, NAME))


def derived(file: Path) -> Replayed:
    with Memory.open(file, read_only=True) as memory:
        return asyncio.run(rederive(read_subject(memory, NAME)))


def trajectory(file: Path) -> str:
    """What the walk says of a memory whose certificates were thrown away before, so that nothing else tells."""
    parts = {part.name: part for part in derived(file).parts}
    assert parts["trajectory"].verdict is Verdict.NOT_REPRODUCED, parts
    return parts["trajectory"].reason


@pytest.fixture(scope="module")
def uncertified(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same campaign without any certificate."""
    return tampered(finished, tmp_path_factory.mktemp("uncertified"), "DELETE FROM certificates")


BOTH = {
    "promoted": ("UPDATE duels SET promoted = 1 - promoted", "duel 1: promoted is recorded as 0, but its"),
    "promoted by no vote": (
        f"UPDATE duels SET promoted = 1 {CONFIRMED}",
        "recorded as 1, but a confirmation",
    ),
    "medians": (
        "UPDATE measurements SET median_ms = median_ms * 0.5",
        "experiment 1: the median of N=65536 is recorded as 0.9995, that of",
    ),
    "no medians": ("UPDATE measurements SET median_ms = NULL", "is recorded as None, that of its samples is"),
    "the problem's name": (
        "UPDATE problems SET name = 'gemm'",
        "recorded as 'gemm', its specification calls it",
    ),
    "a ratio": (f"UPDATE duels SET verdict = {RATIO}", "samples differ: promotion."),
    "no samples and a ratio": (
        f"UPDATE duels SET samples = '[]', verdict = {RATIO}",
        "duel 1: recorded is promote with the ratio 0.0100, but none of the samples that it follows from",
    ),
    "methods": ("UPDATE measurements SET method = 'graph'", "samples differ: cases[0].method"),
    "errors": ("UPDATE measurements SET max_error = 0.5", "samples differ: cases[0].max_error"),
    "the device": (
        "UPDATE campaigns SET device = json_set(device, '$.uuid', 'GPU-2')",
        "differ: device.uuid",
    ),
    "samples of one side": (
        "UPDATE duels SET samples = json_set(samples, '$[0].challenger_ms', json('[1.0, 1.0]'))",
        "duel 1: the samples of N=65536 are no pairs",
    ),
    "whose certificate": (
        "UPDATE certificates SET candidate = 'c1'",
        "recorded for the candidate c1, it is of",
    ),
    "a certificate's time": (
        "UPDATE certificates SET document = json_set(document, '$.cases[0].median_ms', 0.1)",
        "the content of certificate 1 is not that of its hash",
    ),
    "a certificate's campaign": (
        "UPDATE certificates SET document = json_set(document, '$.campaign', 'c2')",
        "certificate 1 is recorded for c1, it is of c2",
    ),
}


BOTH |= {
    f"no note {key}": (
        f"DELETE FROM environment WHERE key LIKE '{key}%'",
        f"the issued certificate rests on the note '{key}",
    )
    for key in ("sanitizer:", "trials:")
}
"""A certificate names what only a note tells."""


@pytest.mark.parametrize("what", BOTH)
def test_what_is_recorded_twice_has_to_agree(what: str, finished: Path, tmp_path: Path) -> None:
    statement, reason = BOTH[what]
    file = tampered(finished, tmp_path, statement)
    part, result = looked_at(file), derived(file)
    assert part.verdict is Verdict.NOT_REPRODUCED
    assert reason in part.reason
    assert result.verdict is Verdict.NOT_REPRODUCED
    assert reason in result.parts[0].reason


@pytest.mark.parametrize(
    "document", ["'{}'", "'{'", "''", "'null'", "json_set(document, '$.note', 'ours')", "document || 'x'"]
)
def test_a_certificate_that_cannot_be_read_leaves_the_memory_unjudged(
    document: str, finished: Path, tmp_path: Path
) -> None:
    file = tampered(finished, tmp_path, f"UPDATE certificates SET document = {document}")
    part, result = looked_at(file), derived(file)
    assert part.verdict is Verdict.NOT_JUDGED
    assert part.reason.endswith("certificate 1 is none that this version can read")
    assert result.verdict is Verdict.NOT_JUDGED


def test_an_older_certificate_that_cannot_be_read_does_too(finished: Path, tmp_path: Path) -> None:
    older = "INSERT INTO certificates SELECT number - 1, campaign, 'c1', '{}', recorded FROM certificates"
    part = looked_at(tampered(finished, tmp_path, older))
    assert part.verdict is Verdict.NOT_JUDGED
    assert "certificate 0 is none" in part.reason


def test_a_campaign_without_any_certificate_is_held_against_none(uncertified: Path) -> None:
    part = looked_at(uncertified)
    assert part.verdict is Verdict.REPRODUCED
    assert part.reason.endswith("no certificate was issued")
    assert derived(uncertified).verdict is Verdict.REPRODUCED


WALKED = {
    "no samples and a ratio": (
        f"UPDATE duels SET samples = '[]', verdict = {RATIO}",
        "duel 1: recorded is promote with the ratio 0.0100, but none of the samples that it follows from",
    ),
    "no samples and a win": (
        "UPDATE duels SET samples = '[]', verdict = json_set(verdict, '$.ratio', NULL, '$.low', NULL, '$.high', NULL)",
        "duel 1: recorded is promote with no ratio, but none of the samples",
    ),
    "no samples of the confirmation": (
        f"UPDATE duels SET samples = '[]', verdict = {RATIO} {CONFIRMED}",
        "recorded is promote with the ratio 0.0100, but none",
    ),
    "samples thrown away, as is said": (
        f"UPDATE duels SET samples = json_set(samples, '$[0].discarded', 8), verdict = {RATIO}",
        "duel 1: recorded is 0.0100 [0.0090, 0.0110] in 8 rounds",
    ),
    "samples of one side": (
        "UPDATE duels SET samples = json_set(samples, '$[0].challenger_ms', json('[]'))",
        "duel 1: N=65536 has 0 samples of the challenger and 8 of the incumbent",
    ),
    "samples of a case less": (
        "UPDATE duels SET samples = json_remove(samples, '$[0]')",
        "duel 1: its cases are N=100003, N=1048576, those of the problem N=65536,",
    ),
    "somebody at fault": (
        "UPDATE duels SET verdict = json_set(verdict, '$.at_fault', 'c1')",
        "duel 1: the side at fault is recorded as 'c1', which is neither side",
    ),
    "a side at fault": (
        f"UPDATE duels SET verdict = json_set(verdict, '$.at_fault', challenger) {CONFIRMED}",
        "is recorded as at fault, which leaves no samples: some are recorded",
    ),
    "the times of the end": (
        "UPDATE environment SET value = json_set(value, '$.incumbent_ms', 0.1) WHERE key = 'confirmation'",
        "no recorded confirmation gives its times",
    ),
    "the ratio of the end": (
        "UPDATE environment SET value = json_set(value, '$.ratio', 0.01) WHERE key = 'confirmation'",
        "the note of the confirmation tells the ratio 0.01,",
    ),
}


@pytest.mark.parametrize("what", WALKED)
def test_what_does_not_follow_is_named_where_no_certificate_tells(
    what: str, uncertified: Path, tmp_path: Path
) -> None:
    statement, reason = WALKED[what]
    assert reason in trajectory(tampered(uncertified, tmp_path, statement))


def test_samples_that_were_taken_again_on_a_throttled_device_are_all_there(
    uncertified: Path, tmp_path: Path
) -> None:
    throttled = "UPDATE duels SET samples = json_set(samples, '$[0].discarded', 16)"
    assert derived(tampered(uncertified, tmp_path, throttled)).verdict is Verdict.REPRODUCED


def test_a_note_of_the_end_that_is_none_is_told() -> None:
    for note in ("{", "[]", "7"):
        told = confirmation_fault(note, [], Objective(ObjectiveName.MEAN))
        assert "tells the ratio nothing that can be read" in told
