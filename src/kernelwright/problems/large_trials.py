"""Trials of large sizes: the cheap ones end where the cases begin that decide who leads, and thresholds are allowed.

They run for whoever is about to lead. Sizes off the list are drawn from the campaign's seed: those that everybody can
know are excluded by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from kernelwright.core.errors import ExpressionError
from kernelwright.problems.case import Case, Trial
from kernelwright.problems.inputs import generator
from kernelwright.problems.spec import ProblemSpec
from kernelwright.problems.trials import (
    CHEAP_ELEMENTS,
    MAX_FLOPS,
    is_cheap,
    is_sound,
    off_the_list,
    place_of,
    stress,
    work_of,
)

MOST_ELEMENTS: Final = 2**28
"""Elements of all arrays of a trial on a fast device: below what an int32 counts in bytes, twice."""
MOST_FLOPS: Final = 2**39
SPREAD: Final = 0.08
"""Share of a size by which it may lie off the way from one case to the next."""
AROUND: Final = ((0.9, 1.0, SPREAD), (0.98, 1.0, 0.002), (1.0, 1.02, 0.002), (1.0, 1.1, SPREAD))
"""Shares of the largest case's work between which sizes around it lie, and their spread: also its next neighbours."""
TRIES: Final = 100
REMAINDERS: Final = ((4, 1), (4, 2), (4, 3), (8, 4))
"""What tiles and wide accesses leave over: of every four trials in a row each size has every one of them."""
WHOLE: Final = 8
"""Sizes below are not bent to a remainder: one more is too much of them."""


@dataclass(frozen=True)
class _Span:
    """Sizes between those of two cases, of more work than ``low`` and less than ``high``."""

    begin: Mapping[str, int]
    end: Mapping[str, int]
    low: float
    high: float
    told: str
    spread: float = SPREAD


def make_large_trials(
    spec: ProblemSpec, cases: Sequence[Case], every_case: Sequence[Case], seed: int, *, slow: bool
) -> tuple[Trial, ...]:
    """Trials of the largest of ``cases`` that a device can afford; ``slow`` ones afford little. Sizes off the list last."""
    within = sorted(
        (case for case in cases if _affordable(spec, case.sizes, slow=slow)),
        key=lambda case: work_of(spec, case.sizes),
    )
    if not within:
        return ()
    slow_ids = within[0].slow
    found = [t for case in _largest(spec, within) for t in stress(spec, case, slow=slow_ids, large=True)]
    if spec.trials.other_sizes is True:
        listed = [dict(case.sizes) for case in every_case]
        spans = [*_between(spec, within), *_around(spec, within[-1])]
        rng = generator(seed, "sizes off the list")
        for turn, span in enumerate(spans, start=int(rng.integers(len(REMAINDERS)))):
            sizes = _drawn(spec, span, turn, rng, slow=slow)
            if sizes and sizes not in listed:
                listed.append(sizes)
                found.append(off_the_list(spec, sizes, turn, slow=slow_ids, told=span.told))
    return tuple(found)


def _affordable(spec: ProblemSpec, sizes: Mapping[str, int], *, slow: bool) -> bool:
    most, flops = (CHEAP_ELEMENTS, MAX_FLOPS) if slow else (MOST_ELEMENTS, MOST_FLOPS)
    try:
        return is_cheap(spec, sizes, most, flops)
    except ExpressionError:
        return False


def _largest(spec: ProblemSpec, by_work: Sequence[Case]) -> tuple[Case, ...]:
    """The cases that are largest in work or in a size: behind a threshold on any of these is one of them."""
    found = {place_of(by_work[-1].sizes): by_work[-1]}
    for name in spec.size_names:
        case = max(by_work, key=lambda case: (case.sizes[name], work_of(spec, case.sizes)))
        found[place_of(case.sizes)] = case
    return tuple(found.values())


def _between(spec: ProblemSpec, by_work: Sequence[Case]) -> Iterator[_Span]:
    for less, more in pairwise(by_work):
        told = f"between {place_of(less.sizes)} and {place_of(more.sizes)}"
        yield _Span(less.sizes, more.sizes, work_of(spec, less.sizes), work_of(spec, more.sizes), told)


def _around(spec: ProblemSpec, largest: Case) -> Iterator[_Span]:
    work = work_of(spec, largest.sizes)
    told = f"about as large as {place_of(largest.sizes)}"
    for low, high, spread in AROUND:
        yield _Span(largest.sizes, largest.sizes, low * work, high * work, told, spread)


def _drawn(
    spec: ProblemSpec, span: _Span, turn: int, rng: np.random.Generator, *, slow: bool
) -> dict[str, int] | None:
    """Sizes within the span; ``None`` where it is too narrow for any."""
    for bent in (*[True] * TRIES, *[False] * TRIES):  # remainders may be too coarse for small sizes
        sizes = _on_the_way(span, turn if bent else None, rng)
        fit = is_sound(spec, sizes) and _affordable(spec, sizes, slow=slow)
        if fit and span.low < work_of(spec, sizes) < span.high:
            return sizes
    return None


def _on_the_way(span: _Span, turn: int | None, rng: np.random.Generator) -> dict[str, int]:
    """By ratios, so that a product of sizes lies between those of both ends; and no size follows from another."""
    share, sizes = rng.random(), {}
    for place, (name, begin) in enumerate(span.begin.items()):
        size = begin ** (1 - share) * span.end[name] ** share * (1 + span.spread * rng.uniform(-1, 1))
        if turn is None or size < WHOLE:
            sizes[name] = round(size)
        else:
            step, rest = REMAINDERS[(turn + place) % len(REMAINDERS)]
            sizes[name] = round((size - rest) / step) * step + rest
    return sizes
