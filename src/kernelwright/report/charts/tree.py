"""Lineage: a row a template in the order in which they took the lead, joined to the ancestor that led before."""

from collections.abc import Iterator, Mapping
from typing import Final

from markupsafe import Markup

from kernelwright.report.charts.svg import element, picture, shortened, text
from kernelwright.report.models import LineageNode
from kernelwright.report.numbers import duration

ROW: Final = 46
LANE_SHARE: Final = 56
"""A lane takes this part of the width."""
MOST_LANES: Final = 8


def lineage_tree(nodes: tuple[LineageNode, ...], width: int) -> Markup:
    """Lanes beyond the eighth share one."""
    places = {node.template: (_x(node, width), 22.0 + ROW * row) for row, node in enumerate(nodes)}
    left = max(x for x, _ in places.values()) + 18
    parts = [*_edges(nodes, places)]
    for node in nodes:
        x, y = places[node.template]
        parts.append(element("circle", cx=x, cy=y, r=5, class_="disc"))
        room = width - left - 8
        origin = f" from {', '.join(node.parents)}" if node.parents else ""
        parts.append(
            text(left, y, shortened(f"{node.name}, {node.ratio:.3f} of the baseline's time", room), "strong")
        )
        detail = f"{duration(node.seconds)}: {node.proposer}, {node.direction}{origin}"
        parts.append(text(left, y + 16, shortened(detail, room), "muted"))
    label = f"{len(nodes)} templates led: " + ", then ".join(node.name for node in nodes) + "."
    return picture(label, width, ROW * len(nodes) + 8, parts, "tree")


def _x(node: LineageNode, width: int) -> float:
    return 12.0 + width / LANE_SHARE * min(node.lane, MOST_LANES)


def _edges(nodes: tuple[LineageNode, ...], places: Mapping[str, tuple[float, float]]) -> Iterator[Markup]:
    for node in nodes:
        if node.parent in places:
            (x1, y1), (x2, y2) = places[node.parent], places[node.template]
            bend = y2 - ROW / 2
            path = f"M{x1:.1f} {y1:.1f}V{bend:.1f}C{x1:.1f} {y2:.1f} {x2:.1f} {bend:.1f} {x2:.1f} {y2:.1f}"
            yield element("path", d=path, class_="edge")
