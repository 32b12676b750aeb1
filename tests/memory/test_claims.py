"""Two processes never run one campaign at once; a killed one does not stand in the way."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.core.errors import MemoryFileError
from kernelwright.memory import claims
from kernelwright.memory.claims import Holder, Standing
from kernelwright.memory.store import Memory

from .samples import PROBLEM, TEMPLATE, campaign, experiment

HOLDER = """
import sys, time
from pathlib import Path
from kernelwright.memory.claims import Holder, Standing
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


@pytest.fixture
def killed(memory_file: Path) -> Path:
    """A memory whose campaign c1 was killed."""
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign("c1"), PROBLEM)
    killed_holder(memory_file)
    return memory_file


def standing(path: Path, name: str = "c1") -> Standing | None:
    with Memory.open(path, read_only=True) as memory:
        return memory.standing(name)


def pretend(path: Path, **changed: str) -> None:
    """Let the note on c1's holder read otherwise."""
    with Memory.open(path, create=False) as memory:
        noted = Holder.read(memory.notes("c1")["runner"])
        assert noted is not None
        memory.note("c1", "runner", str(replace(noted, **changed)))


def test_a_process_that_is_gone_is_told_without_a_write(memory_file: Path) -> None:
    with Memory.open(memory_file) as memory:
        for name in ("c0", "c1"):
            memory.start_campaign(campaign(name), PROBLEM)
    with Memory.open(memory_file, read_only=True) as reader:
        other = holder(memory_file)
        assert reader.standing("c1") == Standing.RUNNING
        other.kill()
        other.communicate()
        assert reader.standing("c1") == Standing.GONE
        assert reader.campaign("c1").state == "running"
        assert reader.standing("c0") is None  # nobody noted who runs it: an older version
        other = holder(memory_file)
        assert reader.standing("c1") == Standing.RUNNING
        other.communicate("\n")
        assert reader.standing("c1") == Standing.GONE
    with Memory.open(memory_file) as memory:
        memory.progress("c1", "finished", 1.0)
        assert memory.standing("c1") is None


def test_a_boot_ends_every_process_of_the_machine(killed: Path) -> None:
    pretend(killed, boot="an-earlier-one", device="9")
    assert standing(killed) == Standing.GONE
    pretend(killed, machine="another")
    assert standing(killed) == Standing.UNSEEN
    pretend(killed, machine="")
    assert standing(killed) == Standing.UNSEEN


def test_a_boot_says_nothing_where_machines_have_no_name(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("none", None), ("empty", ""), ("early", "uninitialized\n"), ("odd", "\xff" * 32)):
        file = killed.with_name(name)
        if text is not None:
            file.write_text(text)
        monkeypatch.setattr(claims, "MACHINE", file)
        here = Holder.here()
        assert here is not None
        pretend(killed, boot="an-earlier-one", machine=here.machine)
        assert standing(killed) == Standing.UNSEEN


def test_a_process_that_lives_after_a_boot_is_seen_by_its_lock(memory_file: Path) -> None:
    """A network's file system shows the locks of other machines, or not; one that is seen is held."""
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign("c1"), PROBLEM)
    other = holder(memory_file)
    pretend(memory_file, boot="another-machine", machine="another")
    assert standing(memory_file) == Standing.RUNNING
    other.communicate("\n")
    assert standing(memory_file) == Standing.UNSEEN


@pytest.mark.parametrize("with_lock", [False, True])
def test_a_copy_claims_nothing_of_the_process_that_has_the_original(
    memory_file: Path, tmp_path: Path, with_lock: bool
) -> None:
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign("c1"), PROBLEM)
    other = holder(memory_file)
    copy = tmp_path / "copy.db"
    with sqlite3.connect(memory_file) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close()
    target.close()
    if with_lock:
        shutil.copy(f"{memory_file}.lock", f"{copy}.lock")
    assert standing(memory_file) == Standing.RUNNING
    assert standing(copy) == Standing.UNSEEN
    other.communicate("\n")
    assert standing(copy) == Standing.GONE  # seen by its number
    pretend(copy, boot="an-earlier-one")
    assert standing(copy) == Standing.UNSEEN
    pretend(copy, boot="an-earlier-one", namespace="another")
    assert standing(copy) == Standing.UNSEEN


def test_another_container_has_other_numbers(killed: Path) -> None:
    pretend(killed, namespace="another")
    assert standing(killed) == Standing.GONE  # it had this very lock
    here = Holder.here()
    assert here is not None
    pretend(killed, process=here.process, started=here.started)
    assert standing(killed) == Standing.GONE  # nobody here, by the same number
    Path(f"{killed}.lock").unlink()
    assert standing(killed) == Standing.UNSEEN


def test_a_number_that_is_used_again_is_another_process(killed: Path) -> None:
    Path(f"{killed}.lock").unlink()
    pretend(killed, process="1")
    assert standing(killed) == Standing.GONE
    pretend(killed, started=claims.started("1"))
    assert standing(killed) == Standing.UNSEEN
    pretend(killed, process="9" * 40)
    assert standing(killed) == Standing.UNSEEN


def test_notes_of_older_versions_are_read(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(killed) as memory:
        old = " ".join(memory.notes("c1")["runner"].split()[:3])
        memory.note("c1", "runner", old)
        assert memory.standing("c1") == Standing.GONE
        with monkeypatch.context() as patched:
            patched.setattr(claims, "BOOT", killed.with_name("boot_id"))
            assert memory.standing("c1") == Standing.UNSEEN
            claims.BOOT.write_text("another\n")
            assert memory.standing("c1") == Standing.UNSEEN
        for nothing in ("", "boot 1"):
            memory.note("c1", "runner", nothing)
            assert memory.standing("c1") == Standing.UNSEEN
        memory.note("c1", "runner", old)
        Path(f"{killed}.lock").unlink()
        assert memory.standing("c1") == Standing.UNSEEN


def test_ones_own_campaign_is_seen_without_losing_it(memory_file: Path) -> None:
    with Memory.open(memory_file) as memory, Memory.open(memory_file) as beside:
        memory.start_campaign(campaign("c1"), PROBLEM)
        memory.claim("c1")
        assert beside.standing("c1") == Standing.RUNNING
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
