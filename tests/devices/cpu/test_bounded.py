"""Limits of a compile, under narrower ones of the user's shell."""

import resource
from pathlib import Path

import pytest

from kernelwright.devices.cpu.bounded import Limits, run_bounded

SHOW = ["/bin/sh", "-c", "ulimit -t >&2; ulimit -v >&2; ulimit -f >&2"]
HARD = {resource.RLIMIT_CPU: 7, resource.RLIMIT_AS: 1 << 30, resource.RLIMIT_FSIZE: 1 << 20}


def test_limits_hold(tmp_path: Path) -> None:
    done = run_bounded(SHOW, tmp_path, Limits(5.0, 2 << 30, 8 << 20))
    assert (done.returncode, done.output.split()) == (0, ["6", str(2 << 20), str(16 << 10)])


def test_no_limit_is_set_above_a_hard_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (HARD[kind], HARD[kind]))
    done = run_bounded(SHOW, tmp_path, Limits(30.0, 2 << 30, 8 << 20))
    assert (done.returncode, done.output.split()) == (0, ["7", str(1 << 20), str(2 << 10)])
