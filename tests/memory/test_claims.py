"""Two processes never run one campaign at once; a killed one does not stand in the way."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.core.errors import MemoryFileError
from kernelwright.memory import claims
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


def killed_holder(path: Path) -> None:
    process = holder(path)
    process.kill()
    process.communicate()


def test_a_process_that_is_gone_is_told_without_a_write(memory_file: Path) -> None:
    with Memory.open(memory_file) as memory:
        for name in ("c0", "c1"):
            memory.start_campaign(campaign(name), PROBLEM)
    with Memory.open(memory_file, read_only=True) as reader:
        other = holder(memory_file)
        assert not reader.abandoned("c1")
        other.kill()
        other.communicate()
        assert reader.abandoned("c1")
        assert reader.campaign("c1").state == "running"
        assert not reader.abandoned("c0")  # nobody noted who runs it: an older version
        other = holder(memory_file)
        assert not reader.abandoned("c1")
        other.communicate("\n")
        assert reader.abandoned("c1")
    with Memory.open(memory_file) as memory:
        memory.progress("c1", "finished", 1.0)
        assert not memory.abandoned("c1")


def test_who_cannot_be_asked_is_not_called_gone(memory_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign("c1"), PROBLEM)
        killed_holder(memory_file)
        assert memory.abandoned("c1")
        boot = memory_file.with_name("boot_id")
        boot.write_text("another-machine\n")
        with monkeypatch.context() as patched:
            patched.setattr(claims, "BOOT", boot)
            assert not memory.abandoned("c1")
            patched.setattr(claims, "BOOT", boot / "nothing")
            assert not memory.abandoned("c1")
        Path(f"{memory_file}.lock").unlink()
        assert not memory.abandoned("c1")


def test_ones_own_campaign_is_seen_without_losing_it(memory_file: Path) -> None:
    with Memory.open(memory_file) as memory, Memory.open(memory_file) as beside:
        memory.start_campaign(campaign("c1"), PROBLEM)
        memory.claim("c1")
        assert not beside.abandoned("c1")
        other = subprocess.run(
            [sys.executable, "-c", HOLDER, str(memory_file)], check=False, capture_output=True, text=True
        )
        assert "is being run by another process" in other.stderr


def test_closing_the_memory_lets_go(memory_file: Path) -> None:
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign("c1"), PROBLEM)
        memory.claim("c1")
    other = holder(memory_file)
    other.communicate("\n")
    assert other.returncode == 0
