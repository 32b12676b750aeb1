"""What every proposer of structure offers."""

from dataclasses import dataclass
from typing import Protocol

from kernelwright.core.candidate import Template


@dataclass(frozen=True)
class Proposal:
    """A template and why: nothing here decides whether the candidate passes, fails or ranks.

    ``direction`` is a short tag of the idea (lineage): more than three compile failures pause it.
    """

    template: Template
    direction: str
    proposer: str
    rationale: str = ""
    predicted: str = ""
    parents: tuple[str, ...] = ()


class Proposer(Protocol):
    """Gives templates until it has no more."""

    async def propose(self) -> Proposal | None:
        """Next template, or ``None`` when there is nothing left to propose."""
        ...
