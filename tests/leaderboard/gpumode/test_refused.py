"""What ``board import`` refuses before anything is written: a baseline that does not fit, files with names of ours."""

import json
import re
from pathlib import Path

import pytest

from .support import repository
from .test_folder import BASELINE, run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return repository(tmp_path / "reference-kernels")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('"C", "size"]', '"Z", "size"]'), r"--baseline: .*simple\.cu:6:.*launch.*'Z'"),
        (("size * size", "M * size"), r"--baseline: .*simple\.cu:4:.*launch.*'M'"),
        (("[256]", "[4096]"), r"--baseline: .*simple\.cu:5:"),
        (("kernel = ", "kernl = "), r"simple\.cu:3"),
    ],
)
def test_a_baseline_whose_plan_does_not_fit_the_problem_is_refused(
    tree: Path, tmp_path: Path, change: tuple[str, str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline, target = tmp_path / "simple.cu", tmp_path / "mine"
    baseline.write_text(BASELINE.replace(*change), encoding="utf-8")
    assert run(str(tree / "vectoradd_py"), "-o", str(target), "--baseline", str(baseline)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(told, line)
    assert not target.exists()
    assert not list(tmp_path.glob(".mine*"))


@pytest.mark.parametrize("name", ["task.yml", "Task.yml", "cases.txt", "cases.json"])
def test_a_board_s_file_does_not_take_a_name_of_ours(
    tree: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task, target = tree / "vectoradd_py" / "task.yml", tmp_path / "mine"
    text = task.read_text(encoding="utf-8")
    first = 'files:\n  - {"name": "%s", "source": "reference.py"}\n'
    assert "files:\n" in text
    task.write_text(text.replace("files:\n", first % name), encoding="utf-8")
    assert run(str(tree / "vectoradd_py"), "-o", str(target)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "files[0]" in line
    assert f"{name} is the name of a file of ours" in line
    sent = {"name": "x", "task": {"files": {"eval.py": "", name: "x"}, "benchmarks": [{"size": 1}]}}
    (tmp_path / "saved.json").write_text(json.dumps([sent]), encoding="utf-8")
    assert run(str(tmp_path / "saved.json"), "-o", str(target)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{name} is the name of a file of ours" in line
    assert not target.exists()


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        (
            "task.yml",
            ('"size": 1024,', '"size": 1000000,'),
            r"task\.yml: benchmarks\[0\]: its arrays need 5588 GiB",
        ),
        (
            "task.yml",
            ('"size": 127,', '"size": 2000000000,'),
            r"task\.yml: tests\[0\]: gives no sound shapes",
        ),
        ("both", ("size", "int"), r"task\.yml: benchmarks\[0\]\.int: 'int' is a word of C\+\+"),
        (
            "reference.py",
            ("return A, B, C", "float = A\n    return float, B, C"),
            r"task\.yml: reference\.py: ",
        ),
    ],
)
def test_what_is_wrong_with_the_problem_is_told_by_the_files_of_the_board(
    tree: Path, file: str, change: tuple[str, str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("task.yml", "reference.py") if file == "both" else (file,):
        path = tree / "vectoradd_py" / name
        text = path.read_text(encoding="utf-8")
        assert change[0] in text
        path.write_text(text.replace(*change), encoding="utf-8")
    refused(tree, told, capsys)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('sizes = ["foo"]', r": sizes: 'foo' is none of the benchmarks' arguments \(size, seed\)"),
        ('[abi]\nentry = "my-kernel"', r": abi: needs items, returns"),
        ('[inputs]\nQ = "normal"', r": inputs\.Q: there is no input argument 'Q'"),
        ("[goal]\nspeedup = 0.5", r": goal: speedup: must be more than 1"),
        ('[work]\nbytes = "4 * q"', r": work\.bytes: '4 \* q' uses 'q'"),
        ("[[slow_cases]]\nsizes = {size = 4, k = 2}", r": slow_cases\[0\]\.sizes: has the size 'k'"),
        ("[trials]\nother_sizes = [{k = 2}]", r": trials\.other_sizes\[0\]: needs the sizes size"),
    ],
)
def test_and_by_the_file_of_arguments(
    tree: Path, tmp_path: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = tmp_path / "said.toml"
    said.write_text(text, encoding="utf-8")
    refused(tree, re.escape(str(said)) + told, capsys, "--arguments", str(said))


def refused(tree: Path, told: str, capsys: pytest.CaptureFixture[str], *options: str) -> None:
    """An import ends with one line that names no file of ours, and leaves nothing."""
    before = sorted(tree.iterdir())
    assert run(str(tree / "vectoradd_py"), "-o", str(tree / "mine"), *options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(told, line), line
    assert "problem.toml" not in line
    assert "board.toml" not in line
    assert sorted(tree.iterdir()) == before
