"""Board folders for the tests: GPU MODE's task files beside references and an evaluator of our own."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelwright.leaderboard.gpumode.files import read_task_folder
from kernelwright.leaderboard.gpumode.folder import write_problem_folder
from kernelwright.leaderboard.gpumode.task import Task
from kernelwright.leaderboard.gpumode.user_tables import UserTables

DATA = Path(__file__).parents[2] / "data" / "gpumode"
OWN = DATA / "own"
NUMPY_TASK = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "../task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
lang: "py"
description: "Sums of vectors."
config: {main: "eval.py"}
ranking_by: "geom"
test_timeout: 60
benchmark_timeout: 60
ranked_timeout: 60
tests:
  - {"size": 64, "seed": 1}
  - {"size": 65, "seed": 2}
benchmarks:
  - {"size": 1000, "seed": 3}
  - {"size": 2000, "seed": 4}
"""
NUMPY_REFERENCE = """
import numpy as np
from utils import make_match_reference


def ref_kernel(data):
    a, b, c = data
    c[...] = a + b
    return c


def generate_input(size, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, size)).astype("float32")
    return a, b, np.zeros(size, "float32")


check_implementation = make_match_reference(ref_kernel)
"""
NUMPY_TABLES = UserTables.model_validate(
    {
        "arguments": [
            {"name": "a", "dtype": "float32", "shape": ["size"], "role": "in"},
            {"name": "b", "dtype": "float32", "shape": ["size"], "role": "in"},
            {"name": "c", "dtype": "float32", "shape": ["size"], "role": "out"},
        ]
    }
)
ADDS = "def custom_kernel(data):\n    a, b, c = data\n    c[...] = a + b\n    return c\n"


def repository(root: Path) -> Path:
    """A tree as GPU MODE's repository has it, with four problems of ``pmpp_v2``; returns the set's folder."""
    folder = root / "problems" / "pmpp_v2"
    folder.mkdir(parents=True)
    (root / ".git").mkdir()
    shutil.copy(DATA / "pmpp_v2.yaml", folder.parent)
    for name in ("eval.py", "utils.py"):
        shutil.copy(OWN / name, folder)
    for name in ("vectoradd", "grayscale", "histogram", "matmul"):
        problem = folder / f"{name}_py"
        problem.mkdir()
        shutil.copy(DATA / f"pmpp_v2-{name}_py-task.yml", problem / "task.yml")
        shutil.copy(OWN / f"{name}.py", problem / "reference.py")
        shutil.copy(OWN / "task.py", problem)
    return folder


def board_task(name: str) -> Task:
    """One of the four problems without a repository around it."""
    with TemporaryDirectory() as folder:
        return read_task_folder(repository(Path(folder)) / f"{name}_py")


def numpy_board(root: Path, reference: str = NUMPY_REFERENCE, task: str = NUMPY_TASK) -> Path:
    """An imported problem whose evaluator runs without torch."""
    folder = root / "set" / "adds"
    folder.mkdir(parents=True)
    for name in ("eval.py", "utils.py", "task.py"):
        shutil.copy(OWN / name, folder.parent)
    (folder / "task.yml").write_text(task, encoding="utf-8")
    (folder / "reference.py").write_text(reference, encoding="utf-8")
    target = root / "imported"
    write_problem_folder(read_task_folder(folder), target, user=NUMPY_TABLES)
    return target
