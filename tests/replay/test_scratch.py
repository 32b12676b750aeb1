"""A replay's folder goes with it, whatever ends it."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernelwright.replay.scratch import scratch_folder

KEEPS_ONE = """
import time
from kernelwright.replay.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "problem").mkdir()
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_it_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with scratch_folder() as folder:
        assert folder.stat().st_mode & 0o077 == 0
        assert folder.is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_that_of_a_killed_replay_is_removed_by_the_next_and_not_before(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", KEEPS_ONE], env=environment, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        with scratch_folder():
            assert (left / "problem").is_dir()
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert left.is_dir()
    with scratch_folder():
        assert not left.exists()
        assert not left.parent.exists()
    assert list(tmp_path.iterdir()) == []
