"""From a candidate's outcome to a verdict, and from the verdicts to a report."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from kernelwright.core.outcome import KILLED, Outcome, Status
from kernelwright.gauntlet.entry import Entry


class Verdict(StrEnum):
    """What became of one file. Only the first three are as it should be; ``NOT_RUN`` proves nothing."""

    CAUGHT = "caught"
    HONEST = "honest"
    NOT_RUN = "not run"
    PASSED = "passed"
    WRONG_CHECK = "wrong check"
    FALSE_ALARM = "false alarm"
    ERROR = "harness failed"


FAILURES = frozenset({Verdict.PASSED, Verdict.WRONG_CHECK, Verdict.FALSE_ALARM, Verdict.ERROR})


@dataclass(frozen=True)
class Row:
    """One file's line of the report. ``seconds`` are those of the harness: compiling, checking, timing."""

    file: str
    problem: str
    kind: str
    row: str
    status: str
    check: str
    reason: str
    expected: tuple[str, ...]
    seconds: float
    verdict: Verdict


@dataclass(frozen=True)
class Report:
    """All rows on one device. ``interrupted``: those that were not done by then stand as not run."""

    device: str
    model: str
    rows: tuple[Row, ...]
    interrupted: bool = False

    def count(self, *verdicts: Verdict) -> int:
        """Rows that ended so."""
        return sum(row.verdict in verdicts for row in self.rows)

    @property
    def failures(self) -> tuple[Row, ...]:
        """Rows that are not as they should be."""
        return tuple(row for row in self.rows if row.verdict in FAILURES)

    def as_json(self) -> dict[str, Any]:
        """For scripts. ``caught`` counts only what a named check caught; ``passed`` is any cheat that was measured."""
        return {
            "device": self.device,
            "device_model": self.model,
            "cheats": sum(row.kind == "cheat" for row in self.rows),
            "caught": self.count(Verdict.CAUGHT),
            "passed": self.count(Verdict.PASSED),
            "wrong_check": self.count(Verdict.WRONG_CHECK),
            "honest": sum(row.kind == "honest" for row in self.rows),
            "false_alarms": self.count(Verdict.FALSE_ALARM),
            "not_run": self.count(Verdict.NOT_RUN),
            "errors": self.count(Verdict.ERROR),
            "interrupted": self.interrupted,
            "rows": [asdict(row) for row in self.rows],
        }


def judge(entry: Entry, outcome: Outcome) -> Row:
    """Verdict on a candidate that went through the harness."""
    seconds = sum(outcome.seconds.values())
    verdict, reason = _verdict(entry, outcome), outcome.reason
    if verdict is Verdict.WRONG_CHECK:
        expected = ", ".join(entry.checks)
        reason = f"caught by {outcome.check or 'no named check'}, expected {expected}: {reason}"
    return make_row(
        entry, verdict, status=outcome.status, check=outcome.check, reason=reason, seconds=seconds
    )


def make_row(
    entry: Entry, verdict: Verdict, *, status: str, check: str = "", reason: str = "", seconds: float = 0.0
) -> Row:
    """A row of the report; the reason in one line."""
    return Row(
        file=entry.file,
        problem=entry.problem.rpartition("/")[2],
        kind=entry.kind,
        row=entry.row,
        status=str(status),
        check=str(check),
        reason=" ".join(reason.split())[:500],
        expected=tuple(str(name) for name in entry.checks),
        seconds=round(seconds, 3),
        verdict=verdict,
    )


def _verdict(entry: Entry, outcome: Outcome) -> Verdict:
    if outcome.check == KILLED:
        return Verdict.ERROR
    if outcome.status is Status.NOT_RUN:
        return Verdict.NOT_RUN
    if outcome.status is Status.MEASURED:
        return Verdict.PASSED if entry.kind == "cheat" else Verdict.HONEST
    if entry.kind == "honest":
        return Verdict.FALSE_ALARM
    return Verdict.CAUGHT if outcome.check in entry.checks else Verdict.WRONG_CHECK
