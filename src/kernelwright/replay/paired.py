"""Two kernels in turn on the device as it is now, and how the ratio compares with a recorded one.

Times of two sessions cannot be paired, but ratios can be compared: what is different about the device today is
different for both sides.
"""

from dataclasses import dataclass
from math import exp, log
from typing import Final

from kernelwright.campaign.paired import Paired, Rounds, in_turn
from kernelwright.core.objective import Objective
from kernelwright.core.statistics import Decision
from kernelwright.replay.verdicts import Part, failed, reproduced, unknown

WIDE: Final = 0.1
"""Width of a log ratio's interval above which agreement with 1 says nothing: the device is noisy."""
WIDE_SHARE: Final = 0.33
"""The same for agreement with a gain, as a share of that."""
SHORT_MS: Final = 1.0
SPREAD: Final = 0.02
"""By how much kernels below :data:`SHORT_MS` differ from one process to the next on an H200 (docs/trust.md)."""
LONG_SPREAD: Final = 0.005
"""The same for longer ones."""
LAUNCH_MS: Final = 0.0005
"""By how much a run's time may differ, whatever its length, on another device of a model: 0.3 to 0.4 us were seen
between a campaign on one H200 and its replay on another (docs/replay.md)."""


def process_spread(time_ms: float, *, same_device: bool) -> float:
    """Share by which a time may differ in another process; two devices of one model are taken to differ as much at least."""
    return LONG_SPREAD if same_device and time_ms >= SHORT_MS else SPREAD


@dataclass(frozen=True)
class Interval:
    """A ratio of times with its interval (99 %)."""

    ratio: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of the log ratio."""
        return log(self.high / self.low)

    def gap(self, other: "Interval") -> float:
        """Log distance of two intervals; 0 when they overlap."""
        return max(0.0, log(self.low / other.high), log(other.low / self.high))

    def __str__(self) -> str:
        return f"{self.ratio:.4f} [{self.low:.4f}, {self.high:.4f}]"


def interval_of(decision: Decision) -> Interval | None:
    """Of a decision on measured rounds."""
    if decision.ratio is None or decision.low is None or decision.high is None:
        return None
    return Interval(decision.ratio, decision.low, decision.high)


async def fight(rounds: Rounds, objective: Objective, order: list[str]) -> Interval | str:
    """Ratio of the challenger's time to the incumbent's in as many rounds as it needs, or why there is none.

    ``order`` is the problem's order of cases.
    """
    return read(await in_turn(rounds, objective, order))


def read(found: Paired) -> Interval | str:
    """The interval, or why there is none."""
    last = found.last
    if found.failed:
        side = f"the {last.at_fault} " if last.at_fault else ""
        return f"{side}ended as {last.status} ({last.check or 'no check'}): {last.reason}"
    interval = interval_of(found.decision) if found.decision else None
    return interval or "the device was never undisturbed"


def compared(then: Interval, now: Interval, spread: float, *, paired: bool = True) -> Part:
    """Whether a ratio is the recorded one, within both intervals and the ``spread`` between processes.

    Where the recorded sides did not run in turn (not ``paired``), each of them may be off by the spread.
    """
    if not paired:
        spread = (1 + spread) ** 2 - 1
    numbers = {
        "recorded": then.ratio, "recorded_low": then.low, "recorded_high": then.high,
        "ratio": now.ratio, "low": now.low, "high": now.high,
    }  # fmt: skip
    gap = then.gap(now)
    both = f"{now} of the baseline's time now, {then} then{'' if paired else ' (not run in turn)'}"
    if gap > log(1 + spread):
        off = now.ratio / then.ratio - 1
        return failed("ratio", f"{both}: the intervals are {exp(gap) - 1:.1%} apart ({off:+.1%})", **numbers)
    widest = max(WIDE / 2, WIDE_SHARE * abs(log(then.ratio)))
    if now.width > widest:
        return unknown(
            "ratio", f"the device is too noisy: {both}: an interval as wide agrees with anything", **numbers
        )
    if then.width > widest:
        return unknown(
            "ratio",
            f"the device was too noisy then: {both}: an interval as wide agrees with anything",
            **numbers,
        )
    if gap:
        return reproduced(
            "ratio",
            f"{both}: {exp(gap) - 1:.1%} apart, within the {spread:.1%} by which {'processes' if paired else 'two processes each'} differ",
            **numbers,
        )
    return reproduced("ratio", f"{both}: the intervals overlap", **numbers)
