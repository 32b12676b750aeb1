"""Campaign and evaluation as processes of their own, killed and started again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.harness.detached.folder import Folder

KERNELWRIGHT = Path(sys.executable).parent / "kernelwright"


def command(*words: str | Path, cwd: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [KERNELWRIGHT, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def done(*words: str | Path) -> None:
    """A command that nobody kills needs no process of its own."""
    with pytest.raises(SystemExit) as ended:
        main([f"{word}" for word in words])
    assert ended.value.code == 0


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
        if trip and not killed and any(len(batch.items) > 1 for batch in pending):
            run.send_signal(signal.SIGKILL)
            run.communicate()
            killed = True
            run = command("resume", *ours, cwd=tmp_path)
        trip += 1
        file, results = tmp_path / f"b{trip}.json", tmp_path / "results"
        done("export-batch", path, "-o", file)
        words = ("evaluate-batch", file, "-o", results, "--device", "cpu")
        if trip == 2:
            first = command(*words, cwd=tmp_path)
            time.sleep(1.0)
            os.kill(first.pid, signal.SIGKILL)
            first.communicate()
        done(*words)
        done("import-batch", path, results)
    out, errors = run.communicate()
    assert run.returncode == 0, errors
    assert killed
    result = json.loads(out)
    assert (result["experiments"], result["device"]) == (3, "cpu")
    assert not Folder(path).pending(), "what was asked before the kill was asked for again"
