"""Templates that led, where they came from, and what each was worth."""

import difflib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from kernelwright.core.candidate import parse_template
from kernelwright.core.errors import KernelwrightError
from kernelwright.generation.source_text import without_comments
from kernelwright.memory.records import TemplateRecord
from kernelwright.report.models import DiffLine, Improvement, Lineage, LineageNode, MilestoneRow, TemplateRow
from kernelwright.report.records import Records, cost_of

MOST_DIFFS: Final = 40
MOST_LINES: Final = 300
MOST_TEMPLATES: Final = 60
LONGEST_LINE: Final = 300
_KINDS: Final = {"+": "add", "-": "cut", "@": "place"}


def lineage(records: Records, milestones: tuple[MilestoneRow, ...]) -> Lineage:
    """Tree, diffs and a table of all templates."""
    improvements = list(_improvements(records, milestones))
    rows = _templates(records, milestones)
    shown = improvements if len(improvements) <= MOST_DIFFS else improvements[-MOST_DIFFS:]
    return Lineage(
        nodes=_nodes(records, milestones),
        improvements=tuple(shown),
        improvements_left_out=len(improvements) - len(shown),
        templates=tuple(rows[:MOST_TEMPLATES]),
        templates_left_out=max(0, len(rows) - MOST_TEMPLATES),
    )


def _nodes(records: Records, milestones: tuple[MilestoneRow, ...]) -> tuple[LineageNode, ...]:
    first: dict[str, MilestoneRow] = {}
    for row in milestones:
        first.setdefault(row.template, row)
    nodes: list[LineageNode] = []
    lanes: dict[str, int] = {}
    grown: set[str] = set()
    for template, row in first.items():
        record = records.templates[template]
        parent = _leading_ancestor(template, records.templates, lanes)
        lanes[template] = (
            lanes[parent] if parent and parent not in grown else max(lanes.values(), default=-1) + 1
        )
        grown.add(parent)
        nodes.append(
            LineageNode(
                template=template,
                name=record.name,
                proposer=record.proposer,
                direction=record.direction,
                parents=tuple(_name(records, each) for each in record.parents),
                parent=parent,
                seconds=row.seconds,
                ratio=min(each.ratio for each in milestones if each.template == template),
                lane=lanes[template],
            )
        )
    return tuple(nodes)


def _leading_ancestor(template: str, templates: Mapping[str, TemplateRecord], led: Mapping[str, int]) -> str:
    """Nearest by generations among those that led before; empty when there is none."""
    seen, front = {template}, list(templates[template].parents)
    while front:
        for each in front:
            if each in led:
                return each
        seen.update(front)
        front = [p for each in front if each in templates for p in templates[each].parents if p not in seen]
    return ""


def _name(records: Records, template: str) -> str:
    return records.templates[template].name if template in records.templates else template


def _improvements(records: Records, milestones: tuple[MilestoneRow, ...]) -> Iterator[Improvement]:
    shown: set[str] = set()
    for before, row in itertools.pairwise(milestones):
        if not row.jump:
            continue
        record = records.templates[row.template]
        other = next((p for p in record.parents if p in records.templates), before.template)
        again = row.template in shown
        lines = [] if again else _diff(records.templates[other], record)
        shown.add(row.template)
        yield Improvement(
            jump=row.jump,
            seconds=row.seconds,
            name=record.name,
            template=row.template,
            proposer=record.proposer,
            direction=record.direction,
            rationale=record.rationale,
            predicted=record.predicted,
            actual=_actual(records, before, row),
            compared_with="" if again else records.templates[other].name,
            diff=tuple(lines[:MOST_LINES]),
            left_out=max(0, len(lines) - MOST_LINES),
        )


def _actual(records: Records, before: MilestoneRow, row: MilestoneRow) -> str:
    """What the change brought in the search, and the duel that decided."""
    text = f"{row.ratio:.3f} of the baseline's time after {before.ratio:.3f}"
    duel = next((d for d in records.duels if d.promoted and d.challenger == row.candidate), None)
    if duel is not None:
        return f"{text}; duel {duel.number}: {duel.summary}"
    why = "" if row.strategy == records.templates[row.template].rationale else f": {row.strategy}"
    return f"{text}; it leads without a won duel, by the campaign's rules{why}"


def _diff(before: TemplateRecord, after: TemplateRecord) -> list[DiffLine]:
    lines = difflib.unified_diff(_lines(before), _lines(after), lineterm="", n=2)
    return [
        DiffLine(_KINDS.get(line[:1], "same"), line[:LONGEST_LINE])
        for line in lines
        if not line.startswith(("--- ", "+++ "))
    ]


def _lines(record: TemplateRecord) -> list[str]:
    """Code without comments: what a model wrote beside it is no part of the change."""
    try:
        return without_comments(parse_template(record.source, record.name)).splitlines()
    except KernelwrightError:  # written for another version of the format
        return record.source.splitlines()


def _templates(records: Records, milestones: tuple[MilestoneRow, ...]) -> list[TemplateRow]:
    tried, failed = Counter[str](), Counter[str]()
    best: dict[str, float] = {}
    for experiment in records.experiments:
        cost = cost_of(experiment)
        tried[experiment.template] += 1
        failed[experiment.template] += not experiment.outcome.cases
        if cost is not None:
            best[experiment.template] = min(cost, best.get(experiment.template, cost))
    base = cost_of(records.baseline) if records.baseline else None
    led = {row.template for row in milestones}
    rows = [
        TemplateRow(
            template=record.id,
            name=record.name,
            proposer=record.proposer,
            direction=record.direction,
            predicted=record.predicted,
            experiments=tried[record.id],
            failures=failed[record.id],
            ratio=best[record.id] / base if base and record.id in best else None,
            led=record.id in led,
        )
        for record in records.templates.values()
    ]
    return sorted(rows, key=lambda row: (row.ratio is None, row.ratio or 0.0))
