"""More rounds for the cases whose medians are not yet steady: a reported time shall be found again.

On an H200 single runs of short kernels scatter by about 1 % without any drift, alike within a process and between
processes: the median of 8 then differs by up to 2.5 % between 20 processes, that of some hundred runs by under 0.5 %.
"""

from collections.abc import Sequence
from math import ceil, sqrt
from statistics import median
from typing import Final

from kernelwright.core.statistics import PairedSamples

STEADY: Final = 0.0005
"""Wanted standard error of a median, relative to it. Processes differ by 0.1 % beside that: 20 of them then lie within
about 0.4 %."""
MOST_ROUNDS: Final = 2048
PARTS: Final = 4
"""Duels among which these rounds are divided. Each loads both binaries anew and has inputs and outputs at other places:
where these lie is a process's luck, too, and four times the luck is half of it."""
BESIDE_MS: Final = 0.2
"""What a run costs beside its own time: inputs, L2, comparison."""
_TO_SIGMA: Final = 1.4826
"""Of the median absolute deviation, to the standard deviation of normal errors."""
_MEDIAN_ERROR: Final = 1.2533
"""Standard error of a median over that of a mean, for normal errors."""


def more_rounds(
    batches: Sequence[Sequence[PairedSamples]], seconds: float, limit: float = STEADY
) -> tuple[int, tuple[str, ...]]:
    """How many rounds which cases need, within ``seconds``; none where every median is steady."""
    pairs: dict[str, tuple[list[float], list[float]]] = {}
    for case in (case for batch in batches for case in batch):
        sides = pairs.setdefault(case.case, ([], []))
        sides[0].extend(case.challenger_ms)
        sides[1].extend(case.incumbent_ms)
    wanted = {name: max(_missing(samples, limit) for samples in sides) for name, sides in pairs.items()}
    cases = tuple(name for name, rounds in wanted.items() if rounds)
    if not cases:
        return 0, ()
    round_ms = sum(sum(median(samples) + BESIDE_MS for samples in pairs[name]) for name in cases)
    rounds = min(max(wanted.values()), MOST_ROUNDS, int(seconds * 1e3 / round_ms))
    return (rounds, cases) if rounds >= 1 else (0, ())


def in_parts(rounds: int) -> tuple[int, ...]:
    """So many rounds as duels of about the same length."""
    parts = min(PARTS, rounds)
    return tuple(rounds * (part + 1) // parts - rounds * part // parts for part in range(parts))


def _missing(samples: Sequence[float], limit: float) -> int:
    """Samples that are missing until the median's standard error is below ``limit`` of it."""
    centre = median(samples)
    deviation = _TO_SIGMA * median(abs(sample - centre) for sample in samples)
    error = _MEDIAN_ERROR * deviation / sqrt(len(samples))
    if not centre or error <= limit * centre:
        return 0
    return ceil((_MEDIAN_ERROR * deviation / (limit * centre)) ** 2) - len(samples)
