"""Geometry of the rank-over-time chart. Coordinates in pixels; the template draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log
from typing import Final

from kernelwright.board_server.standing import Step

WIDE: Final = 920
NARROW: Final = 350
HEIGHT: Final = 300
TOP: Final = 16
BOTTOM: Final = 34
LEFT: Final = 44
LINE_HEIGHT: Final = 16
_RANKS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
LETTER: Final = 7.2
"""About how wide a letter of 12 px is."""


@dataclass(frozen=True)
class Line:
    """One entry's way. ``points`` is for a polyline; ``label_y`` keeps labels apart."""

    label: str
    shown: str
    hint: str
    points: str
    end_y: float
    label_y: float


@dataclass(frozen=True)
class Tick:
    """A place on an axis and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class RankChart:
    """Everything that is drawn. ``words`` says it to those who cannot see it."""

    width: int
    height: int
    right: float
    bottom: float
    lines: tuple[Line, ...]
    times: tuple[Tick, ...]
    ranks: tuple[Tick, ...]
    words: str


def rank_chart(steps: Sequence[Step], now: float, width: int) -> RankChart | None:
    """The ways of all labels in ``steps`` up to ``now``, the best above; ``None`` when there is nothing yet.

    Ranks are on a logarithmic scale: the places in front are what the contest is about.
    """
    if not steps:
        return None
    room = 170 if width == WIDE else 110
    right, bottom = width - room, HEIGHT - BOTTOM
    begin, worst = steps[0].time, max(step.rank for step in steps)
    span = max(now - begin, 1.0)

    def x(time: float) -> float:
        return round(LEFT + (right - LEFT) * (time - begin) / span, 1)

    def y(rank: int) -> float:
        return round(TOP + (bottom - TOP) * log(rank) / log(max(worst, 2)), 1)

    ways: dict[str, list[Step]] = {}
    for step in steps:
        ways.setdefault(step.label, []).append(step)
    ordered = sorted(ways.values(), key=lambda way: way[-1].rank)
    places = _apart([y(way[-1].rank) for way in ordered], bottom)
    lines = tuple(
        Line(
            label=way[-1].label,
            shown=_cut(f"{way[-1].rank} {way[-1].label.partition('/')[2] or way[-1].label}", room - 10),
            hint=f"{way[-1].label}: rank {way[0].rank} to {way[-1].rank}",
            points=_stairs([(x(step.time), y(step.rank)) for step in way], float(right)),
            end_y=y(way[-1].rank),
            label_y=place,
        )
        for way, place in zip(ordered, places, strict=True)
    )
    first = ordered[0][-1]
    return RankChart(
        width=width,
        height=HEIGHT,
        right=right,
        bottom=bottom,
        lines=lines,
        times=tuple(
            Tick(x(time), _clock(time, span)) for time in (begin, begin + span / 2, now if now > begin else begin + span)
        ),
        ranks=tuple(Tick(y(rank), str(rank)) for rank in _RANKS if rank <= worst),
        words=f"Rank over time of {len(lines)} entries; {first.label} leads.",
    )  # fmt: skip


def _stairs(corners: Sequence[tuple[float, float]], right: float) -> str:
    points = []
    for index, (x, y) in enumerate(corners):
        if index:
            points.append((x, corners[index - 1][1]))
        points.append((x, y))
    points.append((right, corners[-1][1]))
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _apart(heights: Sequence[float], bottom: float) -> list[float]:
    """Heights of labels, in the same order and at least a line apart, inside the chart where they fit."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + LINE_HEIGHT) if placed else height)
    over = max(0.0, placed[-1] - bottom)
    for index in range(len(placed) - 1, -1, -1):
        below = placed[index + 1] - LINE_HEIGHT if index + 1 < len(placed) else placed[index] - over
        placed[index] = min(placed[index], below)
    return [round(place, 1) for place in placed]


def _cut(text: str, room: float) -> str:
    most = int(room / LETTER)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _clock(time: float, span: float) -> str:
    form = "%m-%d %H:%M" if span > 86400 else "%H:%M" if span > 600 else "%H:%M:%S"
    return datetime.fromtimestamp(time, UTC).strftime(form)
