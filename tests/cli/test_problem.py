"""``problem test``: a table for people, JSON for scripts, and the exit code."""

import json
import re
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from kernelwright import cli
from kernelwright.cli.main import main
from kernelwright.cli.plain import PlainConsole
from tests.problems.folders import GOOD, write_problem


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["problem", *arguments])
    return int(str(done.value.code))


def test_a_problem_that_cannot_be_fooled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_problem(tmp_path / "p")
    assert ended("test", str(folder), "--device", "cpu", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["passed"] is True
    assert answer["warnings"] == []
    assert {"zeros", "reacts to X", "baseline on cpu", "tolerance"} <= {row["name"] for row in answer["rows"]}


def test_a_problem_that_can(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_problem(tmp_path / "p", GOOD.replace("rtol = 1e-6", "atol = 100.0"))
    assert ended("test", str(folder), "--device", "cpu") == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "FAILED zeros on N=10: passes for Y with" in text
    assert "tighten" in text
    assert "scale failed" in text


def test_a_reference_that_cannot_be_used_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = "import os\n\n\ndef reference(xp, sizes, X, factor):\n    os._exit(0)\n"
    folder = write_problem(tmp_path / "p", reference=reference)
    assert ended("test", str(folder), "--device", "cpu") == 2
    error = capsys.readouterr().err
    assert "reference.py:5: reference.py ended the process (exit code 0): " in error
    assert error.count("\n") == 1


def test_strict_refuses_where_a_layer_of_the_sandbox_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_problem(tmp_path / "p")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))  # no bwrap there
    assert ended("test", str(folder), "--device", "cpu", "--strict") == 2
    error = capsys.readouterr().err
    assert error.startswith("kernelwright: error: --strict: the sandbox of the reference worker lacks")
    assert error.count("\n") == 1


def test_the_older_name_of_the_group_still_works(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["problems", "list", "--json"])
    assert {problem["name"] for problem in json.loads(capsys.readouterr().out)} >= {"gemm", "softmax"}
    with pytest.raises(SystemExit):
        main(["--help"])
    commands = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert "problem" in commands
    assert "problems" not in commands


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("library.py", "def library(:", "library.py:1: not valid Python"),
        ("library.py", "x = 1\n", "library.py: has no function 'library': define library(torch, sizes, ...)"),
        ("library.py", "", "library.py: has no function 'library'"),
        ("reference.py", "def reference(:", "reference.py:1: not valid Python"),
        ("reference.py", "x = 1\n", "reference.py: has no function 'reference'"),
        ("library.py", "raise SystemExit\ndef library(torch): pass\n", ""),
    ],
)
def test_show_warns_of_python_files_and_executes_none(
    name: str,
    text: str,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / name).write_text(text)
    for options in ((), ("--json",)):
        assert ended("show", str(folder), *options) == 0
        output = capsys.readouterr()
        assert "Scaled copy" in output.out
        told_so = [line.partition(told)[0] for line in output.err.splitlines()]
        assert told_so == ([f"kernelwright: warning: {folder}/"] if told else [])


def test_show_tells_of_a_catalogue_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / "catalogue").mkdir()
    (folder / "catalogue" / "fast.cu").symlink_to("gone")
    for command in (("show",), ("test", "--device", "cpu")):
        assert ended(*command, str(folder)) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "fast.cu: is a link to gone, where nothing is" in line


def test_a_broken_library_is_a_warning_of_the_self_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / "library.py").write_text("def library(:")
    assert ended("test", str(folder), "--device", "cpu") == 0
    text = " ".join(capsys.readouterr().out.split()).replace(" ", "")
    assert f"warninglibrary:{folder / 'library.py'}:1:notvalidPython" in text


@pytest.mark.parametrize("command", ["show", "test"])
@pytest.mark.parametrize("name", ["baseline.cu", "catalogue/wide.cu"])
def test_a_template_that_is_none_is_told_with_its_file(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / "catalogue").mkdir()
    (folder / name).write_text("/* kernelwright\ntune = 3\n*/\n")
    assert ended(command, str(folder), *(["--device", "cpu"] if command == "test" else [])) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"kernelwright: error: {folder / name}:2: tune: must be a table")
    assert error.count("\n") == 1


def test_a_catalogue_s_names_can_be_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / "catalogue").mkdir()
    (folder / "catalogue" / "a\x1b[31m.cu").write_text("")
    assert ended("show", str(folder)) == 2
    assert "holds control characters: rename the file" in capsys.readouterr().err


def test_no_line_of_an_error_moves_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = 'def reference(xp, sizes, X, factor):\n    raise RuntimeError("a\\x1b[31mb\\u202e")\n'
    folder = write_problem(tmp_path / "p", reference=reference)
    assert ended("test", str(folder), "--device", "cpu") == 2
    assert ended("show", "\x1b[31m") == 2
    assert ended("show", "\x1b]0;x", "--nothing\x1b") == 2
    error = capsys.readouterr().err
    assert r"raised RuntimeError: a\x1b[31mb\u202e" in error
    assert all(line.isprintable() for line in error.splitlines())


def test_brackets_in_texts_of_a_problem_are_no_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = (
        GOOD.replace('id = "big"', 'id = "[/x]"')
        .replace("Scaled copy", "[red]copy")
        .replace("Y =", "[/q] Y =")
    )
    folder = write_problem(tmp_path / "p", toml)
    assert ended("show", str(folder)) == 0
    text = capsys.readouterr().out
    assert "[red]copy" in text
    assert "[/q] Y = factor" in text
    assert "[/x]" in text


def test_no_command_has_a_console_that_takes_texts_for_markup() -> None:
    package = Path(cli.__file__).parent
    texts = {path.name: path.read_text(encoding="utf-8") for path in package.glob("*.py")}
    assert [
        name for name, text in texts.items() if re.search(r"(?<!\w)(Console|print)\(.*\bmarkup=True", text)
    ] == []
    assert [name for name, text in texts.items() if re.search(r"(?<!\w)Console\(", text)] == []


def test_a_console_obeys_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("a")
    table.add_row("[/b] \x1b", Text("\u202e"))
    console = PlainConsole()
    console.print(table)
    console.print("e\x1b]0;x\n[bold]", Text("\u200f"))
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.splitlines())
    assert "[/b]" in out
    assert "e\\x1b]0;x\n[bold] \\u200f\n" in out
