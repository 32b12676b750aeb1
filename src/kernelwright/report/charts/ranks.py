"""The own place on a board over the campaign's time, the first place on top."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from kernelwright.report.board import PlaceRow
from kernelwright.report.charts.svg import Scale, element, line, picture, text, titled
from kernelwright.report.numbers import duration, milliseconds

HEIGHT: Final = 260
TOP: Final = 30
BOTTOM: Final = 214
LEFT: Final = 46


def rank_chart(places: tuple[PlaceRow, ...], seconds: float, width: int) -> Markup | None:
    """``None`` when no place was held."""
    held = [(place, place.rank) for place in places if place.rank is not None]
    if not held:
        return None
    across = Scale(0.0, max(seconds, held[-1][0].seconds, 1e-9), LEFT, width - 14)
    down = Scale(1.0, float(max(2, *(place.entries for place, _ in held))), TOP, BOTTOM)
    parts = [*_axes(across, down, width), *_stairs(held, across, down)]
    first, last = held[0][1], held[-1][1]
    label = f"Rank over time: from {first} to {last} of {held[-1][0].entries} in {len(held)} steps."
    return picture(label, width, HEIGHT, parts, "ranks")


def _axes(across: Scale, down: Scale, width: int) -> Iterator[Markup]:
    for value in dict.fromkeys((1.0, *(float(round(tick)) for tick in down.ticks(6)))):
        yield line(LEFT, down(value), across.end, down(value), "grid")
        yield text(LEFT - 6, down(value) + 4, f"{value:.0f}", "muted", "end")
    for value in across.ticks(max(3, width // 110)):
        yield line(across(value), BOTTOM, across(value), BOTTOM + 4, "axis")
        anchor = "end" if across(value) > across.end - 20 else "middle"
        yield text(across(value), HEIGHT - 24, duration(value), "muted", anchor)
    yield line(LEFT, BOTTOM, across.end, BOTTOM, "axis")
    yield text(4, 14, "rank", "muted")
    yield text((LEFT + across.end) / 2, HEIGHT - 6, "time of the campaign", "muted", "middle")


def _stairs(held: list[tuple[PlaceRow, int]], across: Scale, down: Scale) -> Iterator[Markup]:
    points = [(across(place.seconds), down(float(rank))) for place, rank in held]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    path += "".join(f"H{x:.1f}V{y:.1f}" for _, (x, y) in pairwise(points))
    yield element("path", d=f"{path}H{across.end:.1f}", class_="stairs")
    for (place, rank), (x, y) in zip(held, points, strict=True):
        score = "" if place.score_ms is None else f" with {milliseconds(place.score_ms)}"
        hint = f"rank {rank} of {place.entries}{score} after {duration(place.seconds)}"
        yield titled("circle", hint, cx=x, cy=y, r=3, class_="leader")
