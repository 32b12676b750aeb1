"""A problem's vendor library: optional, no part of its identity, never executed by loading, at fault when it raises."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.core.errors import ProblemError
from kernelwright.problems.loader import LIBRARY_FILE, Problem, bundled_names, load_problem

from .folders import write_problem

GOOD = "def library(torch, sizes, X, Y, factor):\n    torch.multiply(X, factor, out=Y)\n"


def problem(folder: Path, source: str = "") -> Problem:
    written = write_problem(folder / "p")
    if source:
        (written / LIBRARY_FILE).write_text(source)
    return load_problem(written)


def call(found: Problem, **arrays: Any) -> None:
    case = found.cases(slow=True)[0]
    found.library(case, arrays, SimpleNamespace(multiply=np.multiply))()


def test_it_is_optional_and_no_part_of_the_identity(tmp_path: Path) -> None:
    plain, named = problem(tmp_path / "a"), problem(tmp_path / "b", GOOD)
    assert plain.id == named.id
    assert (plain.library_source, named.library_source) == ("", GOOD)
    with pytest.raises(ProblemError, match="no vendor library is named"):
        call(plain)


def test_it_writes_the_outputs(tmp_path: Path) -> None:
    found = problem(tmp_path, GOOD)
    scalars = {name: value for name, (_, value) in found.signature.scalars.items()}
    x, y = np.arange(5.0), np.zeros(5)
    call(found, X=x, Y=y)
    assert np.allclose(y, x * float(scalars["factor"]))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('loaded')\n", "library.py:1: library.py raised RuntimeError: loaded"),
        ("def library(:\n", "library.py:1: not valid Python"),
        ("x = 1\n", "has no function 'library': define library(torch, sizes, ...)"),
        ("def library(torch, sizes, **all):\n    return torch.absent()\n", "library.py:2: library.py raised AttributeError"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_it_is_told_with_its_line_and_only_when_it_is_used(
    tmp_path: Path, source: str, reason: str
) -> None:
    found = problem(tmp_path, source)
    with pytest.raises(ProblemError) as error:
        call(found, X=np.zeros(1), Y=np.zeros(1))
    assert reason in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    written = write_problem(tmp_path / "p")
    (written / LIBRARY_FILE).mkdir()
    with pytest.raises(ProblemError, match=r"library\.py: is no ordinary file"):
        load_problem(written)


def test_those_that_are_bundled_define_the_function() -> None:
    named = [name for name in bundled_names() if load_problem(name).library_source]
    assert {"gemm", "softmax", "reduce_sum", "transpose"} <= set(named)
    for name in named:
        found = load_problem(name)
        with pytest.raises(ProblemError, match=r"library\.py raised"):  # this torch has nothing
            found.library(found.cases(slow=True)[0], {}, SimpleNamespace())()
