"""Bars: times of cases against the baseline, shares of the variance, parts of the time."""

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup

from kernelwright.report.charts.svg import Scale, element, line, picture, shortened, text, titled
from kernelwright.report.models import Account, CaseRow, Share
from kernelwright.report.numbers import duration, milliseconds, percent, plain

ROW: Final = 54
HEAD: Final = 30
BAR: Final = 12
LABEL: Final = 30
"""Room for a ratio of two decimals."""
FARTHEST: Final = 2.0
"""A slower strong reference must not squeeze the bars: it has no tick, the table tells its time."""


def case_bars(rows: tuple[CaseRow, ...], width: int) -> Markup:
    """Two bars a case in parts of its baseline; ticks for the roofline floor and the strong reference."""
    references = (row.reference_ms / row.baseline_ms for row in rows if row.reference_ms is not None)
    longest = max([1.0, *(row.ratio for row in rows), *(min(ratio, FARTHEST) for ratio in references)])
    room = 64
    across = Scale(0.0, longest, 8, width - room)
    parts: list[Markup] = []
    for value in across.ticks(4):
        parts += [line(across(value), HEAD - 8, across(value), HEAD + ROW * len(rows) - 8, "grid")]
        parts += [text(across(value), 14, plain(value), "muted", "middle" if value else "start")]
    for index, row in enumerate(rows):
        parts += _case(row, across, HEAD + ROW * index, width)
    worst = max(rows, key=lambda row: row.ratio)
    label = f"Time of {len(rows)} cases against the baseline; the least gain is {worst.ratio:.2f} in {worst.case}."
    return picture(label, width, HEAD + ROW * len(rows), parts, "bars")


def _case(row: CaseRow, across: Scale, y: float, width: int) -> Iterator[Markup]:
    yield text(8, y + 12, shortened(row.case, width - 24))
    base, mine = across(1.0), across(row.ratio)
    hint = f"{row.case}: baseline {milliseconds(row.baseline_ms)}, incumbent {milliseconds(row.incumbent_ms)}"
    yield titled("rect", hint, x=8, y=y + 18, width=base - 8, height=BAR / 2, class_="bar-base")
    yield titled("rect", hint, x=8, y=y + 25, width=max(mine - 8, 1.0), height=BAR, class_="bar-mine")
    ticks = [
        (name, value, across(value / row.baseline_ms))
        for name, value in (("floor", row.floor_ms), ("reference", row.reference_ms))
        if value is not None and value / row.baseline_ms <= across.high
    ]
    yield text(_beside(max(mine, 8), sorted(x for _, _, x in ticks)), y + 35, f"{row.ratio:.2f}")
    for name, value, x in ticks:
        hint = f"{name} {milliseconds(value)}"
        yield titled("rect", hint, x=x - 1, y=y + 15, width=2.5, height=25, class_=name)


def _beside(end: float, ticks: list[float]) -> float:
    """Where a bar's label begins: after the ticks that would cross it."""
    start = end + 6
    for tick in ticks:
        if start - 3 < tick < start + LABEL:
            start = tick + 6
    return start


def share_bars(shares: tuple[Share, ...], width: int) -> Markup:
    """Shares of the variance with their uncertainty."""
    across = Scale(0.0, max([0.05, *(s.share + s.uncertainty for s in shares)]), 8, width - 56)
    parts: list[Markup] = []
    for index, share in enumerate(shares):
        y = 36 * index
        end = across(share.share)
        parts += [
            text(8, y + 13, shortened(share.name, width - 16)),
            element("rect", x=8, y=y + 18, width=max(end - 8, 1.0), height=BAR, class_="bar-mine"),
            line(
                across(share.share - share.uncertainty),
                y + 24,
                across(share.share + share.uncertainty),
                y + 24,
                "whisker",
            ),
            text(across(share.share + share.uncertainty) + 6, y + 28, percent(share.share)),
        ]
    label = f"Shares of {len(shares)}: the largest is {shares[0].name} with {percent(shares[0].share)}."
    return picture(label, width, 36 * len(shares) + 4, parts, "bars")


def time_bars(accounts: tuple[Account, ...], width: int) -> Markup:
    """Seconds of each kind of work."""
    across = Scale(0.0, max(account.seconds for account in accounts) or 1.0, 8, width - 80)
    parts: list[Markup] = []
    for index, account in enumerate(accounts):
        y = 36 * index
        end = across(account.seconds)
        parts += [
            text(8, y + 13, account.name),
            element("rect", x=8, y=y + 18, width=max(end - 8, 1.0), height=BAR, class_="bar-mine"),
            text(end + 6, y + 28, duration(account.seconds)),
        ]
    label = "; ".join(f"{account.name} {duration(account.seconds)}" for account in accounts)
    return picture(label, width, 36 * len(accounts) + 4, parts, "bars")
