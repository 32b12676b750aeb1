"""Whoever starts a command may have closed its streams, or allow it few files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def in_shell(before: str, *words: str, after: str = "") -> "subprocess.CompletedProcess[str]":
    """A command with what a shell does before it and to its streams."""
    script = f'{before} exec "$0" -m kernelwright "$@" {after}'
    command = ["sh", "-c", script, sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("after", [">&-", "<&-", "2>&-", "<&- >&- 2>&-", "1</dev/null"])
def test_a_command_works_with_closed_streams(after: str) -> None:
    done = in_shell("", "problem", "list", after=after)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("gemm" in done.stdout) == (after in {"<&-", "2>&-"})


def test_an_error_stays_one_line_without_an_output_and_is_no_output_without_its_stream() -> None:
    done = in_shell("", "problem", "show", "nowhere", after=">&-")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    silent = in_shell("", "problem", "show", "nowhere", after="2>&-")
    assert (silent.returncode, silent.stdout) == (2, "")


INTO = """
import os
from pathlib import Path
from kernelwright.cli.streams import see_to_streams

see_to_streams()
file = os.open(os.environ["FILE"], os.O_CREAT | os.O_WRONLY)
os.write(file, b"data")
print("output", flush=True)
"""


def test_no_file_takes_the_place_of_a_closed_output(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, INTO]
    subprocess.run(command, env={**os.environ, "FILE": str(tmp_path / "x")}, check=True, timeout=60)
    assert (tmp_path / "x").read_bytes() == b"data"


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (
            6,
            "too many open files: raise the limit (ulimit -n 1024), or close some",
        ),  # before it can be looked at
        (
            12,
            "the limit on open files (ulimit -n) is 12, at least 128 are needed: start it from a shell with a wider one, or none",
        ),
        (
            30,
            "the limit on open files (ulimit -n) is 30, at least 128 are needed: start it from a shell with a wider one, or none",
        ),
    ],
)
def test_too_few_files_are_said_in_one_line(limit: int, said: str, tmp_path: Path) -> None:
    words = ("run", "vector_add", "--device", "cpu", "--dir", str(tmp_path / "d"))
    done = in_shell(f"ulimit -n {limit};", *words)
    assert done.returncode == 2
    assert done.stderr == f"kernelwright: error: {said}\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("--help",), ("problem", "show", "gemm"), ("show", "--nope")])
def test_an_output_that_nobody_reads_is_no_answer(words: tuple[str, ...]) -> None:
    """Python's own, rich's and standard error."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "kernelwright", *words]
    errors = writing if "--nope" in words else subprocess.PIPE
    done = subprocess.run(command, stdout=writing, stderr=errors, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr or b"") == (141, b"")
