"""What people do to a command line besides typing it right."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.campaign.settings import Settings, read_settings
from kernelwright.cli.main import main
from kernelwright.core.errors import UserError
from kernelwright.gauntlet.entry import load_entries
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem
from tests.cli.said import without_notes


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    output = capsys.readouterr()
    assert ended.value.code == 2, output.err
    said = without_notes(output.err)
    assert said.count("\n") == 1
    return said


def own(folder: Path, **changes: str) -> Path:
    shutil.copytree(load_problem("vector_add").folder, folder)
    shutil.rmtree(folder / "catalogue")
    for name, text in changes.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


@pytest.mark.parametrize("kind", ["device", "pipe", "large", "none"])
def test_what_is_no_ordinary_file_is_not_read(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.cu"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "large":
        file.write_bytes(b"/" * (5 << 20))
    name = "/dev/zero" if kind == "device" else str(file)
    message = error_of(capsys, "check", name, "-p", "vector_add", "--device", "cpu")
    told = {"none": "no such file", "large": "is larger than 4 MiB"}
    assert told.get(kind, "is no ordinary file") in message
    if kind == "pipe":
        folder = own(tmp_path / "p")
        (folder / "baseline.cu").unlink()
        os.mkfifo(folder / "baseline.cu")
        assert "no ordinary file" in error_of(capsys, "problems", "show", str(folder))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("raise ValueError('boo')", "reference.py:1: reference.py raised ValueError: boo"),
        (
            "def reference(xp, sizes, A, B):\n    return 1 / 0",
            "reference.py:2: reference.py raised ZeroDivisionError",
        ),
        ("def reference(xp):\n    pass", "raised TypeError"),
        ("raise SystemExit(0)", "raised SystemExit"),
        (
            "import os\ndef reference(xp, sizes, A, B):\n    os._exit(3)",
            "reference.py:3: reference.py ended the process (exit code 3): ",
        ),
        (
            "from posix import _exit\n_exit(0)",
            "reference.py:2: reference.py ended the process (exit code 0): ",
        ),
        ("from os import _exit\n_exit(9)", "reference.py:2: reference.py ended the process (exit code 9): "),
        ("def reference(xp, sizes, A, B):\n    return {'C': 'abc'}", "returned C as str"),
        ("def reference(xp, sizes, A, B):\n    return {'C': (A + B) * 1j}", "complex numbers"),
    ],
)
def test_a_reference_that_fails_is_the_problem_s_fault(
    reference: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own(tmp_path / "p", reference_py=reference)
    arguments = ("check", str(folder / "baseline.cu"), "-p", str(folder), "--device", "cpu")
    assert message in error_of(capsys, *arguments)


def test_a_title_cannot_command_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = own(tmp_path / "p")
    spec = folder / "problem.toml"
    spec.write_text(spec.read_text().replace('title = "', 'title = "\\u001b[31m', 1))
    assert "control characters" in error_of(capsys, "problems", "show", str(folder))


def test_a_campaign_outlives_its_reader_and_a_spent_budget_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-m", "kernelwright", "run", "vector_add", "--device", "cpu"]
    command += ["--evaluations", "3", "--dir", str(tmp_path)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=100
    )
    os.close(writing)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    with Memory.open(tmp_path / "memory.db", read_only=True) as memory:
        campaign = memory.campaign("last")
        assert campaign.state == "finished"
        assert sum(memory.counts(campaign.id).values()) == 3
    assert "give --evaluations" in error_of(
        capsys, "resume", "last", "--seconds", "99", "--dir", str(tmp_path)
    )


def test_a_campaign_whose_baseline_fails_is_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own(tmp_path / "p")
    source = (folder / "baseline.cu").read_text()
    (folder / "baseline.cu").write_text(source.replace("A[i] + B[i]", "A[i] - B[i]"))
    arguments = ("run", str(folder), "--device", "cpu", "--dir", str(tmp_path / "d"))
    assert "the baseline does not pass" in error_of(capsys, *arguments)
    with Memory.open(tmp_path / "d" / "memory.db", read_only=True) as memory:
        assert memory.campaign("last").state == "failed"


def test_problems_show_tells_arguments_and_tolerance(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["problems", "show", "gemm"])
    shown = capsys.readouterr().out
    assert "M, K" in shown
    assert "no_tensor_cores" in shown
    assert "RMS(ref)" in shown


def test_an_output_that_is_full_is_said_in_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kernelwright", "problem", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "kernelwright: error: the output cannot be written: No space left on device\n"


def test_no_terminal_is_too_narrow_to_show_anything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    with pytest.raises(SystemExit):
        main(["problem", "list"])
    assert "gemm" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--model-timeout", "--max-cost"])
@pytest.mark.parametrize("value", ["inf", "nan"])
def test_endless_budgets_are_refused(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = error_of(capsys, "run", "vector_add", "--device", "cpu", option, value)
    assert "see kernelwright run --help" in error


def test_settings_of_another_version_are_one_line() -> None:
    settings = Settings(problem="vector_add", device="cpu").model_dump_json().replace("600.0", "null")
    with pytest.raises(
        UserError,
        match=r"^c1: its settings cannot be read by this version: "
        r"model_timeout_s: must be a number, not nothing: use the version that began it$",
    ):
        read_settings("c1", settings)


def test_a_reference_that_breaks_the_parser_is_the_problem_s_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = own(tmp_path / "p", reference_py=f"x = {'-' * 100_000}1\n")
    arguments = ("check", str(folder / "baseline.cu"), "-p", str(folder), "--device", "cpu")
    assert "reference.py: not valid Python: " in error_of(capsys, *arguments)


@pytest.mark.parametrize(
    "command",
    [
        ("import-space", "FILE"),
        ("import-results", "FILE", "--to", "x.npz"),
        ("certificate", "verify", "FILE"),
        ("evaluate-batch", "FILE", "-o", "x", "--device", "cpu"),
        ("bench", "optimiser", "--budget", "2", "--seeds", "1", "--jobs", "1", "--plot", "FILE.svg"),
        ("bench", "optimiser", "--spaces", "."),
        ("show", "last", "--dir", "."),
    ],
)
def test_no_command_waits_for_a_pipe(
    command: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FILE", "FILE.svg", "a.npz", "memory.db"):
        os.mkfifo(name)
    assert "is no ordinary file" in error_of(capsys, *command)


def test_what_this_user_may_not_reach(
    out_of_reach: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(**_: object) -> None:
        out_of_reach.stat()

    with pytest.raises(UserError, match="there is no such folder"):
        load_entries(out_of_reach)
    monkeypatch.setattr("kernelwright.cli.main._commands", lambda: command)
    assert (
        error_of(capsys)
        == f"kernelwright: error: {out_of_reach}: Permission denied: give yourself the right to it\n"
    )


@pytest.mark.parametrize("words", [("--device", "detached:loop"), ("--device", "cpu", "--dir", "loop")])
def test_links_in_a_circle_lead_nowhere(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    assert "loop" in error_of(capsys, "run", "vector_add", "--seconds", "1", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]
