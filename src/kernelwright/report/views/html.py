"""The report as one self-contained file: no script, nothing loaded from elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup

from kernelwright.report import charts
from kernelwright.report.models import Account, Report
from kernelwright.report.text import visible
from kernelwright.report.views.environment import environment


@dataclass(frozen=True)
class Figure:
    """A chart drawn for a desk and for a phone; the style sheet shows one."""

    wide: Markup
    narrow: Markup


def as_html(report: Report) -> str:
    """The whole document."""
    style = files("kernelwright.report.views").joinpath("templates/style.css").read_text(encoding="utf-8")
    template = environment(visible).get_template("report.html.j2")
    figures = {name: figure for name, figure in _figures(report).items() if figure is not None}
    return template.render(report=report, figures=figures, style=Markup(style))  # noqa: S704 - our own file


def _figures(report: Report) -> dict[str, Figure | None]:
    rows, roof = report.cases.rows, report.cases.roofline
    trajectory, tuning = report.trajectory, report.tuning
    under_roof = roof.bytes_per_s and roof.flops_per_s and any(row.intensity for row in rows)
    return {
        "by_experiment": _both(lambda width: charts.trajectory_chart(trajectory, width, "experiments")),
        "by_time": _both(lambda width: charts.trajectory_chart(trajectory, width, "time")),
        "ranks": _both(lambda width: _ranks(report, width)),
        "cases": _both(lambda width: charts.case_bars(rows, width)) if rows else None,
        "roofline": _both(lambda width: charts.roofline_chart(roof, rows, width)) if under_roof else None,
        "tree": _both(lambda width: charts.lineage_tree(report.lineage.nodes, width))
        if report.lineage.nodes
        else None,
        "importance": _both(lambda width: charts.share_bars(tuning.importance, width))
        if tuning.importance
        else None,
        "interactions": _both(lambda width: charts.share_bars(tuning.interactions, width))
        if tuning.interactions
        else None,
        "duels": _both(lambda width: charts.duel_chart(report.duels, width)),
        "time": _both(lambda width: charts.time_bars(_accounts(report), width)),
    }


def _ranks(report: Report, width: int) -> Markup | None:
    if report.board is None:
        return None
    return charts.rank_chart(report.board.places, report.headline.seconds, width)


def _both(draw: Callable[[int], Markup | None]) -> Figure | None:
    wide, narrow = draw(charts.WIDE), draw(charts.NARROW)
    return None if wide is None or narrow is None else Figure(wide, narrow)


def _accounts(report: Report) -> tuple[Account, ...]:
    spent = report.spending
    device = tuple(Account(f"device: {account.name}", account.seconds) for account in spent.device)
    compiling = Account("compilers, side by side", spent.compile_seconds)
    return (Account("wall time", spent.wall_seconds), *device, compiling)
