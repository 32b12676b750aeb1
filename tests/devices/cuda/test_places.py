"""Where timed runs stand in groups of four entries of a GPU's queue."""

from collections import Counter
from itertools import accumulate, product
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwright.devices.base import TimingProtocol
from kernelwright.devices.cuda.bench import Bench
from kernelwright.devices.cuda.duel import _by_side, _in_turn
from kernelwright.devices.cuda.session import Step
from kernelwright.devices.cuda.watched import Slot


class Session:
    """Only makes steps."""

    def __init__(self, entries: int) -> None:
        self.entries = entries

    watched = SimpleNamespace(input_bytes=0)

    def siblings(self, slots: list[Slot]) -> list[Slot]:
        return slots

    def steps(self, runs: int, graph: None) -> list[Step]:
        step: Any = Step
        return [step(self, [], (), 0, "", False) for _ in range(runs)]


def steps_of(entries: int, runs: int) -> list[Step]:
    nothing: Any = None
    session: Any = Session(entries)
    bench = Bench(nothing, nothing, nothing, nothing, TimingProtocol(), 1.0)
    return bench.steps(session, runs, None)


def places(steps: list[Step]) -> list[int]:
    """The place of each run's first own entry in its group."""
    session: Any = [step.session for step in steps]
    after = accumulate(step.lead + own.entries for step, own in zip(steps, session, strict=True))
    return [(end - own.entries) % 4 for end, own in zip(after, session, strict=True)]


@pytest.mark.parametrize("entries", range(4, 8))
def test_the_runs_that_count_stand_at_each_place_twice(entries: int) -> None:
    protocol = TimingProtocol()
    kept = places(steps_of(entries, protocol.runs))[protocol.dropped :]
    assert Counter(kept) == {0: 2, 1: 2, 2: 2, 3: 2}


@pytest.mark.parametrize("starts", [0, 1])
def test_so_does_each_side_of_a_duel(starts: int) -> None:
    for one, other in product(range(4, 8), repeat=2):
        steps = _in_turn(steps_of(one, 8), steps_of(other, 8), starts)
        for side in _by_side([float(place) for place in places(steps)], starts):
            assert Counter(side) == {0.0: 2, 1.0: 2, 2.0: 2, 3.0: 2}
