"""Campaign and evaluation as processes of their own, killed and started again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelwright.harness.detached.folder import Folder

KERNELWRIGHT = Path(sys.executable).parent / "kernelwright"


def command(*words: str | Path, cwd: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [KERNELWRIGHT, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def done(*words: str, cwd: Path) -> None:
    ended = command(*words, cwd=cwd)
    _, errors = ended.communicate()
    assert ended.returncode == 0, errors


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_campaign_with_its_device_elsewhere_survives_kills(tmp_path: Path) -> None:
    """The campaign is killed while it waits and resumed, an evaluation is killed and run again."""
    path, ours = tmp_path / "d", ("--json",)
    run = command(
        "run",
        "vector_add",
        "--device",
        "detached:d",
        "--slow-cases",
        "--evaluations",
        "3",
        "--seconds",
        "1000",
        *ours,
        cwd=tmp_path,
    )
    killed = False
    deadline = time.monotonic() + 280
    trip = 0
    while run.poll() is None and time.monotonic() < deadline:
        pending = Folder(path, create=True).pending()
        if not pending:
            time.sleep(0.1)
            continue
        if not killed and any(len(batch.items) > 1 for batch in pending):
            run.send_signal(signal.SIGKILL)
            run.communicate()
            killed = True
            run = command("resume", *ours, cwd=tmp_path)
        trip += 1
        file, results = f"b{trip}.json", f"r{trip}.jsonl"
        done("export-batch", "d", "-o", file, cwd=tmp_path)
        words = ("evaluate-batch", file, "-o", results, "--device", "cpu")
        if trip == 2:
            first = command(*words, cwd=tmp_path)
            time.sleep(1.0)
            os.kill(first.pid, signal.SIGKILL)
            first.communicate()
        evaluated = command(*words, cwd=tmp_path)
        _, errors = evaluated.communicate()
        assert evaluated.returncode == 0, errors
        done("import-batch", "d", results, cwd=tmp_path)
    out, errors = run.communicate()
    assert run.returncode == 0, errors
    assert killed
    result = json.loads(out)
    assert (result["experiments"], result["device"]) == (3, "cpu")
