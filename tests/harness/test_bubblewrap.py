"""Whether there can be walls at all, from what the program does."""

import os
from pathlib import Path

import pytest

from kernelwright.harness.sandbox import bubblewrap
from kernelwright.harness.sandbox.bubblewrap import View, confined_command
from tests.harness.test_child import until_gone


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """A ``bwrap`` of our own is the one on the path."""
    path = folder / "bwrap"
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("echo first; echo last words >&2; exit 1", "last words"),
        ("exit 3", "bwrap ended with code 3"),
        ("exit 0", ""),
    ],
)
def test_where_it_fails_there_are_none_and_the_layer_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, detail: str
) -> None:
    program(tmp_path, monkeypatch, line)
    enclosed = confined_command(("true",), View(), tmp_path)
    assert enclosed.layer.holds == (not detail)
    assert detail in enclosed.layer.detail
    assert (enclosed.command == ("true",)) == bool(detail)


async def test_what_hangs_is_given_up_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, f"sleep 600 & echo $! > {tmp_path}/pid; wait")
    monkeypatch.setattr(bubblewrap, "_TRY_S", 0.5)
    enclosed = confined_command(("true",), View(), tmp_path)
    assert "timed out after 0.5 seconds" in enclosed.layer.detail
    await until_gone([int((tmp_path / "pid").read_text())])
