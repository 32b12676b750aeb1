"""Who stands where, and how it came to that."""

from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kernelwright.board_server.records import Entry


@dataclass(frozen=True)
class Step:
    """From ``time`` on an entry had this rank."""

    time: float
    label: str
    rank: int
    score_s: float


def rank_history(arrivals: Sequence[Entry], labels: Collection[str] | None = None) -> list[Step]:
    """Every change of rank of the named entries (default: all), in the order of time.

    ``arrivals`` are all ranked submissions that passed, in the order of arrival.
    """
    best: dict[str, tuple[float, int]] = {}
    table: list[tuple[float, int]] = []
    shown: dict[str, int] = {}
    steps = []
    for arrival in arrivals:
        score = (arrival.score_s, arrival.number)
        before = best.get(arrival.label)
        if before is not None and before <= score:
            continue
        if before is not None:
            del table[bisect_left(table, before)]
        insort(table, score)
        best[arrival.label] = score
        for label in best if labels is None else labels:
            if (own := best.get(label)) is None:
                continue
            rank = bisect_left(table, own) + 1
            if shown.get(label) != rank or label == arrival.label:
                shown[label] = rank
                steps.append(Step(arrival.submitted, label, rank, own[0]))
    return steps
