"""Times by case of two sessions on the same model of device."""

from dataclasses import dataclass
from math import hypot
from statistics import fmean
from typing import Final

from kernelwright.campaign.standing import SURE, median_errors
from kernelwright.core.outcome import CaseTiming, Outcome
from kernelwright.replay.paired import LAUNCH_MS, process_spread
from kernelwright.replay.verdicts import Part, failed, reproduced, unknown

NOISY: Final = 0.1
"""Share of a time that the tolerance may be before agreement says nothing."""
SHORT: Final = 0.05
"""Share of a time by which two devices' launches may differ before their times say nothing: below 10 us."""


def timed_otherwise(then: Outcome, now: Outcome) -> str:
    """Where both were not timed in the same way, so that times say nothing; empty where they were."""
    methods = {timing.case: timing.method for timing in now.cases}
    for timing in then.cases:
        if methods.get(timing.case, timing.method) != timing.method:
            return f"{timing.case} was timed by {timing.method}, now by {methods[timing.case]}"
    return ""


@dataclass(frozen=True)
class Shift:
    """A case's median now over the recorded one, less 1, and how far it may be off.

    ``launch`` is the part of the tolerance that is for another device's launches.
    """

    case: str
    then_ms: float
    now_ms: float
    tolerance: float
    launch: float = 0.0

    @property
    def share(self) -> float:
        """Under 0 is faster than recorded."""
        return self.now_ms / self.then_ms - 1

    @property
    def is_short(self) -> bool:
        """Whether launches are so much of its time that another device's tells nothing."""
        return self.launch > SHORT

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
    found = []
    for timing in then.cases:
        if timing.case in measured:
            time = timing.median_ms
            launch = 0.0 if same_device else LAUNCH_MS / time
            noise = SURE * hypot(before[timing.case], after[timing.case]) / time
            tolerance = process_spread(time, same_device=same_device) + noise + launch
            found.append(Shift(timing.case, time, measured[timing.case].median_ms, tolerance, launch))
    return found


def times_part(winner: list[Shift], baseline: list[Shift]) -> Part:
    """Whether the winner's times are the recorded ones.

    Where the baseline is as much slower or faster on the same case, it is the device that differs, not the kernel.
    """
    numbers = {shift.case: shift.share for shift in winner}
    compared = [shift for shift in winner if not shift.is_short]
    left_out = _left_out([shift for shift in winner if shift.is_short])
    if not compared:
        return unknown(
            "times", f"every case is too short for another device's time: {_worst(winner)}", **numbers
        )
    off = [shift for shift in compared if not shift.is_within]
    if not off:
        mean = fmean(shift.share for shift in compared)
        noisy = [shift for shift in compared if shift.tolerance - shift.launch > NOISY]
        if noisy:
            return unknown("times", f"the device is too noisy: {noisy[0]}", **numbers)
        told = f"every case within its tolerance, {mean:+.1%} in the mean; {_worst(compared)}{left_out}"
        return reproduced("times", told, **numbers)
    beside = {shift.case: shift for shift in baseline}
    own = [shift for shift in off if not _shared(shift, beside.get(shift.case))]
    if own:
        return failed(
            "times", f"{len(own)} of {len(compared)} cases are off: {_worst(own)}{left_out}", **numbers
        )
    return unknown(
        "times", f"the device is another than then, the baseline shifts alike: {_worst(off)}", **numbers
    )


def _left_out(short: list[Shift]) -> str:
    if not short:
        return ""
    worst = max(short, key=lambda shift: abs(shift.share))
    return (
        f"; left out as too short for another device: {len(short)}, at most "
        f"{1e3 * (worst.now_ms - worst.then_ms):+.2f} us ({worst.case})"
    )


def _shared(shift: Shift, baseline: Shift | None) -> bool:
    if baseline is None or baseline.is_within:
        return False
    return abs(shift.share - baseline.share) <= shift.tolerance + baseline.tolerance


def _worst(some: list[Shift]) -> Shift:
    return max(some, key=lambda shift: abs(shift.share) / shift.tolerance)
