"""A campaign that was killed before anything of it was recorded, or right after it was."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.campaign.sitting import SELFTEST
from kernelwright.cli.main import main
from kernelwright.memory.store import Memory
from tests.cli.test_robust import error_of

DIES = """
import os, signal
from kernelwright.cli.main import main
from kernelwright.memory.store import Memory
Memory.{method} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
main(["run", "vector_add", "--device", "cpu", "--seconds", "5", "--dir", {folder!r}])
"""


def killed_in(method: str, folder: Path) -> None:
    """A campaign that dies as it calls this method of the memory."""
    text = DIES.format(method=method, folder=str(folder))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, timeout=120, check=False)
    assert done.returncode == -9, done.stderr


@pytest.mark.parametrize("method", ["open", "start_campaign"])
def test_before_its_record_the_same_command_is_named(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed_in(method, tmp_path / "dir")
    for command in ("resume", "show", "replay"):
        said = error_of(capsys, command, "--dir", str(tmp_path / "dir"))
        assert f"{tmp_path / 'dir' / 'memory.db'}: " in said
        assert "killed" in said
        assert "begins anew with the same command" in said


def test_with_its_record_stands_what_its_certificate_needs(tmp_path: Path) -> None:
    killed_in("claim", tmp_path)
    with Memory.open(tmp_path / "memory.db", read_only=True) as memory:
        notes = memory.notes(memory.campaign("last").id)
    assert {"sandbox", "ceilings", "timing", "kernelwright", "goal", SELFTEST} <= set(notes)


def test_resume_names_the_campaign_that_it_takes_for_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be an earlier one than is meant, where the last one left no record."""
    killed_in("claim", tmp_path)
    with Memory.open(tmp_path / "memory.db") as memory:
        name = memory.campaign("last").id
        memory.progress(name, "finished", 5.0)
    killed_in("start_campaign", tmp_path)
    with pytest.raises(SystemExit):
        main(["resume", "--dir", str(tmp_path)])
    told = capsys.readouterr()
    assert f"{name}, the last campaign recorded here: its budget of 5 s is spent" in told.err
