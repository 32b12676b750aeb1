"""Times of two sessions: what another device of the same model may do to them."""

from kernelwright.core.outcome import CaseTiming, Outcome, Status
from kernelwright.replay import Verdict
from kernelwright.replay.times import shifts, times_part


def outcome(**ms: float) -> Outcome:
    cases = tuple(CaseTiming(name, (time,) * 8, "graph") for name, time in ms.items())
    return Outcome(Status.MEASURED, cases=cases)


def part(now: dict[str, float], *, same_device: bool, then: dict[str, float]) -> tuple[Verdict, str]:
    found = times_part(shifts(outcome(**then), outcome(**now), same_device=same_device), [])
    return found.verdict, found.reason


THEN = {"tiny": 0.004, "short": 0.03, "long": 2.0}
LATER = {name: time + 0.0004 for name, time in THEN.items()}


def test_another_devices_launches_are_not_the_kernels() -> None:
    verdict, reason = part(LATER, same_device=False, then=THEN)
    assert verdict is Verdict.REPRODUCED
    assert "left out as too short for another device: 1, at most +0.40 us (tiny)" in reason


def test_on_the_same_device_they_are() -> None:
    verdict, reason = part(LATER, same_device=True, then=THEN)
    assert verdict is Verdict.NOT_REPRODUCED
    assert reason.startswith("1 of 3 cases are off: tiny")


def test_a_longer_case_must_come_again_on_any_device() -> None:
    verdict, reason = part({**LATER, "long": 2.1}, same_device=False, then=THEN)
    assert verdict is Verdict.NOT_REPRODUCED
    assert reason.startswith("1 of 2 cases are off: long")


def test_nothing_but_short_cases_cannot_be_judged() -> None:
    verdict, reason = part({"tiny": 0.0041}, same_device=False, then={"tiny": 0.004})
    assert verdict is Verdict.NOT_JUDGED
    assert "too short" in reason
