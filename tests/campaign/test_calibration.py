from collections.abc import Mapping

import pytest

from kernelwright.campaign.calibration import Agreement, by_our_cases, calibrate
from kernelwright.leaderboard.base import CaseTime

LOCAL = {"a": 0.005, "b": 0.5, "c": 5.0}


def official(ratios: Mapping[str, float], std: float | None = None) -> dict[str, CaseTime]:
    return {
        case: CaseTime({}, 1e-3 * LOCAL[case] * ratio, None if std is None else std * LOCAL[case] * 1e-3, runs=4)
        for case, ratio in ratios.items()
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ratios", "agreement", "factor", "told"),
    [
        ({"a": 1.015, "b": 0.99, "c": 1.0}, Agreement.AGREES, 1.0, "agree"),
        ({"a": 1.31, "b": 1.29, "c": 1.3}, Agreement.FACTOR, 1.3, "another clock, unit or statistic"),
        ({"a": 1e3, "b": 1e3, "c": 1e3}, Agreement.FACTOR, 1e3, "unit"),
        ({"a": 1.4, "b": 1.01, "c": 0.99}, Agreement.SMALL, 1.0, "the L2 holds"),
        ({"a": 1.0, "b": 1.01, "c": 1.4}, Agreement.UNCLEAR, 1.01, "without a pattern"),
        ({"c": 1.4}, Agreement.UNCLEAR, 1.4, "+40.0 %"),
        ({}, Agreement.UNCLEAR, 1.0, "no time of any case that is ours"),
    ],
)
def test_what_differs_is_told(
    ratios: dict[str, float], agreement: Agreement, factor: float, told: str
) -> None:
    found = calibrate(LOCAL, {}, official(ratios))
    assert found.agreement is agreement
    assert found.factor == pytest.approx(factor)
    assert told in found.text
    assert found.usable is (agreement in {Agreement.AGREES, Agreement.FACTOR})


def test_noise_is_no_difference() -> None:
    assert calibrate(LOCAL, {}, official({"b": 1.05})).agreement is Agreement.UNCLEAR
    assert calibrate(LOCAL, {}, official({"b": 1.05}, std=0.04)).agreement is Agreement.AGREES
    assert calibrate(LOCAL, {"b": 0.01}, official({"b": 1.05})).agreement is Agreement.AGREES


def test_cases_are_found_by_their_sizes_or_by_what_the_folder_says() -> None:
    ours = {"N=4": {"N": 4}, "N=8": {"N": 8}}
    times = (CaseTime({"seed": 1, "N": 8}, 2.0), CaseTime({"N": 4, "seed": 2}, 1.0), CaseTime({"N": 5}, 3.0))
    assert {case: time.mean_s for case, time in by_our_cases(times, ours).items()} == {"N=8": 2.0, "N=4": 1.0}
    theirs = (CaseTime({"seed": 1, "size": 8}, 2.0),)
    assert by_our_cases(theirs, ours) == {}
    assert list(by_our_cases(theirs, ours, [({"size": 8, "seed": 1}, "N=8")])) == ["N=8"]
