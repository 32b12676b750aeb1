"""Two candidates timed in turn: slow drift of the device hits both alike."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Final

from kernelwright.core.errors import HarnessError
from kernelwright.core.outcome import Status
from kernelwright.devices.base import CaseRequest, Contestant, DuelCase, DuelRequest
from kernelwright.devices.cuda.bench import Bench, is_short
from kernelwright.devices.cuda.library import Library
from kernelwright.devices.cuda.module import loaded
from kernelwright.devices.cuda.operations import CandidateFailed, blame
from kernelwright.devices.cuda.session import Entrant, Step
from kernelwright.devices.cuda.watched import Repeats, Slot

SIDES: Final = ("challenger", "incumbent")
_DOUBTFUL: Final = (Status.WRONG, Status.UNSTABLE)
"""Both sides use the same inputs and outputs: who changes an input can make the other one wrong, and put it back. Each
side runs alone then; what neither does alone is laid to the challenger."""


def duel(bench: Bench, request: DuelRequest, library: Library | None = None) -> tuple[DuelCase, ...]:
    """Every case of both sides once, checked; then, loaded anew, ``rounds`` pairs of timed runs a case, each checked.

    Each duel has the inputs at places of its own. Within a case the order is ABBA ABBA ..., beginning with a side drawn
    at random; both runs of a pair have the same input set, an overwritten L2 cache, and write to the same addresses,
    where their buffers are alike: how long atomics to a few counters take depends on the address. Raises CandidateFailed
    with the side at fault. ``library`` stands for a side without an artifact.
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
                    bench.in_time(entrant, case, bench.check(entrant, case).first_ms, runs)
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
    try:
        return _fought(bench, entrants, pair, runs)
    except CandidateFailed as failure:
        if failure.status not in _DOUBTFUL:
            raise
        found = failure
    bench.store.clear()
    for entrant, case in zip(entrants, pair, strict=True):
        _alone(bench, entrant, case, runs)
    found.side = SIDES[0]
    raise found


def _alone(bench: Bench, entrant: Entrant, case: CaseRequest, runs: int) -> None:
    """The runs of one side on fresh inputs. Raises CandidateFailed if the fault is its own."""
    with (
        blame(entrant.side),
        bench.session(entrant, case, runs) as session,
        session.graph() if is_short(case, bench.timing) else nullcontext() as graph,
    ):
        bench.take(bench.steps(session, runs, graph))


def _fought(
    bench: Bench, entrants: tuple[Entrant, ...], pair: tuple[CaseRequest, ...], runs: int
) -> DuelCase:
    short, beside = is_short(pair[0], bench.timing), list[Slot]()
    bench.store.move(pair[0].case)
    with ExitStack() as stack:
        sides = []
        for entrant, case in zip(entrants, pair, strict=True):
            with blame(entrant.side):
                session = stack.enter_context(bench.session(entrant, case, runs, beside))
                graph = stack.enter_context(session.graph()) if short else None
            sides.append(bench.steps(session, runs, graph))
            beside = session.slots
        starts = secrets.randbelow(2)
        block = bench.take(_in_turn(sides[0], sides[1], starts))
    divisor, dropped = len(beside) if short else 1, bench.timing.dropped
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

    So the first of a round does not keep its outputs. And only the first has its lead: with both, sides would not stand
    at all places of the queue alike.
    """
    steps = []
    for index, pair in enumerate(zip(challenger, incumbent, strict=True)):
        first = (starts + index) % 2
        rivals = [step.session.siblings(step.slots) for step in pair]
        steps.append(pair[first]._replace(rivals=rivals[1 - first], holds=False))
        steps.append(pair[1 - first]._replace(rivals=rivals[first], lead=0))
    return steps


def _by_side(samples: list[float], starts: int) -> tuple[list[float], list[float]]:
    """Samples of challenger and incumbent from the order of :func:`_in_turn`."""
    sides: tuple[list[float], list[float]] = ([], [])
    for index in range(len(samples) // 2):
        first = (starts + index) % 2
        sides[first].append(samples[2 * index])
        sides[1 - first].append(samples[2 * index + 1])
    return sides
