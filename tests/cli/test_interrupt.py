"""Ctrl-C at any moment of a command is exit code 130, one line, no traceback and no process left."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from tests.cli.said import without_notes

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
    assert capsys.readouterr().err == "kernelwright: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_asyncio_says_nothing_of_a_child_that_two_of_its_parts_saw_ending(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    from kernelwright.cli import problems

    def end_a_child() -> list[str]:
        logging.getLogger("asyncio").warning("Unknown child process pid %d, will report returncode 255", 7)
        return []

    monkeypatch.setattr(problems, "bundled_names", end_a_child)
    with pytest.raises(SystemExit):
        main(["problem", "list"])
    assert "Unknown child" not in capsys.readouterr().err + caplog.text


AT_EXIT = """
import atexit, os, signal
atexit.register(os.kill, os.getpid(), signal.SIGINT)
from kernelwright.cli.main import main
main()
"""


def test_an_interrupt_after_the_end_changes_nothing() -> None:
    command = [sys.executable, "-c", AT_EXIT, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


BASELINE = Path(__file__).parents[2] / "src/kernelwright/problems/bundled/vector_add/baseline.cu"
CHECK = ("check", str(BASELINE), "--problem", "vector_add", "--device", "cpu")
RUN = ("run", "vector_add", "--device", "cpu")
BENCH = ("bench", "optimiser", "--jobs", "2")
SERVE = ("board", "serve", "vector_add", "--device", "cpu", "--port", "0")


def family(process: int) -> dict[int, str]:
    """Command lines of what a process has started, and of what that has."""
    found: dict[int, str] = {}
    waiting = [process]
    while waiting:
        with contextlib.suppress(OSError):  # ended meanwhile
            for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
                for number in map(int, task.read_text().split()):
                    found[number] = Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")
                    waiting.append(number)
    return found


def until_gone(processes: Iterable[int], seconds: float = 20.0) -> None:
    """Zombies whose new parent has not looked yet are gone."""
    end = time.monotonic() + seconds
    left = list(processes)
    while left:
        assert time.monotonic() < end, left
        time.sleep(0.01)
        left = [number for number in left if lives(number)]


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def has_started(words: str, times: int = 1) -> Callable[[int], bool]:
    return lambda process: sum(words in line for line in family(process).values()) >= times


def is_serving(process: int) -> bool:
    return "board: " in Path(f"/proc/{process}/fd/2").read_text()


@pytest.mark.parametrize(
    ("words", "ready", "said", "number"),
    [
        (CHECK, has_started('"role": "device"'), "", signal.SIGINT),
        (CHECK, has_started('"role": "device"'), "", signal.SIGTERM),
        (RUN, has_started('"role": "device"'), "", signal.SIGHUP),
        (BENCH, has_started("spawn_main", 2), "", signal.SIGINT),
        (SERVE, is_serving, "board: http://127.0.0.1:", signal.SIGINT),
    ],
    ids=["check", "check-term", "run-hup", "bench", "serve"],
)
def test_an_interrupt_of_a_terminal_ends_a_command_with_everything_it_started(
    words: tuple[str, ...], ready: Callable[[int], bool], said: str, number: int, tmp_path: Path
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    output = (tmp_path / "stderr").open("w")
    with (
        output,
        subprocess.Popen(
            [sys.executable, "-m", "kernelwright", *words],
            stdout=subprocess.DEVNULL,
            stderr=output,
            cwd=tmp_path,
            env=environment,
            start_new_session=True,
        ) as command,
    ):
        while not ready(command.pid):
            assert command.poll() is None
            time.sleep(0.01)
        started = family(command.pid)
        os.killpg(command.pid, number)
        command.wait(timeout=60)
    error = without_notes((tmp_path / "stderr").read_text())
    first, _, last = error.rpartition("kernelwright: interrupted\n")
    assert (command.returncode, last, first[: len(said)]) == (130, "", said), error
    assert first.count("\n") == (2 if said else 0)  # the address and the deadline
    assert started
    until_gone(started)
    assert not list(tmp_path.glob("kernelwright-*/"))


def test_a_terminal_that_closes_ends_a_campaign(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    terminal, side = os.openpty()
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", sys.executable, "-m", "kernelwright", *RUN],
        stdin=side,
        stdout=side,
        stderr=side,
        cwd=tmp_path,
        env=environment,
    ) as command:
        os.close(side)
        while not has_started('"role": "device"')(command.pid):
            time.sleep(0.01)
        started = family(command.pid)
        os.close(terminal)
        until_gone(started, 60)
    assert command.returncode == 130
    assert not list(tmp_path.glob("kernelwright-*/"))


def test_who_ignores_hangups_goes_on_after_them() -> None:
    script = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + AT_EXIT.replace("INT", "HUP")
    done = subprocess.run([sys.executable, "-c", script, "--version"], check=False, timeout=60)
    assert done.returncode == 0
    body = (
        "from kernelwright.cli.ending import *\nimport signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    )
    body += "end_as_interrupts_do()\nassert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN\n"
    subprocess.run([sys.executable, "-c", body], check=True, timeout=60)
