"""Scales, places of labels, and numbers for people."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.report.charts import NARROW, WIDE, case_bars, duel_chart, lineage_tree, trajectory_chart
from kernelwright.report.charts.svg import Scale, apart, element, shortened
from kernelwright.report.models import CaseRow, DuelRow, LineageNode, Mark, Step, Trajectory
from kernelwright.report.numbers import duration, milliseconds, plain
from kernelwright.report.text import visible
from kernelwright.report.views.terminal import HEIGHT, chart

COSTS = st.floats(1e-6, 1e6)


@given(low=COSTS, factor=st.floats(1.0001, 1e6), most=st.integers(2, 9), logarithmic=st.booleans())
def test_ticks_lie_within_and_rise(low: float, factor: float, most: int, logarithmic: bool) -> None:
    scale = Scale(low, low * factor, 10, 500, logarithmic=logarithmic)
    ticks = scale.ticks(most)
    assert len(ticks) <= most + 1
    assert all(low <= tick <= low * factor for tick in ticks)
    assert all(a < b for a, b in itertools.pairwise(ticks))
    assert 10 <= scale(low) <= scale(low * factor) <= 500.001


@given(st.lists(st.floats(50, 900), min_size=1, max_size=80))
def test_badges_never_leave_and_stay_in_order(wanted: list[float]) -> None:
    places = apart(sorted(wanted), 19, 50, 900)
    assert all(49.99 <= place <= 900.01 for place in places)
    assert all(b - a >= min(19, 850 / len(places)) - 1e-6 for a, b in itertools.pairwise(places))


def test_elements_escape_everything() -> None:
    made = element("text", '<b>&"', x=1.0, class_='a"b')
    assert made == '<text x="1" class="a&#34;b">&lt;b&gt;&amp;&#34;</text>'


def test_hidden_characters_are_spelled_out() -> None:
    assert visible("a\u202eb\x1b[31m\n") == "a<U+202E>b<U+001B>[31m\n"
    assert "\u202e" not in element("text", "a\u202eb")
    assert len(shortened("x" * 500, 100)) * 5 < 100


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0"), (1234567.0, "1.23e+06"), (0.5, "0.5"), (123.4, "123"), (1200.0, "1200")]
)
def test_plain_numbers(value: float, shown: str) -> None:
    assert plain(value) == shown


def test_times() -> None:
    assert [milliseconds(v) for v in (None, 2.5, 0.0123)] == ["unknown", "2.5 ms", "12.3 µs"]
    assert [duration(v) for v in (0.0, 0.25, 59.0, 61.0, 7260.0)] == [
        "0 s",
        "250 ms",
        "59 s",
        "1 min 1 s",
        "2 h 1 min",
    ]


def example(steps: int = 3) -> Trajectory:
    marks = tuple(Mark(n, float(n), None if n % 5 == 0 else 1.0 + n % 7) for n in range(1, 101))
    stairs = tuple(Step(1 + 9 * n, 1.0 + 9 * n, 4.0 / (n + 1), f"t{n}", n) for n in range(steps))
    return Trajectory(100, 100.0, 4.0, 0.1, 9.0, marks, stairs)


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_a_trajectory_marks_failures_and_numbers_jumps(width: int) -> None:
    drawn = trajectory_chart(example(), width, "experiments")
    assert drawn.count('class="marks failed"') == 1
    assert drawn.count('class="badge"') == 2
    assert "went from 4 ms to 1.333 ms in 3 steps, 2 of them structural" in drawn
    assert "none of them leads" in trajectory_chart(example(0), width, "time")


def test_no_interval_no_chart() -> None:
    row = DuelRow(1, "a", "b", "keep", "broken", None, None, None, 0, 1.0)
    assert duel_chart((row,), WIDE) is None


def bars(ratio: float, reference: float) -> tuple[float, float | None]:
    """Where the label of a leader's bar begins, and the place of the strong reference's tick."""
    row = CaseRow("n=1", 1.0, ratio, ratio, 0.1 * ratio, "memory", 0.1, 10.0, reference, None, 0, 1)
    drawn = case_bars((row,), NARROW)
    label = re.search(rf'<text x="([\d.]+)"[^>]*>{ratio:.2f}</text>', drawn)
    tick = re.search(r'<rect x="([\d.]+)"[^>]*class="reference"', drawn)
    assert label is not None
    return float(label[1]), float(tick[1]) + 1 if tick else None


@pytest.mark.parametrize("beyond", [0.0, 0.01, 0.05, 0.1, 0.5])
def test_a_tick_does_not_cross_the_label_of_a_bar(beyond: float) -> None:
    for ratio in (0.01, 0.3, 0.97):
        label, tick = bars(ratio, ratio + beyond)
        assert tick is not None
        assert tick + 1.5 < label or label + 26 < tick - 1
        assert label + 26 < NARROW


def test_a_slow_reference_has_its_place_and_a_very_slow_one_none() -> None:
    label, tick = bars(0.5, 1.8)
    assert tick is not None
    at_bars_scale = 8 + 1.8 / 0.5 * (label - 6 - 8)
    assert tick == pytest.approx(at_bars_scale, abs=0.5)
    label, tick = bars(0.5, 90.0)
    assert tick is None
    assert label == bars(0.5, 2.0)[0]  # and squeezes nothing


def test_the_tree_joins_children_to_parents() -> None:
    nodes = tuple(
        LineageNode(f"t{n}", f"n{n}", "p", "d", (), "t0" if n else "", 1.0, 0.5, n) for n in range(12)
    )
    assert lineage_tree(nodes, NARROW).count('class="edge"') == 11


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_chart_for_a_terminal(ascii_only: bool) -> None:
    drawn = chart(example(), 60, ascii_only=ascii_only)
    assert drawn.isascii() == ascii_only
    lines = drawn.splitlines()
    assert len(lines) == HEIGHT + 1
    assert max(map(len, lines)) <= 60
    assert "1" in drawn[9:]
    assert "2" in drawn
    assert chart(example(0), 60, ascii_only=ascii_only) == ""
