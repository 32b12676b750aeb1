"""Charts of a report as SVG, each drawn for a width in pixels. No script, no ids, colours by class."""

from kernelwright.report.charts.bars import case_bars, share_bars, time_bars
from kernelwright.report.charts.intervals import duel_chart
from kernelwright.report.charts.ranks import rank_chart
from kernelwright.report.charts.roofline import roofline_chart
from kernelwright.report.charts.svg import NARROW, WIDE
from kernelwright.report.charts.trajectory import trajectory_chart
from kernelwright.report.charts.tree import lineage_tree

__all__ = [
    "NARROW",
    "WIDE",
    "case_bars",
    "duel_chart",
    "lineage_tree",
    "rank_chart",
    "roofline_chart",
    "share_bars",
    "time_bars",
    "trajectory_chart",
]
