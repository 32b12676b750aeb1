"""What a campaign has learned, kept as it comes in, so that a prompt costs the same after 100,000 experiments.

Bounded: one entry a template, a few of everything else. Nothing is looked up in the memory while a prompt is made.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, log
from typing import Final

from kernelwright.core.candidate import Candidate
from kernelwright.core.outcome import Outcome, StaticMetrics, Status
from kernelwright.generation.base import Proposal
from kernelwright.profiling import Modelled, modelled

RECENT: Final = 12
FAILURES: Final = 64
REASON: Final = 300
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True)
class Seen:
    """One experiment as a prompt shows it. ``template`` is the id, ``name`` for people."""

    number: int
    template: str
    name: str
    direction: str
    proposer: str
    configuration: str
    status: Status
    reason: str = ""
    cost_ms: float | None = None
    times_ms: Mapping[str, float] = field(default_factory=dict)
    static: StaticMetrics | None = None
    modelled: Modelled | None = None

    @cached_property
    def behaviour(self) -> tuple[float, ...]:
        """How the kernel uses the device: occupancy, registers, shared memory, spills, number of kernels, 0..1 each."""
        kernels = self.static.kernels if self.static else ()
        occupancy = [k.theoretical_occupancy for k in kernels if k.theoretical_occupancy is not None]
        shared = [(k.static_shared_bytes or 0) + (k.dynamic_shared_bytes or 0) for k in kernels]
        return (
            min(occupancy, default=0.5),
            min((self.static.registers or 0) / 255 if self.static else 0.0, 1.0),
            min(max(shared, default=0) / 232_448, 1.0),
            1.0 if self.static and self.static.spill_bytes else 0.0,
            min(len(kernels) / 4, 1.0),
        )


@dataclass
class Lineage:
    """What has come of one direction. ``best_ms`` is the cost of its best candidate."""

    tag: str
    templates: int = 0
    experiments: int = 0
    measured: int = 0
    dropped: int = 0
    best_ms: float = inf
    last: int = 0


@dataclass
class Failure:
    """A kind of failure: the last example and how often it came."""

    example: Seen
    count: int = 1


@dataclass
class TemplateNotes:
    """One template: where it came from, its best, how often it was tried; what was predicted of it."""

    proposal: Proposal
    tried: int = 0
    measured: int = 0
    best: Seen | None = None
    before_ms: float = inf
    """Cost of the fastest candidate when the template came in: predicted gains are judged against it."""


class Notebook:
    """Takes experiments in one by one; answers what a prompt needs, in time that does not grow with their number."""

    def __init__(self) -> None:
        self.templates: dict[str, TemplateNotes] = {}
        self.lineages: dict[str, Lineage] = {}
        self.recent: deque[Seen] = deque(maxlen=RECENT)
        self.failures: OrderedDict[tuple[str, str], Failure] = OrderedDict()
        self.experiments = 0

    def add(self, proposal: Proposal, before_ms: float = inf) -> None:
        """A template came in, when the fastest candidate cost ``before_ms``."""
        if proposal.template.id in self.templates:
            return
        self.templates[proposal.template.id] = TemplateNotes(proposal, before_ms=before_ms)
        self._lineage(proposal.direction).templates += 1

    def dropped(self, direction: str) -> None:
        """A proposal was dropped after its repairs."""
        self._lineage(direction).dropped += 1

    def learn(self, candidate: Candidate, outcome: Outcome, cost_ms: float | None, number: int) -> Seen:
        """One experiment ended."""
        notes = self.templates[candidate.template.id]
        seen = Seen(
            number=number,
            template=candidate.template.id,
            name=candidate.template.name,
            direction=notes.proposal.direction,
            proposer=notes.proposal.proposer,
            configuration=str(candidate.configuration),
            status=outcome.status,
            reason=" ".join(outcome.reason.split())[:REASON],
            cost_ms=cost_ms,
            times_ms=outcome.times_ms() if cost_ms is not None else {},
            static=outcome.static,
            modelled=modelled(outcome.findings),
        )
        self.experiments += 1
        notes.tried += 1
        lineage = self._lineage(seen.direction)
        lineage.experiments += 1
        lineage.last = number
        self.recent.append(seen)
        if cost_ms is None:
            self._failed(seen)
        else:
            notes.measured += 1
            lineage.measured += 1
            lineage.best_ms = min(lineage.best_ms, cost_ms)
            if notes.best is None or cost_ms < (notes.best.cost_ms or inf):
                notes.best = seen
        return seen

    # -- what a prompt shows --------------------------------------------------------------------------

    def best(self, most: int) -> list[Seen]:
        """Best candidates, one a template."""
        found = [notes.best for notes in self.templates.values() if notes.best is not None]
        return sorted(found, key=lambda seen: seen.cost_ms or inf)[:most]

    def predictions(self, most: int) -> list[str]:
        """What was predicted of the latest templates that say so, and what was measured."""
        judged = [
            (notes.proposal, notes.best.cost_ms / notes.before_ms)
            for notes in self.templates.values()
            if notes.proposal.predicted and notes.best and notes.best.cost_ms and notes.before_ms < inf
        ]
        return [
            f"{of.template.name} predicted: {of.predicted[:120]}; measured: {ratio:.3g}x the fastest of then"
            for of, ratio in judged[-most:]
        ]

    def different(self, most: int, shown: Sequence[Seen], within: float = 3.0) -> list[Seen]:
        """Candidates that use the device most differently from those shown, none slower than ``within`` x the best."""
        limit = within * min((seen.cost_ms or inf for seen in shown), default=inf)
        pool = [seen for seen in self.best(64) if (seen.cost_ms or inf) <= limit and seen not in shown]
        chosen: list[Seen] = []
        while pool and len(chosen) < most:
            far = max(pool, key=lambda seen: _distance(seen, [*shown, *chosen]))
            if _distance(far, [*shown, *chosen]) < 0.05:
                break
            chosen.append(far)
            pool.remove(far)
        return chosen

    def instructive(self, most: int) -> list[Failure]:
        """Failures by kind: frequent and recent ones first."""
        newest = max((f.example.number for f in self.failures.values()), default=0)
        weight = {
            key: log(1 + f.count) - (newest - f.example.number) / 200 for key, f in self.failures.items()
        }
        order = sorted(self.failures, key=lambda key: -weight[key])
        return [self.failures[key] for key in order[:most]]

    def directions(self, most: int) -> list[Lineage]:
        """Directions, the best first, untested and failed ones last."""
        return sorted(self.lineages.values(), key=lambda each: (each.best_ms, -each.last))[:most]

    def _lineage(self, tag: str) -> Lineage:
        return self.lineages.setdefault(tag, Lineage(tag))

    def _failed(self, seen: Seen) -> None:
        key = (seen.status.value, _NUMBER.sub("#", seen.reason)[:80])
        known = self.failures.pop(key, None)
        self.failures[key] = Failure(seen, known.count + 1 if known else 1)
        while len(self.failures) > FAILURES:
            self.failures.popitem(last=False)


def _distance(seen: Seen, others: Sequence[Seen]) -> float:
    own = seen.behaviour
    return min(
        (sum((a - b) ** 2 for a, b in zip(own, other.behaviour, strict=True)) ** 0.5 for other in others),
        default=inf,
    )
