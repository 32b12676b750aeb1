"""Submissions of a memory that somebody changed."""

from pathlib import Path

import pytest

from kernelwright.core.errors import MemoryFileError
from kernelwright.memory.records import SubmissionRecord
from kernelwright.memory.store import Memory

from .samples import PROBLEM, campaign


@pytest.mark.parametrize("cases", ["garbage", "7", '{"a": 1}'])
def test_cases_that_were_never_written_so_are_damage(memory_file: Path, cases: str) -> None:
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign("c1"), PROBLEM)
        memory.submission(SubmissionRecord("c1", "tag", "x", "ranked", "passed", 0.0, 1.0, cases=cases))
        with pytest.raises(MemoryFileError, match="a submission of c1 cannot be read"):
            memory.submissions("c1")
