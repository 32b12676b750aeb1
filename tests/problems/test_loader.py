import errno
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from kernelwright.core.errors import ProblemError
from kernelwright.problems.loader import bundled_names, load_problem
from kernelwright.problems.source import ProblemSource
from kernelwright.problems.spec import ProblemSpec, problem_schema
from tests.problems.folders import GOOD, REFERENCE, write_problem

BAD = [
    ('title = "Scaled copy"\n', "", "title: is missing"),
    ("title =", "titel =", "titel: is an unknown key"),
    ('name = "scale"', 'name = "Scale it"', "name: 'Scale it' is no name"),
    ("tolerance = {", "tolerance = {{", "not valid TOML"),
    ("rtol = 1e-6", "rtol = -1", "tolerance.rtol"),
    ("rtol = 1e-6", "rtol = nan", "tolerance.rtol"),
    ('shape = ["N"], role = "in"', 'shape = ["N +"], role = "in"', 'arguments[0] "X".shape[0]: '),
    ('shape = ["N"], role = "in"', 'shape = ["M"], role = "in"', "uses 'M', which is no size"),
    (
        "cases = [{ sizes = { N = 100 } }",
        "cases = [{ sizes = { M = 100 } }",
        "cases[0].sizes: lacks the size 'N', which another case has",
    ),
    (
        'shape = ["N"], role = "in"',
        'shape = ["N - 200"], role = "in"',
        "cases[0]: 'X' gets the shape (-100,)",
    ),
    ('shape = ["N"], role = "in"', 'role = "in"', "arguments[0] \"X\".shape: array 'X' has no shape"),
    (
        'dtype = "float32", shape = ["N"], role = "in"',
        'dtype = "float31", shape = ["N"], role = "in"',
        'arguments[0] "X".dtype: must be ',
    ),
    (
        'dtype = "float32", shape = ["N"], role = "in"',
        'dtype = "int32", shape = ["N"], role = "in"',
        "draws no int32",
    ),
    ('role = "out"', 'role = "in"', "there is nothing to check"),
    ('name = "Y"', 'name = "X"', "'X' is already the name"),
    ('name = "Y"', 'name = "N"', "'N' is already the name"),
    ('name = "Y"', 'name = "2Y"', "'2Y' is not a name"),
    (", value = 0.1", "", "scalar 'factor' has no value"),
    ("sizes = { N = 1000 }", "sizes = { M = 1000 }", "cases[1] \"big\".sizes: lacks the size 'N'"),
    ("sizes = { N = 1000 }", "sizes = { N = 1000, M = 1 }", "has the size 'M', which the first case lacks"),
    ("sizes = { N = 1000 }", "sizes = {}", 'cases[1] "big".sizes: is empty'),
    ("sizes = { N = 1000 }", "sizes = { N = -5 }", 'cases[1] "big".sizes.N: must be '),
    ("sizes = { N = 1000 }", "sizes = { N = 10.5 }", 'cases[1] "big".sizes.N: must be '),
    ("sizes = { N = 1000 }", "sizes = { N = 99999999999 }", 'cases[1] "big".sizes.N: must be '),
    ('{ id = "big", sizes = { N = 1000 } }', "{ sizes = { N = 100 } }", "the case 'N=100' is there twice"),
    (
        'name = "X", dtype = "float32", shape = ["N"]',
        'name = "X", dtype = "float32", shape = ["N * 10 ** 9"]',
        "GiB",
    ),
    ('"normal"', '"gaussian"', "inputs.X"),
    ('"normal"', '{ distribution = "normal", sigma = 1 }', "inputs.X[0].sigma: is an unknown key"),
    ("low = 0.0, high = 2.0", "low = 3.0, high = 2.0", "low 3.0 is not below high 2.0"),
    ("inputs = { X =", "inputs = { Z =", "there is no input argument 'Z'"),
    ('bytes = "8 * N"', 'bytes = "8 / 3 * N"', "cases[0]: "),
    ('bytes = "8 * N"', 'bytes = "0 * N"', "work.bytes must be at least 1"),
    (
        "cases = [{ sizes = { N = 100 } }",
        "rules = { no_cheating = true }\ncases = [{ sizes = { N = 100 } }",
        "rules.no_cheating",
    ),
    ("tolerance = {", 'objective = "fastest"\ntolerance = {', "objective"),
]


@pytest.mark.parametrize(("old", "new", "expected"), BAD, ids=[what for _, _, what in BAD])
def test_a_wrong_problem_is_one_clear_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    folder = write_problem(tmp_path / "p", GOOD.replace(old, new, 1))
    with pytest.raises(ProblemError) as error:
        load_problem(folder)
    message = str(error.value)
    assert message.startswith(str(folder / "problem.toml"))
    assert expected in message
    assert "\n" not in message
    assert len(message) < 400


def test_toml_errors_have_a_place_and_more_faults_are_counted(tmp_path: Path) -> None:
    broken = write_problem(tmp_path / "a", GOOD.replace("title = ", "title : "))
    with pytest.raises(ProblemError, match=r"problem\.toml:2:7: not valid TOML"):
        load_problem(broken)
    twice = write_problem(tmp_path / "b", GOOD.replace("title", "titel").replace("description", "text"))
    with pytest.raises(ProblemError, match=r"\(and 3 more\)"):
        load_problem(twice)


@pytest.mark.parametrize("name", ["problem.toml", "reference.py", "baseline.cu"])
def test_missing_and_unreadable_files(tmp_path: Path, name: str) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / name).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProblemError, match="is not UTF-8 text at byte 0"):
        load_problem(folder)
    (folder / name).unlink()
    with pytest.raises(ProblemError, match=f"{name}: the file is missing"):
        load_problem(folder)
    (folder / name).mkdir()
    with pytest.raises(ProblemError, match="is no ordinary file"):
        load_problem(folder)


@pytest.mark.parametrize("name", ["reference.py", "baseline.cu", "library.py", "catalogue/a.cu"])
def test_what_cannot_be_read_is_told_with_the_mend(tmp_path: Path, name: str) -> None:
    folder = write_problem(tmp_path / "p")
    (folder / "catalogue").mkdir()
    file = folder / name
    file.unlink(missing_ok=True)

    def fault() -> str:
        with pytest.raises(ProblemError) as error:
            load_problem(folder).catalogue()
        return str(error.value)

    file.symlink_to("gone")
    assert fault() == f"{file}: is a link to gone, where nothing is: mend the link or remove it"
    file.unlink()
    file.symlink_to(file.name)
    assert fault().endswith("its links lead in a circle: put an ordinary file there")
    file.unlink()
    file.mkdir()
    assert fault().startswith(f"{file}: is no ordinary file: give one")


def test_a_file_or_folder_of_another_user_is_told_with_the_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_problem(tmp_path / "p")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    for where, method, call in (
        (os, "open", lambda: load_problem(folder)),
        (Path, "is_dir", lambda: load_problem(folder)),
        (Path, "iterdir", load_problem(write_problem(tmp_path / "q")).catalogue),
    ):
        (tmp_path / "q" / "catalogue").mkdir(exist_ok=True)
        with monkeypatch.context() as patched:
            patched.setattr(where, method, refuse)
            with pytest.raises(ProblemError, match=r"cannot be read: Permission denied: .*\(chmod u\+rX\)"):
                call()


def test_a_catalogue_that_is_no_folder(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "p")
    assert load_problem(folder).catalogue() == ()
    (folder / "catalogue").symlink_to("gone")
    with pytest.raises(ProblemError, match=r"catalogue: cannot be read: .*: mend the link or remove it"):
        load_problem(folder).catalogue()
    (folder / "catalogue").unlink()
    (folder / "catalogue").write_text("")
    with pytest.raises(ProblemError, match=r"catalogue: cannot be read: .*: put a folder there"):
        load_problem(folder).catalogue()


def test_unknown_names_get_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="did you mean 'gemm'"):
        load_problem("gem")
    with pytest.raises(ProblemError, match="bundled are: conv2d, gemm"):
        load_problem("qqq")
    with pytest.raises(ProblemError, match="no such problem folder"):
        load_problem(tmp_path / "nowhere")


def test_loading_does_not_run_the_reference(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "p", reference="raise RuntimeError('executed')\n")
    problem = load_problem(str(folder))
    with pytest.raises(ProblemError, match=r"reference\.py:1: reference\.py raised RuntimeError: executed"):
        problem.reference(problem.cases(slow=False)[0], {"X": np.zeros(100, np.float32)}, np)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("def reference(xp, sizes, X, factor)\n", "not valid Python"),
        ("x = 1\n", "has no function 'reference'"),
        (
            "def reference(xp, sizes, X, factor):\n    return X\n",
            "must return a dict with Y, it returned ndarray",
        ),
        (
            "def reference(xp, sizes, X, factor):\n    return {'Z': X}\n",
            "must return a dict with Y, it returned Z",
        ),
        ("def reference(xp, sizes, X, factor):\n    return {'Y': X[1:]}\n", r"Y of shape \(99,\)"),
    ],
)
def test_a_wrong_reference_is_named(tmp_path: Path, reference: str, expected: str) -> None:
    problem = load_problem(write_problem(tmp_path / "p", reference=reference))
    case = problem.cases(slow=False)[0]
    with pytest.raises(ProblemError, match=expected):
        problem.reference(case, problem.make_inputs(case, 0, 1), np)


def test_the_id_follows_the_content_and_not_the_layout(tmp_path: Path) -> None:
    first = load_problem(write_problem(tmp_path / "a"))
    same = load_problem(write_problem(tmp_path / "b", "# a comment\n" + GOOD))
    other_case = load_problem(write_problem(tmp_path / "c", GOOD.replace("N = 1000", "N = 1001")))
    other_reference = load_problem(write_problem(tmp_path / "d", reference=REFERENCE + "# changed\n"))
    assert first.id == same.id
    assert len({first.id, other_case.id, other_reference.id}) == 3


def test_what_a_problem_tells(tmp_path: Path) -> None:
    problem = load_problem(write_problem(tmp_path / "p"))
    real, slow = problem.cases(slow=False), problem.cases(slow=True)
    assert [(c.id, dict(c.sizes), c.slow) for c in real] == [
        ("N=100", {"N": 100}, False),
        ("big", {"N": 1000}, False),
    ]
    assert [(c.id, dict(c.sizes), c.slow) for c in slow] == [("N=10", {"N": 10}, True)]
    assert problem.work(real[1]) == (8000, 1000)
    assert [(b.name, b.dtype, b.shape, b.role) for b in problem.buffers(slow[0])] == [
        ("X", "float32", (10,), "in"),
        ("Y", "float32", (10,), "out"),
    ]
    assert problem.signature.buffers == {"X": "float32", "Y": "float32"}
    assert problem.signature.scalars == {"factor": ("float32", 0.1)}
    assert problem.catalogue() == ()
    assert pickle.loads(pickle.dumps(problem)).id == problem.id


def test_without_slow_cases_the_real_ones_are_used(tmp_path: Path) -> None:
    problem = load_problem(
        write_problem(tmp_path / "p", GOOD.replace("slow_cases = [{ sizes = { N = 10 } }]\n", ""))
    )
    assert problem.cases(slow=True) == problem.cases(slow=False)
    assert not problem.cases(slow=True)[0].slow


def test_the_source_gives_a_runner_what_it_needs(tmp_path: Path) -> None:
    toml = GOOD.replace("tolerance = { rtol = 1e-6 }", "tolerance = { rtol = 1e-6, atol = 1e-3, rms = 0.01 }")
    source = ProblemSource(load_problem(write_problem(tmp_path / "p", toml)), seed=3, slow=True)
    inputs = source.inputs("N=10", 0)
    expected = source.expected("N=10", inputs.arrays, np)["Y"]
    assert expected.dtype == np.float64
    # The scalar is what the kernel gets: 0.1 rounded to float32.
    np.testing.assert_array_equal(expected, inputs.arrays["X"].astype(np.float64) * float(np.float32(0.1)))
    tolerance = source.tolerance("N=10", "Y", expected_rms=2.0)
    assert (tolerance.rtol, tolerance.atol) == (1e-6, pytest.approx(0.021))


def test_an_argument_may_have_its_own_tolerance(tmp_path: Path) -> None:
    toml = GOOD.replace('role = "out"', 'role = "out", tolerance = { rtol = 0.5 }')
    source = ProblemSource(load_problem(write_problem(tmp_path / "p", toml)), seed=3, slow=True)
    assert source.tolerance("N=10", "Y", 1.0).rtol == 0.5


def test_the_schema_describes_every_key() -> None:
    schema = problem_schema()
    assert set(schema["properties"]) == set(ProblemSpec.model_fields)
    assert schema["additionalProperties"] is False
    json.dumps(schema)


def test_seven_problems_are_bundled() -> None:
    assert bundled_names() == ("conv2d", "gemm", "nbody", "reduce_sum", "softmax", "transpose", "vector_add")


@pytest.mark.parametrize("name", ["", "x" * 300, "a/" * 3000, "y" * 5000])
def test_a_name_that_no_file_can_have_is_one_line(name: str) -> None:
    with pytest.raises(ProblemError, match="name is empty or longer"):
        load_problem(name)


@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        ("gemm", "p4fe24fa5e7939967"),
        ("softmax", "p0c52c9dc681c9f18"),
        ("reduce_sum", "pf9993e8b0e4b1466"),
    ],
)
def test_a_new_rule_does_not_change_ids_of_recorded_campaigns(name: str, recorded: str) -> None:
    """Memories in bench/campaigns_h200 name these; a changed problem has to be recorded anew."""
    assert load_problem(name).id == recorded
