"""Ranks over time, and the chart's geometry."""

from itertools import pairwise

import pytest

from kernelwright.board_server.chart import LINE_HEIGHT, NARROW, WIDE, rank_chart
from kernelwright.board_server.standing import Step, rank_history

from .support import entry


def ranks(steps: list[Step], label: str) -> list[tuple[float, int]]:
    return [(step.time, step.rank) for step in steps if step.label == label]


def test_ranks_change_when_others_pass() -> None:
    steps = rank_history(
        [
            entry(1, "anna", 3.0), entry(2, "ben", 2.0), entry(3, "anna", 4.0), entry(4, "anna", 1.0),
            entry(5, "cy", 2.0),
        ]
    )  # fmt: skip
    assert ranks(steps, "anna") == [(1001.0, 1), (1002.0, 2), (1004.0, 1)]
    assert ranks(steps, "ben") == [(1002.0, 1), (1004.0, 2)]
    assert ranks(steps, "cy") == [(1005.0, 3)]
    assert rank_history([entry(1, "anna", 3.0), entry(2, "ben", 2.0)], {"anna"}) == [
        Step(1001.0, "anna", 1, 3.0), Step(1002.0, "anna", 2, 3.0),
    ]  # fmt: skip


def test_entries_of_one_user_stand_alone() -> None:
    steps = rank_history([entry(1, "crowd", 3.0, "a"), entry(2, "crowd", 2.0, "b")])
    assert {step.label for step in steps} == {"crowd/a", "crowd/b"}


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_labels_keep_apart_and_inside(width: int) -> None:
    crowd = [entry(n, f"user{n}", 100.0 - n) for n in range(60)]
    steps = rank_history(crowd, {f"user{n}" for n in range(52, 60)})
    chart = rank_chart(steps, 1060.0, width)
    assert chart is not None
    assert [line.label for line in chart.lines] == [f"user{n}" for n in range(59, 51, -1)]
    heights = [line.label_y for line in chart.lines]
    assert all(b - a >= LINE_HEIGHT - 0.01 for a, b in pairwise(heights))
    assert heights[-1] <= chart.bottom
    for line in chart.lines:
        points = [tuple(map(float, pair.split(","))) for pair in line.points.split()]
        assert all(a[0] <= b[0] and (a[0] == b[0] or a[1] == b[1]) for a, b in pairwise(points))
        assert points[-1] == (chart.right, line.end_y)


def test_one_entry_makes_a_chart_and_none_makes_none() -> None:
    assert rank_chart([], 5.0, WIDE) is None
    chart = rank_chart([Step(5.0, "anna", 1, 1.0)], 5.0, WIDE)
    assert chart is not None
    assert chart.words == "Rank over time of 1 entries; anna leads."
