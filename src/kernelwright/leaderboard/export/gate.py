"""What is looked at before a file goes to a board: checks in order, each with a name and an answer of its own.

What was not run is never a pass, and what refuses ends the costly checks behind it.
"""

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Final

from kernelwright.leaderboard.kernelbot.facts import BANNED, MAX_BYTES

EXTENSIONS: Final = (".py",)
KERNELGUARD_S: Final = 60.0
_SHOWN: Final = 200


class Answer(StrEnum):
    """What a check says."""

    PASSED = "passed"
    REFUSED = "refused"
    NOT_RUN = "not_run"


@dataclass(frozen=True)
class Finding:
    """One check's answer; ``detail`` is one line."""

    check: str
    answer: Answer
    detail: str = ""


Judge = Callable[[str], tuple[Answer, str]]
"""Looks at the file's text; the second part is the reason."""


@dataclass(frozen=True)
class Gate:
    """The checks' order.

    ``rules`` are ours on the candidate, ``host`` is on what a board's host would run of it, ``replay`` is the board's
    own timing on this machine. A board may take less than ``max_bytes``.
    """

    max_bytes: int = MAX_BYTES
    rules: Judge | None = None
    host: Judge | None = None
    replay: Judge | None = None

    def examine(self, data: bytes, name: str = "submission.py") -> tuple[Finding, ...]:
        """All findings, in order. Never raises for a file."""
        findings = [_finding("size", *self._size(data)), _finding("extension", *_extension(name))]
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            findings.append(Finding("encoding", Answer.REFUSED, f"byte {error.start} is not UTF-8"))
            text = None
        else:
            findings.append(Finding("encoding", Answer.PASSED))
        later: list[tuple[str, Judge | None]] = [
            ("banned word", _word),
            ("syntax", _syntax),
            ("kernelguard", kernelguard),
            ("rules", self.rules),
            ("host code", self.host),
            ("official timing", self.replay),
        ]
        for check, judge in later:
            findings.append(_look(check, judge, text, findings))
        return tuple(findings)

    def _size(self, data: bytes) -> tuple[Answer, str]:
        if not 0 < len(data) <= self.max_bytes:
            return Answer.REFUSED, f"{len(data)} bytes, 1 to {self.max_bytes} are accepted"
        return Answer.PASSED, f"{len(data)} bytes"


def refused(findings: tuple[Finding, ...]) -> Finding | None:
    """The first check that refuses; ``None``: the file may be sent."""
    return next((finding for finding in findings if finding.answer is Answer.REFUSED), None)


def _look(check: str, judge: Judge | None, text: str | None, before: list[Finding]) -> Finding:
    stopped = refused(tuple(before))
    if stopped or text is None:
        return Finding(check, Answer.NOT_RUN, f"{stopped.check if stopped else 'encoding'} refused it before")
    if judge is None:
        return Finding(check, Answer.NOT_RUN, "not asked for")
    return _finding(check, *judge(text))


def _finding(check: str, answer: Answer, detail: str) -> Finding:
    return Finding(check, answer, " ".join(detail.split())[:_SHOWN])


def _extension(name: str) -> tuple[Answer, str]:
    suffix = PurePath(name).suffix
    if suffix not in EXTENSIONS:
        return Answer.REFUSED, f"the file's name must end in {' or '.join(EXTENSIONS)}, not in {suffix!r}"
    return Answer.PASSED, suffix


def _word(text: str) -> tuple[Answer, str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if BANNED in line.lower():
            return Answer.REFUSED, f"line {number} has {BANNED!r}: {line.strip()[:80]!r}"
    return Answer.PASSED, ""


def _syntax(text: str) -> tuple[Answer, str]:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Answer.REFUSED, f"not valid Python: {error}"
    return Answer.PASSED, ""


def kernelguard(text: str, command: str | None = None) -> tuple[Answer, str]:
    """GPU MODE's own filter, where it is installed (``pip install kernelguard``): a program that reads the text."""
    program = command or shutil.which("kernelguard") or _beside_python()
    if program is None:
        return Answer.NOT_RUN, "kernelguard is not installed: pip install kernelguard"
    try:
        done = subprocess.run(
            [program, "--api-mode"],
            input=text.encode(),
            capture_output=True,
            timeout=KERNELGUARD_S,
            check=False,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        )
        answer = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError, RecursionError) as error:
        return Answer.NOT_RUN, f"kernelguard gave no answer: {type(error).__name__}"
    if not isinstance(answer, dict) or not isinstance(answer.get("should_filter"), bool):
        return Answer.NOT_RUN, "kernelguard gave an answer that is not understood"
    kind = str(answer.get("classification", ""))
    if answer["should_filter"]:
        return Answer.REFUSED, f"{kind}: {', '.join(_patterns(answer.get('matched_patterns')))}"
    return Answer.PASSED, kind


def _patterns(found: object) -> list[str]:
    entries = found if isinstance(found, list) else []
    return list(dict.fromkeys(str(e.get("pattern", "")) for e in entries if isinstance(e, dict)))


def _beside_python() -> str | None:
    path = Path(sys.executable).with_name("kernelguard")
    return str(path) if path.is_file() else None
