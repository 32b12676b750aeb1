"""The dry run: every check has its own answer, and what was not run is no pass."""

import json
import os
from pathlib import Path

import pytest

from kernelwright.leaderboard.export import gate
from kernelwright.leaderboard.export.gate import Answer, Finding, Gate, kernelguard, refused

ORDER = [
    "size", "extension", "encoding", "banned word", "syntax", "kernelguard", "rules", "host code", "official timing",
]  # fmt: skip


def passing(_: str) -> tuple[Answer, str]:
    return Answer.PASSED, "looked at"


def answers(findings: tuple[Finding, ...]) -> dict[str, Answer]:
    assert [finding.check for finding in findings] == ORDER
    return {finding.check: finding.answer for finding in findings}


@pytest.fixture(autouse=True)
def _no_kernelguard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gate, "_beside_python", lambda: None)


def test_a_good_file_passes_what_can_be_run() -> None:
    findings = Gate(rules=passing, host=passing, replay=passing).examine(b"x = 1\n")
    found = answers(findings)
    assert found.pop("kernelguard") is Answer.NOT_RUN
    assert set(found.values()) == {Answer.PASSED}
    assert refused(findings) is None
    later = answers(Gate().examine(b"x = 1\n"))
    assert later["rules"] is later["official timing"] is Answer.NOT_RUN


@pytest.mark.parametrize(
    ("data", "name", "check"),
    [
        (b"x = 1\n" * 200_000, "s.py", "size"),
        (b"", "s.py", "size"),
        (b"x = 1\n", "s.txt", "extension"),
        (b"x = '\xff'\n", "s.py", "encoding"),
        (b"x = 1\n# an upSTREAM\n", "s.py", "banned word"),
        (b"x = = 1\n", "s.py", "syntax"),
        (b"x = '\0'\n", "s.py", "syntax"),
        (b"(" * 5000, "s.py", "syntax"),
    ],
)
def test_what_a_board_would_refuse(data: bytes, name: str, check: str) -> None:
    ran = []

    def late(text: str) -> tuple[Answer, str]:
        ran.append(text)
        return Answer.PASSED, ""

    findings = Gate(rules=late, host=late, replay=late).examine(data, name)
    fault = refused(findings)
    assert fault is not None
    assert fault.check == check
    assert "\n" not in fault.detail
    assert not ran
    assert answers(findings)["official timing"] is Answer.NOT_RUN


def test_our_rules_and_the_replay_refuse_too() -> None:
    findings = Gate(rules=lambda _: (Answer.REFUSED, "line 3:\n tensor cores"), replay=passing).examine(
        b"x = 1"
    )
    assert refused(findings) == Finding("rules", Answer.REFUSED, "line 3: tensor cores")
    assert findings[-1] == Finding("official timing", Answer.NOT_RUN, "rules refused it before")


def script(folder: Path, body: str) -> str:
    path = folder / "kernelguard"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


SAYS = {
    "classification": "hacked",
    "should_filter": True,
    "matched_patterns": [{"pattern": "A"}, {"pattern": "B"}],
}


@pytest.mark.parametrize(
    ("body", "answer", "detail"),
    [
        (f"cat > /dev/null; echo '{json.dumps(SAYS)}'", Answer.REFUSED, "hacked: A, B"),
        ("grep -q custom || exit 1; echo '{\"should_filter\": false, \"classification\": \"valid\"}'", Answer.PASSED, "valid"),
        ("echo nonsense", Answer.NOT_RUN, "no answer"),
        ("exit 3", Answer.NOT_RUN, "no answer"),
        ("echo '[1]'", Answer.NOT_RUN, "not understood"),
        ("echo '{\"should_filter\": 1}'", Answer.NOT_RUN, "not understood"),
        ("echo '{\"should_filter\": true, \"matched_patterns\": 7}'", Answer.REFUSED, ""),
    ],
)  # fmt: skip
def test_kernelguard(tmp_path: Path, body: str, answer: Answer, detail: str) -> None:
    got = kernelguard("def custom_kernel(data): ...", script(tmp_path, body))
    assert got[0] is answer
    assert detail in got[1]


def test_kernelguard_is_found_on_the_path(tmp_path: Path) -> None:
    script(tmp_path, 'echo \'{"should_filter": false, "classification": "valid"}\'')
    assert os.environ["PATH"] == str(tmp_path)
    assert answers(Gate().examine(b"x = 1"))["kernelguard"] is Answer.PASSED
