"""The trajectory in text: a small chart for a terminal, of block characters or of ASCII."""

from typing import Final

from kernelwright.report.charts.svg import Scale
from kernelwright.report.models import Trajectory
from kernelwright.report.numbers import duration, plain

HEIGHT: Final = 8
MARGIN: Final = 9
WIDEST: Final = 72
NARROWEST: Final = 24


def chart(data: Trajectory, width: int, *, ascii_only: bool) -> str:
    """Cost in ms on a log scale over time; the line is the leader, digits are structural jumps."""
    if not data.steps:
        return ""
    dot, across, down, up, edge = ".-++|" if ascii_only else "·━┗┏┃"
    columns = min(max(width - MARGIN - 1, NARROWEST), WIDEST)
    place = Scale(0.0, max(data.seconds, 1e-9), 0, columns - 1)
    height = Scale(data.bottom_ms, data.top_ms, HEIGHT - 1, 0, logarithmic=True)
    cells = [[" "] * columns for _ in range(HEIGHT)]
    for mark in data.marks:
        if mark.cost_ms is not None:
            cells[round(height(mark.cost_ms))][round(place(mark.seconds))] = dot
    row = round(height(data.steps[0].cost_ms))
    ends = [*(round(place(step.seconds)) for step in data.steps[1:]), columns]
    for step, end in zip(data.steps, ends, strict=True):
        column, last, row = round(place(step.seconds)), row, round(height(step.cost_ms))
        for between in range(min(last, row), max(last, row)):
            cells[between][column] = edge
        for filled in range(column, end):
            cells[row][filled] = across
        if last != row:
            cells[row][column] = down if row > last else up
    for step in data.steps:
        if step.jump:
            cells[round(height(step.cost_ms))][round(place(step.seconds))] = f"{step.jump % 10}"
    lines = ["".join(cells_of_row).rstrip() for cells_of_row in cells]
    names = [plain(data.top_ms), *[""] * (HEIGHT - 2), plain(data.bottom_ms)]
    body = [f"{name:>{MARGIN - 1}} {line}".rstrip() for name, line in zip(names, lines, strict=True)]
    foot = f"{'ms, log':>{MARGIN - 1}} 0 s{duration(data.seconds):>{columns - 3}}"
    return "\n".join([*body, foot])
