"""Fills a board with real entries, so that there is somebody to overtake."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

import numpy as np

from kernelwright.core.candidate import Candidate, Template
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import PlanError
from kernelwright.leaderboard.base import Mode, State
from kernelwright.leaderboard.local import LocalBoard
from kernelwright.problems.loader import Problem

DRAWN: Final = 1000
"""Configurations drawn from each template at most."""


async def fill(
    board: LocalBoard, problem: Problem, count: int, rng: Random, notify: Callable[[str], None]
) -> int:
    """Submit until ``count`` entries have passed; how many there are at the end.

    The board measures them all; a draw that fails is replaced by the next. Stops when nothing more can be drawn.
    """
    drawn = draws(problem, await board.facts(), rng)
    passed: list[str] = []
    while len(passed) < count:
        batch = [draw for _, draw in zip(range(count - len(passed)), drawn, strict=False)]
        if not batch:
            break
        sent = [
            (name, await board.send(candidate, Mode.RANKED, candidate.id, name)) for name, candidate in batch
        ]
        for name, each in sent:
            state = (await board.ended(each)).state
            if state is State.PASSED:
                passed.append(name)
            notify(f"{name}: {state}")
    return len(passed)


def draws(problem: Problem, facts: DeviceFacts, rng: Random) -> Iterator[tuple[str, Candidate]]:
    """The baseline first, then a configuration of each template in turn; names are unique."""
    templates = (problem.baseline(), *problem.templates())
    wells = [_configurations(template, facts, rng) for template in templates]
    while wells:
        for well in list(wells):
            found = next(well, None)
            if found is None:
                wells.remove(well)
            else:
                yield found


def _configurations(template: Template, facts: DeviceFacts, rng: Random) -> Iterator[tuple[str, Candidate]]:
    space = template.plan.space(facts)
    try:
        rows = space.sample(np.random.default_rng(rng.randrange(2**32)), DRAWN)
    except PlanError:
        return  # nothing is valid on this device
    order = rng.sample(range(len(rows)), len(rows))
    for number, index in enumerate(order, start=1):
        name = template.name if len(rows) == 1 else f"{template.name}-{number}"
        yield name, Candidate(template, space.configuration_of(rows[index]))
