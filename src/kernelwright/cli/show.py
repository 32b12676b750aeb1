"""``show``: what a campaign did. Reads the memory only."""

import difflib
import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from io import TextIOWrapper
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from kernelwright.cli.options import DEFAULT_DIR, MEMORY_FILE, CampaignArgument, DirOption, JsonOption
from kernelwright.cli.plain import PlainConsole
from kernelwright.core.errors import UserError
from kernelwright.core.outcome import Status
from kernelwright.memory.records import CampaignRecord, Duel, Experiment
from kernelwright.memory.store import Memory
from kernelwright.report import Overview, Records, bottleneck, chart, overview, visible
from kernelwright.report.board import BoardPart, board, ranks_by_candidate
from kernelwright.report.models import Profile

BRIEF: Final = 200
"""Characters of a milestone's strategy; the report and --json have all."""


def show(
    campaign: CampaignArgument = "last",
    experiments: Annotated[
        bool, typer.Option("--experiments", help="Every experiment with its reason.")
    ] = False,
    source: Annotated[
        bool, typer.Option("--source", help="The incumbent's source and configuration.")
    ] = False,
    candidate: Annotated[
        str | None, typer.Option(help="One candidate: source, samples, reason (start of its id).")
    ] = None,
    diff: Annotated[
        tuple[str, str] | None, typer.Option(help="Two candidates (starts of their ids).")
    ] = None,
    directory: DirOption = DEFAULT_DIR,
    as_json: JsonOption = False,
) -> None:
    """Headline and milestones of a campaign; more with the options."""
    if isinstance(sys.stdout, TextIOWrapper):  # a terminal that knows few characters still shows the rest
        sys.stdout.reconfigure(errors="backslashreplace")
    with Memory.open(directory / MEMORY_FILE, read_only=True) as memory:
        view = _View(memory, memory.campaign(campaign))
        if diff is not None:
            typer.echo(_for_eyes(view.diff(*diff)))
        elif candidate is not None:
            typer.echo(visible(view.candidate(view.find(candidate))))
        elif source:
            typer.echo(_for_eyes(view.source(view.incumbent())))
        elif as_json:
            typer.echo(json.dumps(view.as_json(with_experiments=experiments)))
        else:
            view.print(PlainConsole(), with_experiments=experiments)


def _brief(strategy: str) -> str:
    """Name, configuration and the first sentence of the rationale: a table is to be looked over."""
    name, _, rationale = " ".join(strategy.split()).partition(": ")
    first = rationale.partition(". ")[0]
    text = f"{name}: {first}" if first else name
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 3]}..."


def _for_eyes(source: str) -> str:
    """A terminal obeys no source; a file gets it as it is."""
    return str(visible(source)) if sys.stdout.isatty() else source


class _View:
    def __init__(self, memory: Memory, campaign: CampaignRecord) -> None:
        self._memory = memory
        self.records = Records.read(memory, campaign)
        self.campaign = self.records.campaign
        self.experiments = self.records.experiments
        self.templates = self.records.templates
        self.milestones = self.records.milestones
        self.notes = self.records.notes
        self.duels = self.records.duels

    @cached_property
    def overview(self) -> Overview:
        """How a report begins."""
        return overview(self.records)

    @cached_property
    def bottleneck(self) -> Profile | None:
        """What limits who leads."""
        return bottleneck(self._memory, self.records)

    @cached_property
    def board(self) -> BoardPart | None:
        """What was sent to a board, and the places there."""
        return board(self.records)

    @property
    def strongest(self) -> Mapping[str, Any]:
        """The strong reference that the incumbent was compared with; empty without one."""
        note, leader = self.records.note("strongest"), self.records.incumbent
        return note if leader and note.get("candidate") == leader.candidate else {}

    @property
    def ranks(self) -> Mapping[str, int | None]:
        """Places after submissions, by candidate."""
        return ranks_by_candidate(self.records)

    def find(self, start: str) -> Experiment:
        """The experiment whose candidate's id starts so."""
        found = [e for e in self.experiments if e.candidate.startswith(start)]
        if len(found) != 1:
            what = f"{len(found)} candidates begin" if found else "no candidate begins"
            raise UserError(
                f"{what} with {start!r} in {self.campaign.id}: see kernelwright show --experiments"
            )
        return found[0]

    def incumbent(self) -> Experiment:
        """The last candidate that took the lead."""
        if not self.milestones:
            raise UserError(f"{self.campaign.id} has no incumbent: nothing was measured")
        return next(e for e in self.experiments if e.number == self.milestones[-1].experiment)

    def label(self, experiment: Experiment) -> str:
        """Template and configuration."""
        return f"{self.templates[experiment.template].name} [{experiment.configuration}]"

    def source(self, experiment: Experiment) -> str:
        """The template's text with the configuration that was measured above it."""
        return f"// {experiment.candidate}: {experiment.configuration}\n{self.templates[experiment.template].source}"

    def candidate(self, experiment: Experiment) -> str:
        """Everything the memory has of one candidate."""
        outcome = experiment.outcome
        lines = [
            f"{experiment.candidate}  {self.label(experiment)}",
            f"{outcome.status}  {outcome.reason}".rstrip(),
        ]
        lines.append(f"chosen because: {experiment.why}")
        lines += [
            f"{t.case}: median {t.median_ms:.6g} ms of {[round(s, 6) for s in t.samples_ms]} ({t.method}), "
            f"error {t.max_error:.3g} of the tolerance"
            for t in outcome.cases
        ]
        profiles = [p for p in self.records.profiles if p.candidate == experiment.candidate]
        lines += [f"profile ({p.occasion}):\n{p.digest}" for p in profiles]
        return "\n".join([*lines, "", self.templates[experiment.template].source])

    def diff(self, left: str, right: str) -> str:
        """Difference of two candidates: configuration and source."""
        a, b = self.find(left), self.find(right)
        before, after = self._text(a), self._text(b)
        lines = difflib.unified_diff(before, after, self.label(a), self.label(b), lineterm="")
        return "\n".join(lines)

    def _text(self, e: Experiment) -> list[str]:
        values = [f"{name} = {value}" for name, value in e.configuration.items()]
        return [*values, *self.templates[e.template].source.splitlines()]

    def as_json(self, *, with_experiments: bool) -> dict[str, Any]:
        """The same for scripts."""
        data: dict[str, Any] = {
            "campaign": self.campaign.id,
            "state": self.campaign.state,
            "settings": json.loads(self.campaign.settings),
            "device": json.loads(self.campaign.device),
            "experiments": len(self.experiments),
            "statuses": dict(Counter(e.outcome.status for e in self.experiments)),
            "seconds": max([self.campaign.seconds, *(e.seconds for e in self.experiments)]),
            "milestones": self._milestones_json(),
            "board": asdict(self.board) if self.board else None,
            "confirmation": json.loads(self.notes.get("confirmation", "null")),
            "strongest": dict(self.strongest) or None,
            "duels": [self._duel_json(duel) for duel in self.duels],
            "findings": self._findings(),
            "headline": asdict(self.overview.headline),
            "bottleneck": asdict(self.bottleneck) if self.bottleneck else None,
            "trajectory": [asdict(step) for step in self.overview.trajectory.steps],
        }
        if with_experiments:
            data["all_experiments"] = [self._experiment_json(e) for e in self.experiments]
        return data

    def _milestones_json(self) -> list[dict[str, Any]]:
        by_number = {e.number: e.candidate for e in self.experiments}
        ranks = self.ranks
        return [{**asdict(m), "rank": ranks.get(by_number[m.experiment], m.rank)} for m in self.milestones]

    def _duel_json(self, duel: Duel) -> dict[str, Any]:
        decision = duel.decision
        return {
            "challenger": duel.challenger,
            "incumbent": duel.incumbent,
            "verdict": "confirmation" if duel.confirmation else decision.verdict,
            "promoted": duel.promoted,
            "at_fault": duel.at_fault,
            "reason": decision.reason,
            "ratio": decision.ratio,
            "interval": [decision.low, decision.high],
            "rounds": decision.rounds,
            "seconds": duel.seconds,
        }

    def _findings(self) -> dict[str, Any]:
        """What was found out about incumbents after their duels."""
        kinds = ("sanitizer:", "disqualified:")
        return {key: json.loads(value) for key, value in self.notes.items() if key.startswith(kinds)}

    def _experiment_json(self, e: Experiment) -> dict[str, Any]:
        return {
            "number": e.number,
            "candidate": e.candidate,
            "template": self.templates[e.template].name,
            "configuration": dict(e.configuration),
            "status": e.outcome.status,
            "reason": e.outcome.reason,
            "why": e.why,
            "cost_ms": e.cost_ms,
            "score": e.score,
            "eligible": e.eligible,
            "seconds": e.seconds,
            "spent": e.outcome.seconds,
            "cases": {
                t.case: {"median_ms": t.median_ms, "samples_ms": t.samples_ms} for t in e.outcome.cases
            },
        }

    def print(self, console: Console, *, with_experiments: bool) -> None:
        """Headline, milestones, statuses."""
        device = json.loads(self.campaign.device)
        console.print(
            f"{self.campaign.id} on {device['name']} ({device['model']}): {self.campaign.state}",
            style="bold",
            markup=False,
        )
        self._print_headline(console)
        self._print_milestones(console)
        if self.bottleneck:
            console.print(visible(self.bottleneck.digest), markup=False, highlight=False)
        ascii_only = console.options.ascii_only
        console.out(chart(self.overview.trajectory, console.width, ascii_only=ascii_only), highlight=False)
        counts = Counter(str(e.outcome.status) for e in self.experiments)
        console.print(
            f"{len(self.experiments)} experiments: " + ", ".join(f"{n} {s}" for s, n in counts.items())
        )
        self._print_duels(console)
        if with_experiments:
            rows = Table(
                "number", "status", "cost ms", "candidate", "template", "reason", box=None, pad_edge=False
            )
            for e in self.experiments:
                cost = (
                    f"{e.cost_ms:.4g}"
                    if e.cost_ms is not None and e.outcome.status is Status.MEASURED
                    else ""
                )
                rows.add_row(
                    str(e.number),
                    e.outcome.status,
                    cost,
                    e.candidate,
                    visible(self.label(e)),
                    visible(e.outcome.reason),
                )
            console.print(rows, markup=False)

    def _print_milestones(self, console: Console) -> None:
        """With the place after each submission, where there is a board."""
        ranks = self.ranks
        columns = ("seconds", "ratio", *(("rank",) if self.board else ()), "candidate", "strategy")
        table = Table(*columns, box=None, pad_edge=False)
        by_number = {e.number: e for e in self.experiments}
        for m in self.milestones:
            candidate = by_number[m.experiment].candidate
            rank = (f"{ranks.get(candidate) or ''}",) if self.board else ()
            table.add_row(f"{m.seconds:.1f}", f"{m.ratio:.3f}", *rank, candidate, visible(_brief(m.strategy)))
        console.print(table, markup=False)
        if self.board:
            sent = Counter(f"{row.mode} {row.state}" for row in self.board.submissions)
            told = ", ".join(f"{n} {what}" for what, n in sent.items()) or "nothing"
            console.print(
                f"{self.board.url}: {self.board.summary} Sent: {told}.", markup=False, highlight=False
            )

    def _print_headline(self, console: Console) -> None:
        head = self.overview.headline
        console.print(head.verdict, style="bold", markup=False, highlight=False)
        for note in head.notes:
            console.print(note, style="dim", markup=False, highlight=False)

    def _print_duels(self, console: Console) -> None:
        table = Table(
            "challenger", "incumbent", "ratio [99 %]", "rounds", "verdict", box=None, pad_edge=False
        )
        for duel in self.duels:
            d = duel.decision
            ratio = "" if d.ratio is None else f"{d.ratio:.4f} [{d.low:.4f}, {d.high:.4f}]"
            verdict = "at the end" if duel.confirmation else visible(f"{d.verdict}: {d.reason}")
            table.add_row(duel.challenger, duel.incumbent, ratio, str(d.rounds), verdict)
        if self.duels:
            console.print(table, markup=False)
        for key, found in self._findings().items():
            kind, _, candidate = key.partition(":")
            console.print(
                f"{kind} {candidate}: {found.get('status', '')} {found.get('reason', '')}".rstrip(),
                markup=False,
            )
        if "confirmation" in self.notes:
            both = json.loads(self.notes["confirmation"])
            ratio = both.get("ratio") or both["incumbent_ms"] / both["baseline_ms"]
            low, high, rounds = both.get("low"), both.get("high"), both.get("rounds", 0)
            known = low is not None and high is not None
            interval = f" (99 %: {low:.4f} to {high:.4f}, {rounds} paired rounds)" if known else ""
            console.print(f"against the baseline at the end: {ratio:.3f}x of its time{interval}")
        if reference := self.strongest:
            low, high = reference.get("low"), reference.get("high")
            interval = "" if low is None or high is None else f"99 %: {low:.4f} to {high:.4f}, "
            told = f"against {reference['name']} at the end: {reference['ratio']:.3f}x of its time"
            console.print(f"{told} ({interval}{reference.get('source', 'noted')})", markup=False)
