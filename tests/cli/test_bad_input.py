"""Bad input is one line on stderr and exit code 2, and nothing half-written is left."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.problems.loader import load_problem
from tests.cli.said import without_notes

Fails = Callable[..., str]
PLAN = '/* kernelwright\n[[launch]]\nkernel = "k"\ngrid = [1]\nblock = [32]\nargs = ["A"]\n*/\n'


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fails:
    """Run the command line in an empty folder; the one line it ends with."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 2) -> str:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        output = capsys.readouterr()
        assert ended.value.code == code, output.err
        said = without_notes(output.err)
        assert said.startswith("kernelwright: error: ")
        assert said.count("\n") == 1
        assert output.out == ""
        return said

    return run


def own_problem(folder: Path, old: str = "", new: str = "") -> str:
    shutil.copytree(load_problem("vector_add").folder, folder)
    spec = folder / "problem.toml"
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new, 1))
    return str(folder)


def test_unknown_problem(fails: Fails, tmp_path: Path) -> None:
    assert "vector_add" in fails("run", "vector_ad", "--device", "cpu")
    assert list(tmp_path.iterdir()) == []


def test_problem_file_names_file_and_key(fails: Fails, tmp_path: Path) -> None:
    folder = own_problem(tmp_path / "p", 'role = "out"', 'role = "output"')
    message = fails("run", folder, "--device", "cpu")
    assert "problem.toml" in message
    assert "role" in message
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_problem_expression_names_the_place(fails: Fails, tmp_path: Path) -> None:
    folder = own_problem(tmp_path / "p", 'shape = ["N"]', 'shape = ["N +"]')
    assert "N +" in fails("problems", "show", folder)


def test_bad_toml_names_the_line(fails: Fails, tmp_path: Path) -> None:
    folder = own_problem(tmp_path / "p", "[[arguments]]", "[[arguments]")
    assert "problem.toml:" in fails("problems", "show", folder)


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cpu:1", "cuda:-1"])
def test_unknown_device(fails: Fails, device: str) -> None:
    assert "use auto, cpu or cuda:N" in fails("run", "vector_add", "--device", device)


def test_missing_cuda(fails: Fails) -> None:
    from kernelwright.devices.cuda import probe

    if probe().usable:
        pytest.skip("this machine has a CUDA device")
    assert "cpu" in fails("run", "vector_add", "--device", "cuda:0")


def test_missing_compiler(fails: Fails, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    message = fails("run", "vector_add", "--device", "cpu")
    assert "g++" in message
    assert "apt-get install g++" in message
    assert list(tmp_path.iterdir()) == []


def test_plan_error_names_file_line_and_column(fails: Fails, tmp_path: Path) -> None:
    file = tmp_path / "mine.cu"
    file.write_text(PLAN.replace("[32]", '["32 +"]') + "x")
    message = fails("check", str(file), "--problem", "vector_add", "--device", "cpu")
    assert "mine.cu:5:" in message


def test_file_that_is_not_there(fails: Fails) -> None:
    assert "none.cu" in fails("check", "none.cu", "--problem", "vector_add", "--device", "cpu")


def test_file_that_is_not_text(fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "b.cu").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in fails("check", "b.cu", "--problem", "vector_add", "--device", "cpu")


@pytest.mark.parametrize("command", ["show", "resume"])
def test_no_memory_yet(fails: Fails, command: str, tmp_path: Path) -> None:
    assert "kernelwright run" in fails(command)
    assert list(tmp_path.iterdir()) == []


def test_memory_of_a_newer_version(fails: Fails, tmp_path: Path) -> None:
    from kernelwright.memory.opening import open_for_writing

    open_for_writing(tmp_path / "memory.db", create=True).close()
    database = sqlite3.connect(tmp_path / "memory.db")
    database.execute("PRAGMA user_version = 99")
    database.close()
    for command in (["show", "--dir", "."], ["run", "vector_add", "--device", "cpu", "--dir", "."]):
        assert "newer kernelwright" in fails(*command)


def test_memory_that_is_no_database(fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"hello" * 1000)
    assert "memory.db" in fails("show", "--dir", ".")


def test_folder_that_cannot_be_made(fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in ("file", "file/below"):
        message = fails("run", "vector_add", "--device", "cpu", "--dir", folder)
        assert message == "kernelwright: error: file: is no folder: choose another place with --dir\n"


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["run", "vector_add", "--seconds", "0"], ["run", "vector_add", "--objective", "best"], ["nonsense"], ["run", "vector_add", "--seed", "x"]],
)  # fmt: skip
def test_command_line_that_cannot_be_read(fails: Fails, arguments: list[str]) -> None:
    assert "--help" in fails(*arguments)


@pytest.mark.parametrize("here", [".", "./", "..", "/"])
@pytest.mark.parametrize("command", [("run",), ("problem", "show"), ("problem", "test")])
def test_a_folder_that_is_no_problem(fails: Fails, command: tuple[str, ...], here: str) -> None:
    assert "problem.toml: the file is missing" in fails(*command, here)


def test_the_folder_that_one_is_in_is_a_problem_and_a_mark_before_its_text_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(own_problem(tmp_path / "p"))
    plain = load_problem(folder)
    for name in ("problem.toml", "reference.py", "baseline.cu"):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
    monkeypatch.chdir(folder)
    assert load_problem(".").id == plain.id
    assert not load_problem(".").script_faults()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("report", "last", "-o", "r.xyz"), "-o r.xyz: its ending says no format: use .html, "),
        (("report", "last", "-o", "r"), "-o r: its ending says no format"),
        (("certificate", "last", "-o", "c.pdf"), "-o c.pdf: its ending says no format: use .json or .md"),
        (("bench", "optimiser", "--plot", "p.png"), "--plot p.png: the curves are an SVG file"),
        (("run", "vector_add", "--seconds", "nan"), "'--seconds' / '-t': 'nan' is no number"),
        (("run", "vector_add", "--seconds", "abc"), "'abc' is no number"),
        (("run", "vector_add", "--seconds", "inf"), "inf is not from 1 to 86400"),
        (("run", "vector_add", "--max-cost", "nan"), "'nan' is no number"),
        (("resume", "last", "--seconds", "inf"), "inf is not from 1 to 86400"),
        (("resume", "last", "--seconds", "86401"), "86401 is not from 1 to 86400"),
    ],
)
def test_endings_and_numbers_that_say_nothing(fails: Fails, command: tuple[str, ...], told: str) -> None:
    assert told in fails(*command)
