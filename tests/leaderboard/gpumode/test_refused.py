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
