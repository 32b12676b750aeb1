"""Limits of a compile, under narrower ones of the user's shell."""

import resource
from pathlib import Path

import pytest

from kernelwright.devices.cpu.bounded import Finished, Limits, run_bounded, was_killed

SHOW = ["/bin/sh", "-c", "ulimit -t >&2; ulimit -v >&2; ulimit -f >&2"]
HARD = {resource.RLIMIT_CPU: 7, resource.RLIMIT_AS: 1 << 30, resource.RLIMIT_FSIZE: 1 << 20}


def test_limits_hold(tmp_path: Path) -> None:
    done = run_bounded(SHOW, tmp_path, Limits(5.0, 2 << 30, 8 << 20))
    assert (done.returncode, done.output.split()) == (0, ["6", str(2 << 20), str(16 << 10)])


def test_no_limit_is_set_above_a_hard_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (HARD[kind], HARD[kind]))
    done = run_bounded(SHOW, tmp_path, Limits(30.0, 2 << 30, 8 << 20))
    assert (done.returncode, done.output.split()) == (0, ["7", str(1 << 20), str(2 << 10)])


@pytest.mark.parametrize(
    ("code", "output", "killed"),
    [
        (-9, "", True),
        (-11, "", False),
        (0, "g++: fatal error: Killed signal terminated program cc1plus", False),
        (1, "x\ng++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.", True),
        (1, "collect2: fatal error: ld terminated with signal 9 [Killed]", True),
        (1, "g++: internal compiler error: Segmentation fault signal terminated program cc1plus", False),
        (1, "collect2: fatal error: ld terminated with signal 11", False),
        (1, "candidate.cu:3: error: Killed was not declared", False),
    ],
)
def test_what_g_plus_plus_says_of_a_kill(code: int, output: str, killed: bool) -> None:
    assert was_killed(Finished(code, output, timed_out=False, seconds=0.1)) is killed
