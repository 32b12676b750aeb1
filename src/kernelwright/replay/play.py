"""The search played again from its seed: recorded outcomes for a device, recorded replies for models.

Which candidate is asked for next depends on which results are in by then, and so on the timing of lanes: another order
is told and decides nothing.
"""

from collections.abc import Sequence
from typing import Final

from kernelwright.campaign.budget import Budget
from kernelwright.campaign.campaign import BaselineFailed, Campaign
from kernelwright.campaign.events import Silent
from kernelwright.campaign.origins import proposal_of
from kernelwright.campaign.scratch import scratch_memory
from kernelwright.core.objective import ObjectiveName
from kernelwright.generation.base import Proposal
from kernelwright.generation.model import Model, ModelError, ModelReply, ModelRequest, Usage
from kernelwright.memory.problems import recorded_problem
from kernelwright.memory.records import RequestRecord, TemplateRecord
from kernelwright.memory.store import Memory
from kernelwright.replay.derivation import CATALOGUE
from kernelwright.replay.recorded_harness import RecordedHarness
from kernelwright.replay.subject import Subject
from kernelwright.replay.verdicts import Part, differs, reproduced

PLAYED: Final = 60
"""Most experiments that are played: where they have parted, the rest says nothing."""
SECONDS: Final = 60.0


class RecordedReplies:
    """Implements :class:`~kernelwright.generation.model.Model` with a campaign's answers, by number of the request."""

    def __init__(self, name: str, requests: Sequence[RequestRecord]) -> None:
        self.name = name
        self._requests = {request.id: request for request in requests}

    async def ask(self, request: ModelRequest) -> ModelReply:
        """What was answered under that number. Raises ModelError where nothing was."""
        record = self._requests.get(request.id)
        if record is None or record.reply is None:
            raise ModelError(f"{self.name}: no reply to {request.id} is recorded")
        usage = Usage(record.input_tokens, record.output_tokens, record.cost_usd)
        return ModelReply(record.reply, usage, record.seconds or 0.0)

    async def close(self) -> None:
        """Nothing is held."""


class RecordedCatalogue:
    """Proposes the catalogue's templates that the campaign tried, in their order."""

    def __init__(self, templates: Sequence[TemplateRecord]) -> None:
        self._left = [proposal_of(record) for record in templates if record.proposer == CATALOGUE]

    async def propose(self) -> Proposal | None:
        """Next one."""
        return self._left.pop(0) if self._left else None


async def play(subject: Subject) -> Part:
    """How much of the search comes again, and whether it ends with the same leader."""
    with scratch_memory(subject.campaign, subject.problem) as memory:
        campaign = _campaign(subject, memory)
        try:
            await campaign.run()
        except BaselineFailed as error:
            return differs("search", f"{error}")
        asked = [experiment.candidate for experiment in memory.experiments(subject.campaign.id)]
        return _told(subject, asked, campaign)


def _campaign(subject: Subject, memory: Memory) -> Campaign:
    record = subject.campaign
    experiments = list(subject.memory.experiments(record.id))
    requests = subject.memory.requests(record.id)
    names = dict.fromkeys(request.model for request in requests)
    models: dict[str, Model] = {
        name: RecordedReplies(name, [each for each in requests if each.model == name]) for name in names
    }
    most = min(len(experiments), PLAYED)
    changes = {
        "objective": ObjectiveName(record.objective),
        "max_requests": len(requests),
        "max_cost_usd": None,
    }
    return Campaign(
        id=record.id,
        settings=subject.settings.model_copy(update=changes),
        problem=recorded_problem(subject.problem),
        harness=RecordedHarness(record, experiments, subject.memory.duels(record.id)),
        memory=memory,
        proposer=RecordedCatalogue(list(subject.memory.templates(record.id).values())),
        listener=Silent(),
        budget=Budget(SECONDS, most),
        models=models,
    )


def _told(subject: Subject, asked: Sequence[str], campaign: Campaign) -> Part:
    recorded = {experiment.candidate for experiment in subject.memory.experiments(subject.campaign.id)}
    known = sum(candidate in recorded for candidate in asked)
    leader = campaign.standing.incumbent
    told = f"played from its seed on the recorded outcomes, {known} of {len(asked)} candidates asked for are recorded"
    if leader is not None and leader.candidate == subject.winner.candidate:
        return reproduced("search", f"{told}, and the same one leads")
    if len(asked) < len(recorded):
        return differs("search", f"{told}, {len(recorded)} experiments made the recorded leader")
    return differs(
        "search", f"{told}; another leads, since the order of results depends on the timing of lanes"
    )
