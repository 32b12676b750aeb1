"""Cases under the roofline (Williams, Waterman & Patterson 2009): rate over arithmetic intensity, both log scales."""

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup

from kernelwright.report.charts.svg import Scale, element, line, picture, text, titled
from kernelwright.report.models import CaseRow, Roofline
from kernelwright.report.numbers import plain

HEIGHT: Final = 330
LEFT: Final = 62
BOTTOM: Final = 284
SPREAD: Final = 4.0


def roofline_chart(roof: Roofline, rows: tuple[CaseRow, ...], width: int) -> Markup:
    """Rings are the baseline, discs the incumbent."""
    ridge = roof.flops_per_s / roof.bytes_per_s
    places = [row.intensity for row in rows if row.intensity]
    low, high = min([ridge, *places]) / SPREAD, max([ridge, *places]) * SPREAD
    rates = [_rate(row, time) for row in rows for time in (row.baseline_ms, row.incumbent_ms)]
    across = Scale(low, high, LEFT, width - 14, logarithmic=True)
    bottom = min([*(rate for rate in rates if rate), low * roof.bytes_per_s]) / 2
    up = Scale(bottom, roof.flops_per_s * 2.5, BOTTOM, 26, logarithmic=True)
    parts = [*_axes(across, up), *_roof(roof, ridge, across, up), *_points(rows, across, up)]
    label = (
        f"Roofline: {plain(roof.bytes_per_s / 1e9)} GB/s and {plain(roof.flops_per_s / 1e9)} GFLOP/s meet at "
        f"{plain(ridge)} operations a byte; {len(places)} cases."
    )
    return picture(label, width, HEIGHT, parts, "roofline")


def _rate(row: CaseRow, time_ms: float) -> float:
    return row.flops / (time_ms / 1e3)


def _axes(across: Scale, up: Scale) -> Iterator[Markup]:
    for value in up.ticks(6):
        yield line(LEFT, up(value), across.end, up(value), "grid")
        yield text(LEFT - 6, up(value) + 4, plain(value / 1e9), "muted", "end")
    for value in across.ticks(6):
        yield line(across(value), BOTTOM, across(value), BOTTOM + 4, "axis")
        yield text(across(value), BOTTOM + 18, plain(value), "muted", "middle")
    yield line(LEFT, BOTTOM, across.end, BOTTOM, "axis")
    yield text(4, 14, "GFLOP/s", "muted")
    yield text((LEFT + across.end) / 2, HEIGHT - 6, "floating point operations per byte", "muted", "middle")


def _roof(roof: Roofline, ridge: float, across: Scale, up: Scale) -> Iterator[Markup]:
    start = max(across.low, up.low / roof.bytes_per_s)
    points = [(start, start * roof.bytes_per_s), (ridge, roof.flops_per_s), (across.high, roof.flops_per_s)]
    written = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
    yield element("polyline", points=written, class_="roof")
    yield text(
        across.end,
        up(roof.flops_per_s) - 6,
        f"{plain(roof.flops_per_s / 1e12)} TFLOP/s {roof.unit}",
        "muted",
        "end",
    )
    yield text(
        across(ridge) - 8, up(roof.flops_per_s) - 6, f"{plain(roof.bytes_per_s / 1e9)} GB/s", "muted", "end"
    )


def _points(rows: tuple[CaseRow, ...], across: Scale, up: Scale) -> Iterator[Markup]:
    for row in rows:
        if not row.intensity:
            continue
        x = across(row.intensity)
        old, new = _rate(row, row.baseline_ms), _rate(row, row.incumbent_ms)
        yield line(x, up(old), x, up(new), "jump")
        for kind, rate in (("ring", old), ("disc", new)):
            hint = f"{row.case}: {'baseline' if kind == 'ring' else 'incumbent'} {plain(rate / 1e9)} GFLOP/s"
            yield titled("circle", hint, cx=x, cy=up(rate), r=5, class_=kind)
