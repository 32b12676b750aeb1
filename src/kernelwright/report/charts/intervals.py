"""Duels: ratio and interval of each, beside the line where both are as fast."""

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup

from kernelwright.report.charts.svg import Scale, line, picture, shortened, text, titled
from kernelwright.report.models import DuelRow
from kernelwright.report.numbers import plain

ROW: Final = 40
HEAD: Final = 28


def duel_chart(rows: tuple[DuelRow, ...], width: int) -> Markup | None:
    """``None`` when no duel has an interval."""
    known = [row for row in rows if row.ratio is not None and row.low is not None and row.high is not None]
    if not known:
        return None
    low, high = min(row.low or 1.0 for row in known), max(row.high or 1.0 for row in known)
    across = Scale(min(low, 0.98) * 0.98, max(high, 1.02) * 1.02, 12, width - 12, logarithmic=True)
    height = HEAD + ROW * len(known)
    parts: list[Markup] = []
    for value in across.ticks(5):
        parts += [line(across(value), HEAD - 8, across(value), height, "grid")]
        parts += [text(across(value), 14, plain(value), "muted", "middle")]
    parts.append(line(across(1.0), HEAD - 8, across(1.0), height, "baseline"))
    for index, row in enumerate(known):
        parts += _duel(row, across, HEAD + ROW * index, width)
    label = f"Ratios of {len(known)} duels with their 99 % intervals; left of 1 the challenger is faster."
    return picture(label, width, height, parts, "duels")


def _duel(row: DuelRow, across: Scale, y: float, width: int) -> Iterator[Markup]:
    kind = {"promote": "won", "confirmation": "sure"}.get(row.verdict, "lost")
    middle, low, high = across(row.ratio or 1.0), across(row.low or 1.0), across(row.high or 1.0)
    name = f"{row.number}: {row.challenger}, {row.verdict}"
    yield text(12, y + 12, shortened(name, width - 24))
    yield line(low, y + 24, high, y + 24, f"interval {kind}")
    hint = f"{row.ratio:.4f} [{row.low:.4f}, {row.high:.4f}] in {row.rounds} rounds: {row.reason}"
    yield titled("circle", hint, cx=middle, cy=y + 24, r=5, class_=f"dot {kind}")
