"""What a certificate says, from recorded facts alone."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from kernelwright.certificate import (
    TRIALS,
    Certificate,
    as_markdown,
    build_certificate,
    certify,
)
from kernelwright.core.errors import UserError
from kernelwright.core.outcome import Check
from kernelwright.memory.store import Memory
from tests.certificate.samples import CAMPAIGN, CASES, NOISY, PROBLEM, baseline, leader, opened

EXPECTED = Path(__file__).with_name("expected.md")
HASH = re.compile(r"\b[a-z]?[0-9a-f]{16,}\b")


def issue(path: Path, **how: object) -> Certificate:
    with opened(path, **how) as memory:
        found = certify(memory, CAMPAIGN)
    assert found is not None
    return found


def check(certificate: Certificate, name: Check) -> tuple[str, str]:
    return next((part.result, part.evidence) for part in certificate.checks if part.check == name)


def test_hashes_are_of_what_was_measured(memory_file: Path) -> None:
    hashes = issue(memory_file).hashes
    fast = leader()
    assert hashes.candidate == fast.id
    assert hashes.template == fast.template.id
    assert hashes.source == hashlib.sha256(fast.template.source.encode()).hexdigest()
    assert hashes.problem == PROBLEM.id
    assert hashes.artifact == "b" * 64
    assert len({hashes.rules, hashes.plan, hashes.configuration}) == 3


def test_every_check_is_listed_by_its_name(memory_file: Path) -> None:
    certificate = issue(memory_file)
    assert [part.check for part in certificate.checks] == list(Check)
    assert check(certificate, Check.VALUES)[0] == "passed"
    assert "6 timed runs of 3 cases" in check(certificate, Check.VALUES)[1]
    assert "worst error 0.25 of the tolerance; 3 input sets" in check(certificate, Check.VALUES)[1]
    assert check(certificate, Check.STRESS_INPUTS) == (
        "passed",
        "2 trials passed: N=1000 large, N=1000 tiny",
    )
    assert check(certificate, Check.SANITIZER) == (
        "passed",
        "memcheck, racecheck found nothing (sandbox without: seccomp)",
    )
    assert check(certificate, Check.CHECKED_MODE) == ("not run", "the device cuda has none")
    assert check(certificate, Check.REPEAT)[0] == "passed"
    assert "floor's speed in case" in check(certificate, Check.FLOOR)[1]


def test_what_is_not_recorded_is_not_passed(memory_file: Path) -> None:
    missing = {TRIALS + leader().id: "", f"sanitizer:{leader().id}": ""}
    certificate = issue(memory_file, notes={**missing, "timing": "", "ceilings": "", "selftest": ""})
    for name in (
        Check.STRESS_INPUTS, Check.OTHER_SIZES, Check.SANITIZER, Check.POISON, Check.REPEAT, Check.GUARD_BANDS,
        Check.INPUTS_UNCHANGED,
    ):  # fmt: skip
        assert check(certificate, name) == ("not run", "not recorded by the campaign")
    assert check(certificate, Check.FLOOR) == ("not run", "the ceilings of the device are not known")
    assert "the problem's self-test: not recorded" in certificate.warnings
    assert certificate.cases[0].floor_ms is None


@pytest.mark.parametrize(
    ("note", "value", "name", "why"),
    [
        (TRIALS, "[]", Check.OTHER_SIZES, "the problem has no such trials"),
        (TRIALS, '{"all": "of them"}', Check.STRESS_INPUTS, "not recorded by the campaign"),
        (TRIALS, '[{"id": "N=1", "check": "trust me"}]', Check.STRESS_INPUTS, "not recorded by the campaign"),
        (
            "sanitizer:",
            '{"status": "not_run", "reason": "racecheck: did not end within 20 s", "tools": ["memcheck"]}',
            Check.SANITIZER,
            "racecheck: did not end within 20 s; memcheck found nothing",
        ),
        ("sanitizer:", '{"status": "measured"}', Check.SANITIZER, "the answer was measured"),
        (
            "sanitizer:",
            '{"status": "measured", "tools": ["checked mode"]}',
            Check.SANITIZER,
            "a tool for GPUs; instead, on two cases and small trials: checked mode found nothing",
        ),
    ],
    ids=["no trials", "odd trials", "odd check", "partly", "no tools", "cpu"],
)
def test_why_a_check_was_not_run(memory_file: Path, note: str, value: str, name: Check, why: str) -> None:
    certificate = issue(memory_file, notes={note + leader().id: value})
    assert check(certificate, name) == ("not run", why)


def test_a_disqualified_candidate_has_none(memory_file: Path) -> None:
    fault = {f"disqualified:{leader().id}": '{"reason": "compute-sanitizer: a race", "seconds": 1.0}'}
    with pytest.raises(UserError, match="disqualified: compute-sanitizer: a race"):
        issue(memory_file, notes=fault)


def test_declared_noise_is_no_repeat(memory_file: Path) -> None:
    with opened(memory_file, more=NOISY) as memory:
        certificate = build_certificate(memory, memory.campaign(CAMPAIGN), leader(NOISY).id)
    assert check(certificate, Check.REPEAT)[0] == "not run"
    assert "atomic noise" in check(certificate, Check.REPEAT)[1]


def test_ratio_has_its_interval_from_the_duel(memory_file: Path) -> None:
    certificate = issue(memory_file)
    ratio = certificate.ratio_to_baseline
    assert (ratio.ratio, ratio.low, ratio.high, ratio.confidence) == (0.5, 0.49, 0.51, 0.99)
    assert ratio.against == baseline().id
    assert certificate.confirmation is not None
    assert certificate.promotion is not None
    assert certificate.promotion.number < certificate.confirmation.number
    assert certificate.confirmation.samples_ms[CASES[0]] == ((1.0, 2.0), (1.1, 2.1)) * 2
    assert (certificate.statistics.duels, certificate.statistics.promotions) == (1, 1)


def test_without_a_duel_there_is_no_interval(memory_file: Path) -> None:
    ratio = issue(memory_file, duel=False).ratio_to_baseline
    assert ratio.ratio == pytest.approx(0.5)
    assert (ratio.low, ratio.high) == (None, None)
    assert "no duel with the baseline is recorded" in ratio.source


def test_the_strongest_reference_is_optional(memory_file: Path) -> None:
    noted = json.dumps({"name": "vendor library", "ratio": 0.9, "low": 0.8, "high": 1.0, "confidence": 0.99})
    found = issue(memory_file, notes={"strongest": noted}).ratio_to_strongest
    assert found is not None
    assert (found.against, found.ratio, found.high) == ("vendor library", 0.9, 1.0)


def test_the_reference_of_another_candidate_is_not_this_ones(memory_file: Path) -> None:
    noted = json.dumps({"name": "vendor library", "ratio": 4.0, "candidate": "the baseline's"})
    assert issue(memory_file, notes={"strongest": noted}).ratio_to_strongest is None


def test_the_baseline_itself_can_be_certified(memory_file: Path) -> None:
    with opened(memory_file) as memory:
        certificate = build_certificate(memory, memory.campaign(CAMPAIGN), baseline().id)
    assert certificate.ratio_to_baseline.ratio == 1.0
    assert certificate.promotion is None


def test_it_is_kept_in_the_memory_with_its_hash(memory_file: Path) -> None:
    issued = issue(memory_file)
    with Memory.open(memory_file, read_only=True) as memory:
        (kept,) = memory.certificates(CAMPAIGN)
    again = Certificate.model_validate_json(kept.document)
    assert again == issued
    assert kept.candidate == issued.hashes.candidate
    assert again.content_hash() == again.content_sha256


def test_what_was_not_measured_has_none(memory_file: Path) -> None:
    with opened(memory_file) as memory, pytest.raises(UserError, match="nothing to certify"):
        build_certificate(memory, memory.campaign(CAMPAIGN), "c0000")


def test_markdown(memory_file: Path) -> None:
    text = as_markdown(issue(memory_file))
    assert HASH.sub("HASH", text) == EXPECTED.read_text(encoding="utf-8")


def test_words_of_others_break_no_table(memory_file: Path) -> None:
    odd = json.dumps({"status": "not_run", "reason": "a | b\n| c"})
    text = as_markdown(issue(memory_file, notes={f"sanitizer:{leader().id}": odd}))
    assert "| compute-sanitizer | not run | a \\| b \\| c |" in text
