"""Two processes never run one campaign at once; a killed one does not stand in the way."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.core.errors import MemoryFileError
from kernelwright.memory.store import Memory

from .samples import PROBLEM, TEMPLATE, campaign, experiment

HOLDER = """
import sys, time
from pathlib import Path
from kernelwright.memory.store import Memory
with Memory.open(Path(sys.argv[1]), create=False) as memory:
    memory.claim("c1")
    print("claimed", flush=True)
    sys.stdin.readline()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "claimed\n"
    return process


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
def test_a_claim_holds_until_its_process_lets_go(memory_file: Path, killed: bool) -> None:
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign("c1"), PROBLEM)
        memory.start_campaign(campaign("c2"), PROBLEM)
        other = holder(memory_file)
        with pytest.raises(MemoryFileError) as caught:
            memory.claim("c1")
        assert "the campaign c1 is being run by another process: wait for its end" in str(caught.value)
        memory.claim("c2")
        with Memory.open(memory_file, read_only=True) as reader:
            assert len(reader.campaigns()) == 2
        memory.record(experiment(1, campaign="c2"), TEMPLATE)
        if killed:
            other.send_signal(signal.SIGKILL)
        other.communicate("\n")
        assert other.returncode == (-signal.SIGKILL if killed else 0)
        memory.claim("c1")
        memory.claim("c1")


def test_closing_the_memory_lets_go(memory_file: Path) -> None:
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign("c1"), PROBLEM)
        memory.claim("c1")
    other = holder(memory_file)
    other.communicate("\n")
    assert other.returncode == 0
