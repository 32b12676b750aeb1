"""Two candidates timed in turn: slow drift of the device hits both alike."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from kernelwright.core.errors import HarnessError
from kernelwright.devices.base import CaseRequest, Contestant, DuelCase, DuelRequest
from kernelwright.devices.cuda.bench import Bench, is_short
from kernelwright.devices.cuda.library import Library
from kernelwright.devices.cuda.module import loaded
from kernelwright.devices.cuda.operations import blame
from kernelwright.devices.cuda.session import Entrant, Step
from kernelwright.devices.cuda.watched import Repeats

SIDES: Final = ("challenger", "incumbent")


def duel(bench: Bench, request: DuelRequest, library: Library | None = None) -> tuple[DuelCase, ...]:
    """Every case of both sides once, checked; then, loaded anew, ``rounds`` pairs of timed runs a case, each checked.

    Within a case the order is ABBA ABBA ..., beginning with a side drawn at random; both runs of a pair have the same
    input set, an overwritten L2 cache, and lie in one queue behind one gate. Raises CandidateFailed with the side
    at fault. Damage to what both sides share (inputs) is laid to the challenger: the incumbent has passed before.
    ``library`` stands for a side without an artifact.
    """
    sides = (request.challenger, request.incumbent)
    names = [[case.case for case in side.cases] for side in sides]
    if names[0] != names[1]:
        raise HarnessError(f"a duel needs the same cases on both sides, got {names[0]} and {names[1]}")
    runs = request.rounds + request.timing.dropped
    repeats = (Repeats(), Repeats())
    with _entrants(bench, sides, repeats, library) as entrants:
        for entrant, side in zip(entrants, sides, strict=True):
            with blame(entrant.side):
                for case in side.cases:
                    bench.in_time(entrant, case, bench.check(entrant, case), runs)
    with _entrants(bench, sides, repeats, library) as entrants:
        pairs = zip(*(side.cases for side in sides), strict=True)
        return tuple(_case(bench, entrants, pair, runs) for pair in pairs)


@contextmanager
def _entrants(
    bench: Bench,
    sides: tuple[Contestant, Contestant],
    repeats: tuple[Repeats, Repeats],
    library: Library | None,
) -> Iterator[tuple[Entrant, ...]]:
    with ExitStack() as stack:
        entrants = []
        for name, side, seen in zip(SIDES, sides, repeats, strict=True):
            if library is not None and not side.artifact:
                entrants.append(Entrant(library, seen, name))
                continue
            with blame(name):
                module = stack.enter_context(loaded(bench.gpu, side.artifact))
            entrants.append(Entrant(module, seen, name))
        yield tuple(entrants)


def _case(bench: Bench, entrants: tuple[Entrant, ...], pair: tuple[CaseRequest, ...], runs: int) -> DuelCase:
    short = is_short(pair[0], bench.timing)
    slots = bench.slots(pair[0], runs)
    with ExitStack() as stack:
        sides = []
        for entrant, case in zip(entrants, pair, strict=True):
            with blame(entrant.side):
                session = stack.enter_context(bench.session(entrant, case, slots))
                graph = stack.enter_context(session.graph()) if short else None
            sides.append(bench.steps(session, runs, graph))
        starts = secrets.randbelow(2)
        block = bench.take(_in_turn(sides[0], sides[1], starts))
    divisor, dropped = slots if short else 1, bench.timing.dropped
    times = _by_side(block.samples_ms, starts)
    challenger, incumbent = (tuple(ms / divisor for ms in side[dropped:]) for side in times)
    return DuelCase(
        pair[0].case,
        challenger,
        incumbent,
        "graph" if short else "events",
        block.discarded,
        block.conditions,
    )


def _in_turn(challenger: list[Step], incumbent: list[Step], starts: int) -> list[Step]:
    """Steps in the order ABBA; each knows the other side's slots, whose outputs are overwritten before it.

    Only the first of a round has its lead: with both, sides would not stand at all places of the queue alike.
    """
    steps = []
    for index, pair in enumerate(zip(challenger, incumbent, strict=True)):
        first = (starts + index) % 2
        steps.append(pair[first]._replace(rivals=pair[1 - first].slots))
        steps.append(pair[1 - first]._replace(rivals=pair[first].slots, lead=0))
    return steps


def _by_side(samples: list[float], starts: int) -> tuple[list[float], list[float]]:
    """Samples of challenger and incumbent from the order of :func:`_in_turn`."""
    sides: tuple[list[float], list[float]] = ([], [])
    for index in range(len(samples) // 2):
        first = (starts + index) % 2
        sides[first].append(samples[2 * index])
        sides[1 - first].append(samples[2 * index + 1])
    return sides
