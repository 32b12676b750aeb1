"""A campaign's records, read from the memory once."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Final, Self

from kernelwright.certificate.facts import BASELINE
from kernelwright.core.outcome import Status
from kernelwright.memory.claims import Standing
from kernelwright.memory.records import (
    CampaignRecord,
    CertificateRecord,
    Duel,
    Experiment,
    Milestone,
    PlaceRecord,
    ProfileRecord,
    RequestRecord,
    SubmissionRecord,
    TemplateRecord,
)
from kernelwright.memory.store import Memory

_SHOWN: Final = {Standing.GONE: "interrupted", Standing.UNSEEN: "unknown"}


@dataclass(frozen=True)
class Records:
    """What the views are made of. A milestone whose experiment is not seen yet (a writer is at work) is left out."""

    campaign: CampaignRecord
    experiments: tuple[Experiment, ...]
    templates: Mapping[str, TemplateRecord]
    milestones: tuple[Milestone, ...]
    duels: tuple[Duel, ...]
    certificates: tuple[CertificateRecord, ...]
    requests: tuple[RequestRecord, ...]
    profiles: tuple[ProfileRecord, ...]
    notes: Mapping[str, str]
    submissions: tuple[SubmissionRecord, ...] = ()
    places: tuple[PlaceRecord, ...] = ()
    standing: Standing | None = None
    """Of a campaign without an end: ``campaign.state`` is ``interrupted`` when its process is gone, ``unknown`` when it is not seen."""

    @classmethod
    def read(cls, memory: Memory, campaign: CampaignRecord) -> Self:
        """Experiments come last but templates: what was read before speaks of experiments that are there."""
        name = campaign.id
        milestones, duels = memory.milestones(name), memory.duels(name)
        experiments = tuple(memory.experiments(name))
        standing = memory.standing(name)
        known = {experiment.number for experiment in experiments}
        return cls(
            campaign=replace(campaign, state=_SHOWN[standing]) if standing in _SHOWN else campaign,
            experiments=experiments,
            templates=memory.templates(name),
            milestones=tuple(m for m in milestones if m.experiment in known),
            duels=tuple(duels),
            certificates=tuple(memory.certificates(name)),
            requests=tuple(memory.requests(name)),
            profiles=tuple(memory.profiles(name)),
            notes=memory.notes(name),
            submissions=tuple(memory.submissions(name)),
            places=tuple(memory.places(name)),
            standing=standing,
        )

    @cached_property
    def by_number(self) -> dict[int, Experiment]:
        """Experiments by their number in the memory."""
        return {experiment.number: experiment for experiment in self.experiments}

    @cached_property
    def leaders(self) -> tuple[Experiment, ...]:
        """Experiments of the milestones, in order."""
        return tuple(self.by_number[m.experiment] for m in self.milestones)

    @property
    def incumbent(self) -> Experiment | None:
        """Who leads."""
        return self.leaders[-1] if self.leaders else None

    @cached_property
    def baseline(self) -> Experiment | None:
        """The measured baseline."""
        found = (e for e in self.experiments if self.templates[e.template].direction == BASELINE)
        return next((e for e in found if e.outcome.cases), None)

    @cached_property
    def device(self) -> Mapping[str, Any]:
        """Facts of the device."""
        return _object(self.campaign.device)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """What the user asked for."""
        return _object(self.campaign.settings)

    def note(self, key: str) -> Mapping[str, Any]:
        """A noted object; empty when there is none or it is none."""
        return _object(self.notes.get(key, "{}"))

    def name(self, experiment: Experiment) -> str:
        """Template and configuration."""
        template = self.templates[experiment.template].name
        return f"{template} [{experiment.configuration}]" if len(experiment.configuration) else template

    @property
    def seconds(self) -> float:
        """The campaign's time so far; a running one has recorded it with its last experiment only."""
        return max([self.campaign.seconds, *(e.seconds for e in self.experiments)])


def cost_of(experiment: Experiment) -> float | None:
    """What the search minimises, in ms, of a measured experiment."""
    cost = experiment.cost_ms
    usable = cost is not None and isfinite(cost) and cost > 0 and experiment.outcome.status is Status.MEASURED
    return cost if usable else None


def _object(text: str) -> Mapping[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
