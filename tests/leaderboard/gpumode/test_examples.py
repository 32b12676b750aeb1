"""The folders of ``examples/boards`` say of cases and ranking what the boards' own task files say."""

from pathlib import Path

import pytest
import yaml

from kernelwright.leaderboard.board_file import read_board_file
from kernelwright.leaderboard.gpumode.task import TaskEntry, make_task, parse_entry
from kernelwright.problems.loader import load_problem

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", ["grayscale", "histogram", "matmul", "vectoradd"])
def test_an_example_ranks_like_its_board(name: str) -> None:
    text = (ROOT / f"tests/data/gpumode/pmpp_v2-{name}_py-task.yml").read_text(encoding="utf-8")
    entry: TaskEntry = parse_entry(TaskEntry, yaml.safe_load(text), name)
    task = make_task(entry, name, name=name, sources={"eval.py": ""})
    folder = ROOT / "examples" / "boards" / name
    board = read_board_file(folder)
    assert board.ranking is task.ranking
    assert load_problem(folder).objective == board.ranking.value
    assert [dict(case.arguments) for case in board.cases] == [dict(case) for case in task.benchmarks]
