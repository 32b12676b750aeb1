"""Times by case of two sessions on the same model of device."""

from dataclasses import dataclass
from math import hypot
from statistics import fmean
from typing import Final

from kernelwright.campaign.standing import SURE, median_errors
from kernelwright.core.outcome import CaseTiming, Outcome
from kernelwright.replay.paired import process_spread
from kernelwright.replay.verdicts import Part, failed, reproduced, unknown

NOISY: Final = 0.1
"""Share of a time that the tolerance may be before agreement says nothing."""


def timed_otherwise(then: Outcome, now: Outcome) -> str:
    """Where both were not timed in the same way, so that times say nothing; empty where they were."""
    methods = {timing.case: timing.method for timing in now.cases}
    for timing in then.cases:
        if methods.get(timing.case, timing.method) != timing.method:
            return f"{timing.case} was timed by {timing.method}, now by {methods[timing.case]}"
    return ""


@dataclass(frozen=True)
class Shift:
    """A case's median now over the recorded one, less 1, and how far it may be off."""

    case: str
    then_ms: float
    now_ms: float
    tolerance: float

    @property
    def share(self) -> float:
        """Under 0 is faster than recorded."""
        return self.now_ms / self.then_ms - 1

    @property
    def is_within(self) -> bool:
        """Whether the difference is what the samples' spread and another process explain."""
        return abs(self.share) <= self.tolerance

    def __str__(self) -> str:
        return f"{self.case} {self.then_ms:.4g} ms then, {self.now_ms:.4g} ms now ({self.share:+.1%}, {self.tolerance:.1%} allowed)"


def shifts(then: Outcome, now: Outcome, *, same_device: bool) -> list[Shift]:
    """By case, in the recorded order. Both outcomes are measured."""
    before, after = median_errors(then), median_errors(now)
    measured: dict[str, CaseTiming] = {timing.case: timing for timing in now.cases}
    return [
        Shift(
            timing.case,
            timing.median_ms,
            measured[timing.case].median_ms,
            process_spread(timing.median_ms, same_device=same_device)
            + SURE * hypot(before[timing.case], after[timing.case]) / timing.median_ms,
        )
        for timing in then.cases
        if timing.case in measured
    ]


def times_part(winner: list[Shift], baseline: list[Shift]) -> Part:
    """Whether the winner's times are the recorded ones.

    Where the baseline is as much slower or faster on the same case, it is the device that differs, not the kernel.
    """
    off = [shift for shift in winner if not shift.is_within]
    numbers = {shift.case: shift.share for shift in winner}
    if not off:
        mean = fmean(shift.share for shift in winner)
        noisy = [shift for shift in winner if shift.tolerance > NOISY]
        if noisy:
            return unknown("times", f"the device is too noisy: {noisy[0]}", **numbers)
        return reproduced(
            "times", f"every case within its tolerance, {mean:+.1%} in the mean; {_worst(winner)}", **numbers
        )
    beside = {shift.case: shift for shift in baseline}
    own = [shift for shift in off if not _shared(shift, beside.get(shift.case))]
    if own:
        return failed("times", f"{len(own)} of {len(winner)} cases are off: {_worst(own)}", **numbers)
    return unknown(
        "times", f"the device is another than then, the baseline shifts alike: {_worst(off)}", **numbers
    )


def _shared(shift: Shift, baseline: Shift | None) -> bool:
    if baseline is None or baseline.is_within:
        return False
    return abs(shift.share - baseline.share) <= shift.tolerance + baseline.tolerance


def _worst(some: list[Shift]) -> Shift:
    return max(some, key=lambda shift: abs(shift.share) / shift.tolerance)
