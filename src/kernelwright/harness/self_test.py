"""What a problem's self-test asks and answers. A problem that lets an impostor pass proves nothing of candidates."""

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Final

TRIALS: Final = "trials"
"""In place of a case's id: look at the problem's trials."""

RAISES: Final = "reference on a trial"
"""Name of the row of a reference that raises on a trial."""
LOOK_FLOPS: Final = 2**28
"""What a CPU computes many times over in seconds."""


class Verdict(StrEnum):
    """``WARNING`` follows every result of the problem, ``FAILED`` fails the test, ``NOTE`` is a figure to know."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAILED = "FAILED"
    SKIPPED = "not applicable"


@dataclass(frozen=True)
class SelfTestRequest:
    """Look at one case (by id), or at the :data:`TRIALS`.

    ``quick``: one call of the reference less a thing, and no figures.
    """

    case: str
    quick: bool = False


@dataclass(frozen=True)
class SelfTestRow:
    """One thing looked at on one case, what came out, and what to do about it."""

    name: str
    case: str
    verdict: Verdict
    detail: str = ""
    mend: str = ""


@dataclass(frozen=True)
class SelfTest:
    """All rows of a self-test."""

    rows: tuple[SelfTestRow, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed; warnings do not fail a problem."""
        return all(row.verdict is not Verdict.FAILED for row in self.rows)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each failure and each warning, to stand beside every result of the problem."""
        bad = (row for row in self.rows if row.verdict in {Verdict.FAILED, Verdict.WARNING})
        return tuple(dict.fromkeys(_line(row) for row in bad))


def _line(row: SelfTestRow) -> str:
    case = f" on {row.case}" if row.case else ""
    mend = f" ({row.mend})" if row.mend else ""
    return f"{row.name}{case}: {row.detail}{mend}"


def multiples(worst: float) -> str:
    """An error for people, in multiples of the tolerance."""
    return f"{worst:.2g} tolerances" if isfinite(worst) else "infinitely far off"
