"""Headline, milestones and trajectory: what a terminal shows, and how a report begins."""

from datetime import UTC, datetime
from math import exp, log
from typing import Final

from kernelwright.certificate.facts import BASELINE
from kernelwright.core.outcome import Status
from kernelwright.memory.claims import Standing
from kernelwright.report.board import ranks_by_candidate
from kernelwright.report.models import Headline, Mark, MilestoneRow, Overview, Step, Trajectory
from kernelwright.report.records import Records, cost_of

COLUMNS: Final = 300
ROWS: Final = 48
"""Cells of the chart: each shows one mark, however many experiments fall into it."""
REASON: Final = 300
HEADROOM: Final = 3.0
"""Costs above this many times the baseline's lie on the chart's edge."""


def overview(records: Records) -> Overview:
    """The beginning of a report."""
    return Overview(headline(records), milestones(records), trajectory(records))


def headline(records: Records) -> Headline:
    """What came of it, by the best evidence there is."""
    campaign, incumbent, device = records.campaign, records.incumbent, records.device
    ratio, low, high, source = _ratio(records)
    return Headline(
        campaign=campaign.id,
        problem=str(records.settings.get("problem", campaign.problem_id)),
        device=str(device.get("name", "unknown")),
        device_model=str(device.get("model", "unknown")),
        state=campaign.state,
        objective=campaign.objective,
        started=f"{datetime.fromtimestamp(campaign.started, UTC):%Y-%m-%d %H:%M} UTC",
        seconds=records.seconds,
        experiments=len(records.experiments),
        measured=sum(e.outcome.status is Status.MEASURED for e in records.experiments),
        verdict=_verdict(records, ratio, high),
        notes=_notes(records),
        incumbent=incumbent.candidate if incumbent else "",
        incumbent_name=records.name(incumbent) if incumbent else "",
        ratio=ratio,
        low=low,
        high=high,
        source=source,
    )


def _ratio(records: Records) -> tuple[float | None, float | None, float | None, str]:
    """Ratio to the baseline with its interval, and where it comes from."""
    if not records.milestones or records.incumbent is None:
        return None, None, None, ""
    both = records.note("confirmation")
    fits = records.baseline is None or records.incumbent.candidate != records.baseline.candidate
    if fits and both.get("baseline_ms") and both.get("incumbent_ms") and records.campaign.state == "finished":
        ratio = both.get("ratio") or both["incumbent_ms"] / both["baseline_ms"]
        source = f"{both.get('rounds', 0)} paired rounds at the end"
        return ratio, both.get("low"), both.get("high"), source
    return records.milestones[-1].ratio, None, None, "medians of the search, not confirmed side by side"


def _nothing(records: Records) -> str:
    """With the reason where the baseline was the only one: then there was nothing to compare with."""
    first = records.experiments[0]
    if len(records.experiments) > 1 or records.templates[first.template].direction != BASELINE:
        return "No candidate was measured: every experiment failed."
    reason = " ".join(first.outcome.reason.split())[:REASON]
    return f"The baseline does not pass: {first.outcome.status}: {reason}"


def _verdict(records: Records, ratio: float | None, high: float | None) -> str:
    if not records.experiments:
        return "Nothing has been tried yet."
    if ratio is None or records.incumbent is None:
        return _nothing(records)
    if records.baseline is not None and records.incumbent.candidate == records.baseline.candidate:
        tried = len(records.experiments) - 1
        return f"No improvement: the baseline still leads after {tried} other experiment{'s' * (tried != 1)}."
    if ratio >= 1:
        return f"No improvement was confirmed: {ratio:.3f} times the baseline's time."
    doubt = "" if high is None or high < 1 else " (the interval includes no gain)"
    return f"{1 / ratio:.2f} times as fast as the baseline{doubt}."


def _notes(records: Records) -> tuple[str, ...]:
    states = {
        "running": "The campaign is running, or was killed: this is what is recorded so far.",
        "interrupted": "The campaign was interrupted: 'kernelwright resume' goes on with it.",
        "failed": "The campaign failed: its baseline could not be measured.",
    }
    seen = {
        Standing.RUNNING: "The campaign is running: this is what is recorded so far.",
        Standing.GONE: "The campaign's process is gone: 'kernelwright resume' goes on with it.",
        Standing.UNSEEN: (
            "Whether the campaign still runs cannot be seen from here (it ran on another machine, or this is a copy): "
            "'kernelwright resume' goes on with it when it does not."
        ),
    }
    note = states.get(records.campaign.state, "") if records.standing is None else seen[records.standing]
    notes = [note] if note else []
    if records.device.get("kind") == "cpu":
        notes.append("These are CPU times: they say nothing about a GPU.")
    if records.settings.get("slow_cases"):
        notes.append("The problem's smaller cases were used.")
    missing = [layer["name"] for layer in records.note("sandbox").get("layers", []) if not layer["holds"]]
    if missing:
        notes.append(f"Layers of the sandbox that were missing: {', '.join(missing)}.")
    return tuple(notes)


def milestones(records: Records) -> tuple[MilestoneRow, ...]:
    """Every change of the lead; those that brought another template are numbered."""
    rows: list[MilestoneRow] = []
    jumps = 0
    ranks = ranks_by_candidate(records)
    for milestone, leader in zip(records.milestones, records.leaders, strict=True):
        jumped = bool(rows) and rows[-1].template != leader.template
        jumps += jumped
        rows.append(
            MilestoneRow(
                seconds=milestone.seconds,
                experiment=milestone.experiment,
                candidate=leader.candidate,
                template=leader.template,
                name=records.templates[leader.template].name,
                configuration=f"{leader.configuration}",
                strategy=milestone.strategy.removeprefix(f"{records.name(leader)}: "),
                cost_ms=cost_of(leader),
                ratio=milestone.ratio,
                rank=ranks.get(leader.candidate, milestone.rank),
                jump=jumps if jumped else 0,
            )
        )
    return tuple(rows)


def trajectory(records: Records) -> Trajectory:
    """Steps of the incumbent over every experiment, thinned to one mark a cell."""
    baseline = cost_of(records.baseline) if records.baseline else None
    costs = [cost for e in records.experiments if (cost := cost_of(e)) is not None]
    bottom, top = _range(costs, baseline)
    position = {e.number: place for place, e in enumerate(records.experiments, 1)}
    steps = tuple(
        Step(position[row.experiment], row.seconds, row.cost_ms, row.name, row.jump)
        for row in milestones(records)
        if row.cost_ms is not None
    )
    return Trajectory(
        experiments=len(records.experiments),
        seconds=records.seconds,
        baseline_ms=baseline,
        bottom_ms=bottom,
        top_ms=top,
        marks=_marks(records, bottom, top),
        steps=steps,
    )


def _range(costs: list[float], baseline: float | None) -> tuple[float, float]:
    if not costs:
        return 0.1, 1.0
    low, high = min(costs), max(costs)
    limit = max(HEADROOM * (baseline or high), min(costs) * HEADROOM)
    return low * 0.9, max(min(high, limit), low) * 1.1


def _marks(records: Records, bottom: float, top: float) -> tuple[Mark, ...]:
    seen: set[tuple[int, int]] = set()
    marks = []
    height = log(top / bottom)
    for place, experiment in enumerate(records.experiments, 1):
        cost = cost_of(experiment)
        shown = None if cost is None else min(cost, top)
        row = -1 if shown is None else int(ROWS * log(shown / bottom) / height)
        cell = (COLUMNS * place // len(records.experiments), row)
        if cell not in seen:
            seen.add(cell)
            marks.append(Mark(place, experiment.seconds, shown))
    return tuple(marks)


def geometric(low: float, high: float, share: float) -> float:
    """The value at a share of the way between two on a log scale."""
    return exp(log(low) + share * (log(high) - log(low)))
