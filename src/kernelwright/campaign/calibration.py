"""Whether the harness here and a board tell the same time: the baseline on both, case by case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from statistics import median
from typing import Final

from kernelwright.leaderboard.base import CaseTime

STEP: Final = 0.02
"""Share by which the two may differ."""
SURE: Final = 3.0
"""Standard errors that a difference may have beside."""
SMALL_MS: Final = 0.1
"""Below this time of a case, launches and what the caches hold weigh."""


class Agreement(StrEnum):
    """What a comparison says. Only the first two let a campaign submit."""

    AGREES = "agrees"
    FACTOR = "factor"
    SMALL = "small cases differ"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Calibration:
    """``factor`` is official over local time; ``ratios`` by case; ``text`` tells people."""

    agreement: Agreement
    factor: float
    ratios: Mapping[str, float]
    text: str

    @property
    def usable(self) -> bool:
        """Whether times here tell what the board will say."""
        return self.agreement in {Agreement.AGREES, Agreement.FACTOR}


def calibrate(
    local_ms: Mapping[str, float], errors_ms: Mapping[str, float], official: Mapping[str, CaseTime]
) -> Calibration:
    """Compare the cases that both have."""
    ratios = {case: 1e3 * time.mean_s / local_ms[case] for case, time in official.items() if case in local_ms}
    if not ratios:
        return Calibration(Agreement.UNCLEAR, 1.0, {}, "the board told no time of any case that is ours")
    slack = {
        case: STEP + SURE * _error(local_ms[case], errors_ms.get(case), official[case]) for case in ratios
    }
    middle = median(ratios.values())
    told = ", ".join(f"{case}: {100 * (ratio - 1):+.1f} %" for case, ratio in ratios.items())
    if _within(ratios, ratios, slack, 1.0):
        return Calibration(
            Agreement.AGREES, 1.0, ratios, f"official and local times agree within their noise ({told})"
        )
    if len(ratios) > 1 and _within(ratios, ratios, slack, middle):
        text = (
            f"official times are {middle:.4g} times the local ones in every case: another clock, unit or "
            f"statistic; local times are scaled ({told})"
        )
        return Calibration(Agreement.FACTOR, middle, ratios, text)
    large = [case for case in ratios if local_ms[case] >= SMALL_MS]
    if large and _within(large, ratios, slack, 1.0):
        text = (
            f"official times differ in small cases only: what the L2 holds, or the cost of a launch ({told})"
        )
        return Calibration(Agreement.SMALL, 1.0, ratios, text)
    text = f"official and local times differ without a pattern ({told})"
    return Calibration(Agreement.UNCLEAR, middle, ratios, text)


def _within(
    cases: Sequence[str] | Mapping[str, float],
    ratios: Mapping[str, float],
    slack: Mapping[str, float],
    factor: float,
) -> bool:
    return all(abs(ratios[case] / factor - 1) <= slack[case] for case in cases)


def _error(local_ms: float, error_ms: float | None, official: CaseTime) -> float:
    """Standard error of the ratio, as a share."""
    local = (error_ms or 0.0) / local_ms
    theirs = 0.0
    if official.std_s is not None and official.runs and official.mean_s > 0:
        theirs = official.std_s / official.mean_s / sqrt(official.runs)
    return sqrt(local**2 + theirs**2)


def by_our_cases(
    official: Sequence[CaseTime],
    ours: Mapping[str, Mapping[str, int]],
    known: Sequence[tuple[Mapping[str, object], str]] = (),
) -> dict[str, CaseTime]:
    """Official times by the id of our case.

    ``known`` is what a problem's folder says of the board's cases; else a case is ours when it has all our sizes.
    """
    found: dict[str, CaseTime] = {}
    for time in official:
        named = [case for arguments, case in known if case and dict(arguments) == dict(time.case)]
        sized = [case for case, sizes in ours.items() if sizes.items() <= dict(time.case).items()]
        for case in (named or sized)[:1]:
            found.setdefault(case, time)
    return found
