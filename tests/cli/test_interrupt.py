"""Ctrl-C at any moment of a command's start is no traceback."""

import signal
import subprocess
import sys

import pytest

from kernelwright.cli.main import main

AT_IMPORT = """
import os, runpy, signal, sys

at, how = sys.argv[1:]
sys.argv = ["kernelwright", "--version"]


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == at:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
if how == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
if how == "module":
    runpy.run_module("kernelwright", run_name="__main__")
from kernelwright.cli.main import main
main()
"""


def started(at: str, how: str) -> "subprocess.CompletedProcess[str]":
    """A command that is interrupted when it loads the module ``at``."""
    return subprocess.run(
        [sys.executable, "-c", AT_IMPORT, at, how], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("at", "how"),
    [("typer", "module"), ("numpy", "script"), ("kernelwright.cli.show", "script")],
)
def test_an_interrupt_while_the_commands_are_loaded_is_one_line(at: str, how: str) -> None:
    done = started(at, how)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "kernelwright: interrupted\n")


def test_who_ignores_interrupts_is_left_alone() -> None:
    done = started("numpy", "ignored")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("kernelwright ")


def test_afterwards_an_interrupt_is_what_it_always_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kernelwright.cli import problems

    monkeypatch.setattr(problems, "bundled_names", lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(SystemExit) as done:
        main(["problem", "list"])
    assert done.value.code == 130
    assert "Traceback" not in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
