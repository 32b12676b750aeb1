"""A ratio now against a recorded one."""

import pytest

from kernelwright.replay import Verdict
from kernelwright.replay.paired import Interval, compared, process_spread

THEN = Interval(0.5, 0.498, 0.502)


@pytest.mark.parametrize(
    ("now", "verdict", "reason"),
    [
        (Interval(0.501, 0.499, 0.503), Verdict.REPRODUCED, "the intervals overlap"),
        (Interval(0.508, 0.506, 0.510), Verdict.REPRODUCED, "0.8% apart, within the 2.0%"),
        (Interval(0.492, 0.490, 0.494), Verdict.REPRODUCED, "within the 2.0%"),
        (Interval(0.55, 0.545, 0.555), Verdict.NOT_REPRODUCED, "8.6% apart (+10.0%)"),
        (Interval(0.40, 0.39, 0.41), Verdict.NOT_REPRODUCED, "(-20.0%)"),
        (Interval(0.50, 0.40, 0.60), Verdict.NOT_JUDGED, "the device is too noisy"),
        (Interval(0.90, 0.70, 1.10), Verdict.NOT_REPRODUCED, "(+80.0%)"),
    ],
)
def test_compared(now: Interval, verdict: Verdict, reason: str) -> None:
    part = compared(THEN, now, 0.02)
    assert part.verdict is verdict
    assert reason in part.reason


def test_a_record_that_was_unsure_confirms_nothing() -> None:
    part = compared(Interval(0.5, 0.3, 0.8), THEN, 0.02)
    assert part.verdict is Verdict.NOT_JUDGED
    assert "too noisy then" in part.reason


def test_a_small_gain_needs_a_narrow_interval() -> None:
    small = Interval(0.98, 0.979, 0.981)
    assert compared(small, Interval(0.98, 0.95, 1.01), 0.02).verdict is Verdict.NOT_JUDGED
    assert compared(small, Interval(0.98, 0.975, 0.985), 0.02).verdict is Verdict.REPRODUCED


def test_short_kernels_and_other_devices_differ_more() -> None:
    assert process_spread(0.1, same_device=True) == process_spread(10.0, same_device=False) == 0.02
    assert process_spread(10.0, same_device=True) == 0.005


def test_a_record_whose_sides_did_not_run_in_turn_is_less_sure() -> None:
    now = Interval(0.515, 0.514, 0.516)
    assert compared(THEN, now, 0.02).verdict is Verdict.NOT_REPRODUCED
    part = compared(THEN, now, 0.02, paired=False)
    assert part.verdict is Verdict.REPRODUCED
    assert "then (not run in turn)" in part.reason
    assert compared(THEN, Interval(0.53, 0.529, 0.531), 0.02, paired=False).verdict is Verdict.NOT_REPRODUCED
