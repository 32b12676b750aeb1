"""A memory that nobody keeps, for a campaign that is only played."""

import contextlib
from collections.abc import Iterator

from kernelwright.harness.scratch import Scratch
from kernelwright.memory.records import CampaignRecord, ProblemRecord
from kernelwright.memory.store import Memory


@contextlib.contextmanager
def scratch_memory(campaign: CampaignRecord, problem: ProblemRecord) -> Iterator[Memory]:
    """With the campaign begun in it; gone afterwards, after a kill with the next harness or replay here."""
    scratch = Scratch()
    try:
        with Memory.open(scratch.folder("memory") / "memory.db") as memory:
            memory.start_campaign(campaign, problem)
            yield memory
    finally:
        scratch.close()
