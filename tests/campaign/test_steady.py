"""Reported medians are taken until they are steady, within the time that they may take."""

import random
import statistics

from kernelwright.campaign.steady import MOST_ROUNDS, PARTS, STEADY, in_parts, more_rounds
from kernelwright.devices.base import DuelCase


def noisy(case: str, ms: float, share: float, count: int, seed: int = 1) -> DuelCase:
    rng = random.Random(seed)
    sides = [tuple(ms * (1 + share * rng.gauss(0, 1)) for _ in range(count)) for _ in range(2)]
    return DuelCase(case, sides[0], sides[1], "events")


def test_steady_cases_need_no_more() -> None:
    assert more_rounds([(noisy("long", 25.0, 0.0005, 16),)], 10.0) == (0, ())


def test_only_the_noisy_cases_go_on_and_then_their_medians_are_found_again() -> None:
    batches = [(noisy("long", 25.0, 0.0005, 16), noisy("short", 0.06, 0.01, 16))]
    rounds, cases = more_rounds(batches, 10.0)
    assert cases == ("short",)
    assert 100 < rounds <= MOST_ROUNDS
    seen = [
        statistics.median(noisy("short", 0.06, 0.01, 16 + rounds, seed).challenger_ms) for seed in range(20)
    ]
    assert (max(seen) - min(seen)) / statistics.median(seen) < 0.005
    again = [(noisy("short", 0.06, 0.01, 16 + 3 * rounds),)]
    assert more_rounds(again, 10.0)[0] < rounds


def test_time_bounds_them() -> None:
    batches = [(noisy("slow", 10.0, 0.05, 16),)]
    assert more_rounds(batches, 0.5)[0] == int(0.5 / 2 / 0.0102)
    assert more_rounds(batches, 0.001) == (0, ())
    assert more_rounds(batches, 1e9)[0] == MOST_ROUNDS
    assert STEADY < 0.005


def test_rounds_are_divided_among_duels() -> None:
    """Where a process's binaries and buffers lie is luck: each duel has other luck."""
    assert in_parts(0) == ()
    assert in_parts(3) == (1, 1, 1)
    for rounds in (4, 7, 630, MOST_ROUNDS):
        parts = in_parts(rounds)
        assert len(parts) == PARTS
        assert sum(parts) == rounds
        assert max(parts) - min(parts) <= 1
