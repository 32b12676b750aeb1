"""Experiments as marks, the incumbent's cost as a staircase, structural jumps numbered above."""

from collections.abc import Iterator
from typing import Final, Literal

from markupsafe import Markup

from kernelwright.report.charts.svg import Scale, apart, element, line, picture, text, titled
from kernelwright.report.models import Mark, Step, Trajectory
from kernelwright.report.numbers import duration, milliseconds, plain

HEIGHT: Final = 340
TOP: Final = 44
BOTTOM: Final = 282
FAILED: Final = 292
LEFT: Final = 58
BADGE: Final = 19
MANY: Final = 1500
"""From so many marks on, each is smaller and paler."""

Axis = Literal["experiments", "time"]


def trajectory_chart(data: Trajectory, width: int, axis: Axis) -> Markup:
    """Cost on a log scale over experiments or time."""
    last = float(max(data.experiments, 2)) if axis == "experiments" else max(data.seconds, 1e-9)
    first = 1.0 if axis == "experiments" else 0.0
    across = Scale(first, last, LEFT, width - 14)
    up = Scale(data.bottom_ms, data.top_ms, BOTTOM, TOP, logarithmic=True)
    parts = [
        *_axes(across, up, width, axis),
        *_marks(data.marks, across, up, axis),
        *_baseline(data, across, up),
        *_stairs(data.steps, across, up, axis),
        *_jumps(data.steps, across, up, axis),
    ]
    return picture(_label(data, axis), width, HEIGHT, parts, "trajectory")


def _at(point: Mark | Step, axis: Axis) -> float:
    return float(point.position) if axis == "experiments" else point.seconds


def _axes(across: Scale, up: Scale, width: int, axis: Axis) -> Iterator[Markup]:
    for value in up.ticks(7):
        yield line(LEFT, up(value), across.end, up(value), "grid")
        yield text(LEFT - 6, up(value) + 4, plain(value), "muted", "end")
    for value in across.ticks(max(3, width // 110)):
        yield line(across(value), BOTTOM, across(value), BOTTOM + 4, "axis")
        shown = plain(value) if axis == "experiments" else duration(value)
        anchor = "end" if across(value) > across.end - 20 else "middle"
        yield text(across(value), HEIGHT - 24, shown, "muted", anchor)
    yield line(LEFT, BOTTOM, across.end, BOTTOM, "axis")
    yield text(LEFT - 6, FAILED + 4, "failed", "muted", "end")
    yield text(4, 14, "cost in ms, log scale", "muted")
    name = "experiments in the order in which they ended" if axis == "experiments" else "time of the campaign"
    yield text((LEFT + across.end) / 2, HEIGHT - 6, name, "muted", "middle")


def _baseline(data: Trajectory, across: Scale, up: Scale) -> Iterator[Markup]:
    if data.baseline_ms is not None:
        height = up(data.baseline_ms)
        yield line(LEFT, height, across.end, height, "baseline")
        yield text(across.end, height - 5, "baseline", "muted", "end")


def _marks(marks: tuple[Mark, ...], across: Scale, up: Scale, axis: Axis) -> Iterator[Markup]:
    """One path for all of a kind: 20,000 elements would take a browser seconds."""
    density = " dense" if len(marks) > MANY else ""
    measured = [(across(_at(m, axis)), up(m.cost_ms)) for m in marks if m.cost_ms is not None]
    failed = [(across(_at(m, axis)), float(FAILED)) for m in marks if m.cost_ms is None]
    for kind, places in (("measured", measured), ("failed", failed)):
        if places:
            dots = "".join(dict.fromkeys(f"M{x:.0f} {y:.0f}h0" for x, y in places))
            yield element("path", d=dots, class_=f"marks {kind}{density}")


def _stairs(steps: tuple[Step, ...], across: Scale, up: Scale, axis: Axis) -> Iterator[Markup]:
    if not steps:
        return
    places = [(across(_at(step, axis)), up(step.cost_ms)) for step in steps]
    path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    path += "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
    yield element("path", d=f"{path}H{across.end:.1f}", class_="stairs")
    for step, (x, y) in zip(steps, places, strict=True):
        hint = f"{step.name}: {milliseconds(step.cost_ms)} after {duration(step.seconds)}"
        yield titled("circle", hint, cx=x, cy=y, r=3, class_="leader")


def _jumps(steps: tuple[Step, ...], across: Scale, up: Scale, axis: Axis) -> Iterator[Markup]:
    jumps = [step for step in steps if step.jump]
    wanted = [across(_at(step, axis)) for step in jumps]
    for step, x, place in zip(jumps, wanted, apart(wanted, BADGE, LEFT, across.end), strict=True):
        points = f"{place:.1f},38 {x:.1f},{TOP + 6} {x:.1f},{up(step.cost_ms):.1f}"
        yield element("polyline", points=points, class_="jump")
        badge = element("circle", cx=place, cy=30, r=9, class_="badge")
        number = text(place, 34, f"{step.jump}", "badge-text", "middle")
        yield element("g", element("title", f"jump {step.jump}: {step.name}"), badge, number)


def _label(data: Trajectory, axis: Axis) -> str:
    begin = (
        f"Cost of {data.experiments} experiments over {'their order' if axis == 'experiments' else 'time'}"
    )
    if not data.steps:
        return f"{begin}; none of them leads."
    jumps = sum(step.jump > 0 for step in data.steps)
    return (
        f"{begin}: the leader's cost went from {milliseconds(data.steps[0].cost_ms)} to "
        f"{milliseconds(data.steps[-1].cost_ms)} in {len(data.steps)} steps, {jumps} of them structural."
    )
