from dataclasses import fields, replace

from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.text import describe
from kernelwright.problems.spec import Rules

VALUES: dict[str, object] = {
    "max_registers": 64,
    "max_source_bytes": 1234,
    "allowed_headers": ("cuda_fp16.h",),
    "banned_words": ("printf",),
}


def test_every_rule_has_a_sentence() -> None:
    bare = replace(CandidateRules(), max_source_bytes=0)
    always = describe(bare)
    for rule in fields(CandidateRules):
        if rule.name == "sizes":
            continue
        held = describe(replace(bare, **{rule.name: VALUES.get(rule.name, True)}))  # type: ignore[arg-type]
        assert len(held) == len(always) + 1, rule.name
    text = " ".join(describe(replace(bare, **VALUES)))  # type: ignore[arg-type]
    for part in ("64 registers", "1234 bytes", "cuda_fp16.h", "printf"):
        assert part in text


def test_problems_can_set_every_rule() -> None:
    assert set(Rules.model_fields) == {rule.name for rule in fields(CandidateRules)} - {"sizes"}
