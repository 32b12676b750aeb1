"""A memory that nobody keeps, for a campaign that is only played."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kernelwright.memory.records import CampaignRecord, ProblemRecord
from kernelwright.memory.store import Memory


@contextlib.contextmanager
def scratch_memory(campaign: CampaignRecord, problem: ProblemRecord) -> Iterator[Memory]:
    """With the campaign begun in it; gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="kernelwright-") as folder,
        Memory.open(Path(folder) / "memory.db") as memory,
    ):
        memory.start_campaign(campaign, problem)
        yield memory
