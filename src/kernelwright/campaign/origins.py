"""Where a template came from: proposals as the memory keeps them, and back."""

from kernelwright.core.candidate import parse_template
from kernelwright.generation.base import Proposal
from kernelwright.memory.records import TemplateRecord


def origin(proposal: Proposal) -> TemplateRecord:
    """The record of a proposal."""
    template = proposal.template
    return TemplateRecord(
        id=template.id,
        name=template.name,
        source=template.source,
        proposer=proposal.proposer,
        direction=proposal.direction,
        rationale=proposal.rationale,
        predicted=proposal.predicted,
        parents=proposal.parents,
    )


def proposal_of(record: TemplateRecord) -> Proposal:
    """The proposal of a record."""
    return Proposal(
        template=parse_template(record.source, record.name),
        direction=record.direction,
        proposer=record.proposer,
        rationale=record.rationale,
        predicted=record.predicted,
        parents=record.parents,
    )
