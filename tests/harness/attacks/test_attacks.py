"""No attack succeeds: as root and as an ordinary user, with bubblewrap and without."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.harness.sandbox.bubblewrap import View, confined_command
from tests.harness.attacks.arena import PLACES, Row, attack_all
from tests.harness.attacks.attempts import SUCCEEDED

USER = 61234
PROJECT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc builds the attacks")


async def test_as_who_runs_the_tests_with_bombs() -> None:
    rows, reports = await attack_all((PLACES[0].name,))
    assert [row for row in rows if row.bad] == []
    assert len(rows) > 500
    assert set(reports) == {place.name for place in PLACES}


async def test_the_other_layers_hold_without_bubblewrap() -> None:
    rows, reports = await attack_all((), walls=False)
    missing = {name for report in reports.values() for name in report.missing}
    if not missing <= {"bubblewrap", "user"}:
        pytest.skip(f"this kernel lacks {missing}")
    assert [row for row in rows if row.bad] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_as_an_ordinary_user() -> None:
    command = [*_as_user(), sys.executable, "-m", "tests.harness.attacks", "--json", "--no-bombs"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    found = json.loads(done.stdout)
    assert found["user"] == USER
    assert [row for row in (Row(**row) for row in found["rows"]) if row.bad] == []


def _as_user() -> list[str]:
    """Becomes an ordinary user; where Python lies in root's home, in a view where that home is an empty one."""
    become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv (util-linux)")
    program = "import os, sys; print(os.listdir(sys.base_prefix) and sys.base_prefix)"
    tried = subprocess.run(
        [*become, sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    if tried.stdout.strip() == sys.base_prefix:
        return become
    prefix = Path(sys.base_prefix).resolve()
    if not confined_command(["true"], View(), Path("/")).layer.holds or not prefix.is_relative_to("/root"):
        pytest.skip("no Python that another user may run")
    parents = [str(path) for path in reversed(prefix.parents) if path.is_relative_to("/root")]
    home = [word for parent in parents for word in ("--dir", parent, "--chmod", "0755", parent)]
    view = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/root", *home, "--ro-bind", str(prefix), str(prefix)]
    return [*view, "--", *become]


@pytest.mark.parametrize(
    ("attack", "verdict", "bad"),
    [("read", SUCCEEDED, True), ("read", "blocked: EACCES", False),
     ("(control) write", SUCCEEDED, False), ("(control) write", "blocked: EACCES", True)],
)  # fmt: skip
def test_what_counts_as_bad(attack: str, verdict: str, bad: bool) -> None:
    assert Row("place", attack, verdict).bad is bad
