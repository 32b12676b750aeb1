"""The self-test of a problem, in this process: every way to be fooled is planted once and has to be found."""

from pathlib import Path

import pytest

from kernelwright.core.errors import ProblemError
from kernelwright.harness.self_test import TRIALS, SelfTest, SelfTestRequest, SelfTestRow, Verdict
from kernelwright.harness.worker.impostors import IMPOSTORS
from kernelwright.harness.worker.reference_worker import examine
from kernelwright.problems.loader import bundled_names, load_problem
from kernelwright.problems.source import ProblemSource
from tests.problems.folders import GOOD, REFERENCE, write_problem

TWO_INPUTS = GOOD.replace(
    '{ name = "factor"',
    '{ name = "Z", dtype = "float32", shape = ["N"], role = "in" },\n    { name = "factor"',
).replace("inputs = {", 'inputs = { Z = "normal",')
INOUT = GOOD.replace('role = "in"', 'role = "inout"').replace(
    '    { name = "Y", dtype = "float32", shape = ["N"], role = "out" },\n', ""
)


def look(
    folder: Path, reference: str = REFERENCE, toml: str = GOOD, *, tolerance: str = "", case: str = "N=100"
) -> dict[str, SelfTestRow]:
    text = toml.replace("rtol = 1e-6", tolerance) if tolerance else toml
    source = ProblemSource(load_problem(write_problem(folder / "p", text, reference)), seed=5, slow=False)
    return {row.name: row for row in examine(source, SelfTestRequest(case))}


def gives(expression: str) -> str:
    return f"def reference(xp, sizes, X, factor, **more):\n    return {{'Y': {expression}}}\n"


def test_a_good_problem_passes(tmp_path: Path) -> None:
    rows = look(tmp_path)
    assert {row.verdict for row in rows.values()} <= {Verdict.OK, Verdict.NOTE}
    assert set(IMPOSTORS) <= set(rows)
    assert rows["inputs rounded to tf32"].verdict is Verdict.NOTE


@pytest.mark.parametrize(
    ("impostor", "expression", "tolerance"),
    [
        ("zeros", "1e-9 * X", "atol = 1e-6"),
        ("constant 1", "1.0 + 1e-9 * X", "rtol = 1e-6"),
        ("mean of right outputs", "7.0 + 1e-7 * X", "rtol = 1e-5"),
        ("noise like right outputs", "X", "atol = 100.0"),
        ("copy of an input", "X + 1e-6", "atol = 1e-5"),
        ("permuted output", "3.0 + 1e-5 * X", "atol = 1e-3"),
        ("output of other inputs", "xp.mean(X) + xp.zeros_like(X)", "atol = 1.5"),
        ("float16 rounding", "X", "rtol = 1e-2"),
        ("nothing written", "X * float('nan')", "rtol = 1e-6"),
    ],
)
def test_an_impostor_that_passes_is_named(
    tmp_path: Path, impostor: str, expression: str, tolerance: str
) -> None:
    row = look(tmp_path, gives(expression), tolerance=tolerance)[impostor]
    assert row.verdict is Verdict.FAILED
    assert row.case == "N=100"
    assert "passes for Y with" in row.detail
    assert "tolerances" in row.detail
    assert ("tighten" in row.mend) == (impostor != "nothing written")


def test_a_right_answer_that_is_always_the_same_is_mended_by_no_tolerance(tmp_path: Path) -> None:
    """Such as a gradient at H=W=1."""
    rows = look(tmp_path, gives("0 * X"))
    for impostor in ("zeros", "mean of right outputs", "output of other inputs"):
        assert rows[impostor].verdict is Verdict.FAILED
        assert "tighten" not in rows[impostor].mend
        assert "leave the case out, or give it sizes or inputs" in rows[impostor].mend


def test_an_inout_argument_left_as_it_was_is_an_impostor(tmp_path: Path) -> None:
    reference = "def reference(xp, sizes, X, factor):\n    return {'X': X * (1 + 1e-9)}\n"
    assert look(tmp_path, reference, INOUT)["nothing written"].verdict is Verdict.FAILED
    good = "def reference(xp, sizes, X, factor):\n    return {'X': X * factor}\n"
    assert look(tmp_path, good, INOUT)["nothing written"].verdict is Verdict.OK


def test_a_copy_is_no_impostor_of_a_copy_problem(tmp_path: Path) -> None:
    rows = look(tmp_path, gives("1.0 * X"), tolerance="")
    assert rows["copy of an input"].verdict is Verdict.SKIPPED


def test_an_impostor_on_some_input_sets_is_a_warning(tmp_path: Path) -> None:
    toml = GOOD.replace('"normal"', '{ distribution = "tiny", std = 1e-9 }')
    row = look(tmp_path, gives("X"), toml, tolerance="atol = 1e-6")["zeros"]
    assert row.verdict is Verdict.WARNING
    assert "input set 0 of 2" in row.detail


def test_an_impostor_of_one_output_of_two_is_found(tmp_path: Path) -> None:
    toml = GOOD.replace(
        '{ name = "Y"', '{ name = "W", dtype = "float32", shape = ["N"], role = "out" },\n    { name = "Y"'
    )
    reference = "def reference(xp, sizes, X, factor):\n    return {'Y': factor * X, 'W': xp.zeros_like(X)}\n"
    row = look(tmp_path, reference, toml)["zeros"]
    assert row.verdict is Verdict.FAILED
    assert "passes for W" in row.detail


def test_float16_problems_may_round_to_float16(tmp_path: Path) -> None:
    toml = GOOD.replace('"float32", shape', '"float16", shape')
    rows = look(tmp_path, toml=toml, tolerance="rtol = 1e-2")
    assert rows["float16 rounding"].verdict is Verdict.SKIPPED
    assert rows["right output"].verdict is Verdict.OK


def test_a_right_output_has_to_pass(tmp_path: Path) -> None:
    row = look(tmp_path, tolerance="rtol = 1e-12")["right output"]
    assert row.verdict is Verdict.FAILED
    assert "widen" in row.mend


def test_a_reference_reacts_to_every_input(tmp_path: Path) -> None:
    rows = look(tmp_path, gives("factor * X"), TWO_INPUTS)
    assert rows["reacts to X"].verdict is Verdict.OK
    assert rows["reacts to Z"].verdict is Verdict.FAILED
    half = gives("factor * xp.where(xp.arange(sizes['N']) < 50, X, xp.zeros_like(X))")
    row = look(tmp_path, half)["reacts to X"]
    assert row.verdict is Verdict.WARNING
    assert "second half" in row.detail


def test_a_constant_input_is_changed_otherwise(tmp_path: Path) -> None:
    toml = TWO_INPUTS.replace('Z = "normal"', 'Z = { distribution = "constant", value = 0.0 }')
    assert look(tmp_path, gives("factor * X"), toml)["reacts to Z"].verdict is Verdict.FAILED
    assert look(tmp_path, gives("factor * X + more['Z']"), toml)["reacts to Z"].verdict is Verdict.OK


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("import numpy as np\n" + gives("factor * X + np.random.rand(sizes['N'])"), "deterministic"),
        ("calls = []\n" + gives("factor * X + 0.5 * (calls.append(1) or len(calls))"), "deterministic"),
        ("def reference(xp, sizes, X, factor):\n    X *= factor\n    return {'Y': X}\n", "inputs unchanged"),
    ],
)
def test_a_reference_is_a_function(tmp_path: Path, reference: str, name: str) -> None:
    assert look(tmp_path, reference)[name].verdict is Verdict.FAILED


def test_values_that_are_not_finite_are_a_warning(tmp_path: Path) -> None:
    row = look(tmp_path, gives("xp.log(X)"))["finite"]
    assert row.verdict is Verdict.WARNING
    assert "Y on input set 0" in row.detail


def test_a_tolerance_blind_to_tensor_cores_is_a_warning(tmp_path: Path) -> None:
    toml = GOOD.replace("work =", "rules = { no_tensor_cores = true }\nwork =")
    row = look(tmp_path, toml=toml, tolerance="rtol = 1e-2")["inputs rounded to tf32"]
    assert row.verdict is Verdict.WARNING
    assert look(tmp_path, toml=toml)["inputs rounded to tf32"].verdict is Verdict.NOTE


def test_trials_that_a_reference_cannot_answer_are_named(tmp_path: Path) -> None:
    trials = GOOD.replace("work =", 'trials = { exclude = ["negative"] }\nwork =')
    problem = load_problem(write_problem(tmp_path / "p", trials, gives("xp.log(xp.abs(X) + 0.0)")))
    rows = examine(ProblemSource(problem, seed=1, slow=False), SelfTestRequest(TRIALS))
    assert {(row.case, row.verdict) for row in rows[:-1]} == {
        ("stress ties N=100", Verdict.WARNING),
        ("stress one_hot N=100", Verdict.WARNING),
        ("stress ends N=1000", Verdict.WARNING),
    }
    assert all("exclude" in row.mend for row in rows[:-1])


def test_a_raising_reference_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"reference.py:2: reference.py raised ZeroDivisionError"):
        look(tmp_path, gives("1 / 0"))


def test_lines_for_people_name_case_and_mend() -> None:
    rows = (
        SelfTestRow("zeros", "N=1", Verdict.FAILED, "passes", "tighten"),
        SelfTestRow("finite", "", Verdict.WARNING, "not finite"),
        SelfTestRow("mean", "N=1", Verdict.OK),
    )
    result = SelfTest(rows)
    assert not result.passed
    assert result.warnings == ("zeros on N=1: passes (tighten)", "finite: not finite")
    assert SelfTest(rows[1:]).passed


@pytest.mark.parametrize("name", bundled_names())
@pytest.mark.parametrize("seed", [0, 1])
def test_bundled_problems_cannot_be_fooled(name: str, seed: int) -> None:
    problem = load_problem(name)
    source = ProblemSource(problem, seed=seed, slow=True)
    for case in [*(case.id for case in problem.cases(slow=True)[:2]), TRIALS]:
        result = SelfTest(tuple(examine(source, SelfTestRequest(case))))
        assert result.passed, result.warnings
        assert not result.warnings
