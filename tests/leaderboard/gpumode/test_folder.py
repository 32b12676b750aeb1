"""Problem folders made of a board's files, by the library and by the command."""

import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.cli import board_import
from kernelwright.cli.main import main
from kernelwright.core.errors import UserError
from kernelwright.harness.enclosure import Ran
from kernelwright.harness.official import describe_inputs
from kernelwright.leaderboard.abi import Abi, Axis
from kernelwright.leaderboard.base import Ranking
from kernelwright.leaderboard.board_file import read_board_file, read_sources
from kernelwright.leaderboard.gpumode.files import read_task_folder
from kernelwright.leaderboard.gpumode.folder import write_problem_folder
from kernelwright.leaderboard.gpumode.user_tables import UserTables, read_user_tables
from kernelwright.problems.loader import load_problem
from tests.leaderboard.gpumode.support import DATA, NUMPY_TABLES, OWN, board_task, numpy_board, repository

TASKS = {name: board_task(name) for name in ("vectoradd", "grayscale", "histogram", "matmul")}
BASELINE = """/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(size * size, 256)"]
block = [256]
args = ["A", "B", "C", "size"]
*/
extern "C" __global__ void add(const __half* A, const __half* B, __half* C, int size) {}
"""


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["board", "import", *words])
    assert isinstance(done.value.code, int)
    return done.value.code


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return repository(tmp_path / "reference-kernels")


def test_a_board_s_problem_is_a_problem_of_ours(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline, target = tmp_path / "add.cu", tmp_path / "mine"
    baseline.write_text(BASELINE, encoding="utf-8")
    code = run(str(tree / "vectoradd_py"), "-o", str(target), "--baseline", str(baseline), "--json")
    said = json.loads(capsys.readouterr().out)
    assert code == 0
    assert said["missing"] == []
    assert (said["leaderboard"], said["ranking"]) == ("vectoradd_v2", "last")
    problem = load_problem(target)
    assert [case.id for case in problem.cases(slow=False)] == said["cases"]
    assert [dict(c.sizes)["size"] for c in problem.cases(slow=False)] == [1024, 2048, 4096, 8192, 16384]
    assert {dict(c.sizes)["size"] for c in problem.cases(slow=True)} == {256, 512}
    sizes_tried = {trial.sizes["size"] for trial in problem.trials(slow=True) if trial.id.startswith("size ")}
    assert sizes_tried == {127, 128, 129}
    assert problem.objective == "last"
    assert problem.spec.rules.banned_words == ("stream",)
    case = problem.cases(slow=True)[0]
    inputs = problem.make_inputs(case, 0, seed=1)
    outputs = problem.reference(case, inputs, np)
    assert np.array_equal(outputs["C"], inputs["A"].astype(float) + inputs["B"])
    assert (problem.spec.tolerance.rtol, problem.spec.tolerance.atol) == (2.0**-10, 1e-8)
    assert problem.work(case) == (3 * 2 * case.sizes["size"] ** 2, 0)


def test_the_board_file_and_the_boards_own_files(tree: Path, tmp_path: Path) -> None:
    (tree / "matmul_py" / "reference.py").write_bytes(b"# odd\r\n" + (OWN / "matmul.py").read_bytes())
    target = tmp_path / "mine"
    write_problem_folder(read_task_folder(tree / "matmul_py"), target)
    board = read_board_file(target)
    assert board.abi == Abi(
        ("a", "b", "c"), "c", sizes={"m": Axis("a", 0), "n": Axis("b", 1), "k": Axis("a", 1)}
    )
    assert (board.gpus, board.ranking) == (("B200", "H100", "A100", "L4"), Ranking.LAST)
    assert (board.limits.max_bytes, board.limits.test_timeout_s, board.limits.ranked_timeout_s) == (
        10**6,
        180,
        420,
    )
    assert board.cases[-1].arguments == {"m": 4096, "n": 5120, "k": 4096, "seed": 123456}
    assert board.cases[-1].case == "m=4096,n=5120,k=4096"
    assert [dict(t)["seed"] for t in board.tests] == [53124, 3321, 1200, 32523, 4327]
    for name in ("eval.py", "utils.py"):
        assert (target / "board" / name).read_bytes() == (tree / name).read_bytes()
    for name in ("reference.py", "task.py", "task.yml"):
        assert (target / "board" / name).read_bytes() == (tree / "matmul_py" / name).read_bytes()
    read_sources(target, board)
    (target / "baseline.cu").write_text(BASELINE, encoding="utf-8")
    problem = load_problem(target)
    assert problem.spec.tolerance.rms > 0
    assert problem.work(problem.cases(slow=False)[-1]) == (
        2 * (4096**2 + 2 * 4096 * 5120),
        2 * 4096**2 * 5120,
    )


def test_what_was_assumed_is_said(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tree / "histogram_py"), "-o", str(tmp_path / "mine")) == 0
    said = capsys.readouterr().out
    assert "contention (10, 40, 90) sizes no array" in said
    assert "overwrites some of data" in said
    assert "baseline.cu is still missing" in said
    ids = [case.case for case in read_board_file(tmp_path / "mine").cases]
    assert ids[1:4] == [f"size=2621440,contention={value}" for value in (10, 40, 90)]
    with pytest.raises(UserError, match=r"baseline\.cu: the file is missing"):
        load_problem(tmp_path / "mine")


def test_a_reference_that_is_not_plain_is_left_to_the_user(tree: Path, tmp_path: Path) -> None:
    file = tree / "grayscale_py" / "reference.py"
    file.write_text(
        file.read_text(encoding="utf-8").replace("torch.sum(image * weights, dim=-1)", "f(image)"),
        encoding="utf-8",
    )
    task = read_task_folder(tree / "grayscale_py")
    written = write_problem_folder(task, tmp_path / "mine")
    assert written.missing == ("reference.py", "baseline.cu")
    assert any("line 9: f(image)" in note for note in written.notes)
    own = tmp_path / "own.py"
    own.write_text('def reference(xp, sizes, rgb):\n    return {"luma": rgb[..., 0]}\n', encoding="utf-8")
    assert write_problem_folder(task, tmp_path / "other", reference=own).missing == ("baseline.cu",)
    assert (tmp_path / "other" / "reference.py").read_bytes() == own.read_bytes()


def test_what_cannot_be_read_is_asked_for(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tree / "vectoradd_py" / "reference.py"
    file.write_text(file.read_text(encoding="utf-8").replace("torch.randn(", "made("), encoding="utf-8")
    target = tmp_path / "mine"
    assert run(str(tree / "vectoradd_py"), "-o", str(target)) == 2
    error = capsys.readouterr().err
    assert "shape or dtype of A, B is none that a problem has, or not plain" in error
    assert "--arguments FILE" in error
    tables = tmp_path / "arguments.toml"
    tables.write_text(
        "tolerance = { rtol = 0.01 }\n"
        + "".join(
            f'[[arguments]]\nname = "{n}"\ndtype = "float16"\nshape = ["size", "size"]\nrole = "{r}"\n'
            for n, r in (("A", "in"), ("B", "in"), ("C", "out"))
        ),
        encoding="utf-8",
    )
    assert run(str(tree / "vectoradd_py"), "-o", str(target), "--arguments", str(tables)) == 0
    (target / "baseline.cu").write_text(BASELINE, encoding="utf-8")
    problem = load_problem(target)
    assert problem.spec.tolerance.rtol == 0.01
    case = problem.cases(slow=True)[0]
    inputs = problem.make_inputs(case, 0, seed=1)
    assert np.array_equal(problem.reference(case, inputs, np)["C"], inputs["A"].astype(float) + inputs["B"])
    assert read_board_file(target).abi == Abi(("A", "B", "C"), "C", sizes={"size": Axis("A", 0)})


def test_a_users_names_are_the_items(tree: Path, tmp_path: Path) -> None:
    shape = {"dtype": "float16", "shape": ["size", "size"]}
    arguments = [{"name": n, "role": r, **shape} for n, r in (("x", "in"), ("y", "in"), ("z", "out"))]
    user = UserTables.model_validate({"arguments": arguments})
    written = write_problem_folder(read_task_folder(tree / "vectoradd_py"), tmp_path / "mine", user=user)
    assert read_board_file(tmp_path / "mine").abi == Abi(("x", "y", "z"), "z", sizes={"size": Axis("x", 0)})
    assert any("items in this order: x, y, z" in note for note in written.notes)
    assert written.missing == ("reference.py", "baseline.cu")
    assert any("it is about A, B, C, the arguments are x, y, z" in note for note in written.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("argument = 1", "argument: is an unknown key: remove it, or see docs/boards.md"),
        ("[[arguments]]\nname = '1'", 'arguments[0] "1".name: '),
        ("[abi]\nstyle = 'list'", "abi.style: must be 'tuple', 'single' or 'dict', not 'list'"),
        ("x = [", "not valid TOML"),
    ],
)
def test_a_users_file_is_checked(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "arguments.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_user_tables(file)
    assert said in str(caught.value)


def test_nothing_half_written_is_left(tree: Path, tmp_path: Path) -> None:
    task = read_task_folder(tree / "vectoradd_py")
    place = tmp_path / "place"
    place.mkdir()
    bad = UserTables.model_validate({"inputs": {"Z": "normal"}})
    with pytest.raises(UserError, match=r"--arguments: inputs\.Z: there is no input argument 'Z'"):
        write_problem_folder(task, place / "mine", user=bad)
    broken = tmp_path / "broken.cu"
    broken.write_text("no plan", encoding="utf-8")
    with pytest.raises(UserError, match=r"broken\.cu"):
        write_problem_folder(task, place / "mine", baseline=broken)
    assert list(place.iterdir()) == []
    (place / "mine").mkdir()
    with pytest.raises(UserError, match="is there already"):
        write_problem_folder(task, place / "mine")
    assert list(place.iterdir()) == [place / "mine"]


def test_several_outputs_leave_the_entry_open(tmp_path: Path) -> None:
    folder = tmp_path / "set" / "p"
    folder.mkdir(parents=True)
    for name in ("eval.py", "utils.py"):
        shutil.copy(OWN / name, folder.parent)
    text = (DATA / "helion-fp8_quant_py-task.yml").read_text(encoding="utf-8")
    (folder / "task.yml").write_text(text, encoding="utf-8")
    (folder / "task.py").touch()
    (folder / "reference.py").write_text(
        "def ref_kernel(data):\n    x, q, s = data\n    q[...] = x\n    s[...] = x\n    return q, s\n"
        "def generate_input(num_tokens, hidden_dim, group_size, seed):\n"
        "    x = torch.randn(num_tokens, hidden_dim)\n"
        "    return x, torch.empty(num_tokens, hidden_dim), torch.empty(num_tokens, hidden_dim // group_size)\n",
        encoding="utf-8",
    )
    written = write_problem_folder(read_task_folder(folder), tmp_path / "mine")
    assert any("returns 2 outputs" in note for note in written.notes)
    assert read_board_file(tmp_path / "mine").abi is None
    assert (
        'shape = ["num_tokens", "hidden_dim // group_size"]' in (tmp_path / "mine/problem.toml").read_text()
    )


def test_what_only_some_cases_say_is_left_out_too(tmp_path: Path) -> None:
    task = TASKS["vectoradd"]
    cases = ({"size": 8, "seed": 1}, {"size": 8, "seed": 2, "kind": "mixed"}, {"size": 8, "seed": 3})
    written = write_problem_folder(replace(task, benchmarks=cases), tmp_path / "mine")
    assert any("kind (mixed) sizes no array" in note for note in written.notes)
    ids = [case.case for case in read_board_file(written.folder).cases]
    assert ids == ["size=8", "size=8,kind=mixed", "size=8,seed=3"]


def test_a_reference_may_read_sizes(tmp_path: Path) -> None:
    numpy_board(tmp_path)
    file = tmp_path / "set" / "adds" / "reference.py"
    file.write_text(
        "def ref_kernel(data):\n    x, half, y = data\n    y[...] = x * half\n    return y\n"
        "def generate_input(size, seed):\n    return torch.randn(size), OTHER, torch.empty(size)\n",
        encoding="utf-8",
    )
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("OTHER", "size // 2"), encoding="utf-8")
    written = write_problem_folder(read_task_folder(file.parent), tmp_path / "mine")
    assert written.missing == ("baseline.cu",)
    assert '(sizes["size"] // 2)' in (written.folder / "reference.py").read_text(encoding="utf-8")
    file.write_text(text.replace("OTHER", "seed"), encoding="utf-8")
    written = write_problem_folder(read_task_folder(file.parent), tmp_path / "other")
    assert written.missing == ("reference.py", "baseline.cu")
    assert any("it reads seed, which is no size" in note for note in written.notes)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["vectoradd", "grayscale", "histogram", "matmul"]),
    cuts=st.lists(
        st.tuples(
            st.integers(0, 900),
            st.integers(1, 25),
            st.sampled_from(["", "(", "size", "x", "1", "[0]", "torch."]),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_no_reference_crashes(
    tmp_path_factory: pytest.TempPathFactory, name: str, cuts: list[tuple[int, int, str]]
) -> None:
    text = (OWN / f"{name}.py").read_text(encoding="utf-8")
    for start, length, put in cuts:
        text = text[:start] + put + text[start + length :]
    task = replace(TASKS[name], sources={**TASKS[name].sources, "reference.py": text})
    place = tmp_path_factory.mktemp("place")
    try:
        written = write_problem_folder(task, place / "mine")
    except UserError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - either is fine
        assert list(place.iterdir()) == []
    else:
        assert read_board_file(written.folder).leaderboard == TASKS[name].name


@pytest.fixture
def server() -> Iterator[str]:
    """A board that answers every question with one list."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (OWN / "eval.py", OWN / "utils.py")}
    texts |= {
        "reference.py": (OWN / "vectoradd.py").read_text(encoding="utf-8"),
        "submission.py": "@SUBMISSION@",
    }
    row: dict[str, Any] = {"name": "vectoradd_v2", "gpu_types": ["H100"], "secret_seed": 314159265}
    row["task"] = {"files": texts, "benchmarks": [{"size": 8, "seed": 1}], "tests": []}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps([row]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_a_board_is_asked_for_its_problem(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "mine"
    assert run("kernelbot:vectoradd_v2", "-o", str(target), "--server", server) == 0
    assert "vectoradd_v2 on H100, 1 cases, ranked by last" in capsys.readouterr().out
    kept = "".join(path.read_text(encoding="utf-8") for path in target.rglob("*") if path.is_file())
    assert "314159265" not in kept
    assert run("kernelbot:matmul", "-o", str(tmp_path / "other"), "--server", server) == 2
    assert "there is no leaderboard 'matmul' (there are: vectoradd_v2)" in capsys.readouterr().err


def test_running_generate_input_says_what_reading_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def without_a_layer(*arguments: Any, **named: Any) -> Ran:
        return replace(await describe_inputs(*arguments, **named), missing=("landlock",))

    monkeypatch.setattr(board_import, "describe_inputs", without_a_layer)
    numpy_board(tmp_path)
    source = str(tmp_path / "set" / "adds")
    assert run(source, "-o", str(tmp_path / "mine"), "--run-inputs") == 0
    assert "sandbox without: landlock" in capsys.readouterr().err
    spec = (tmp_path / "mine" / "problem.toml").read_text(encoding="utf-8")
    assert spec.count('shape = ["size"]') == 3
    assert read_board_file(tmp_path / "mine").abi == Abi(
        ("a", "b", "item2"), "item2", sizes={"size": Axis("a", 0)}
    )
    reference = tmp_path / "set" / "adds" / "reference.py"
    reference.write_text("import torch\n" + reference.read_text(encoding="utf-8"), encoding="utf-8")
    capsys.readouterr()
    if run(source, "-o", str(tmp_path / "other"), "--run-inputs") == 2:  # no torch here
        assert "pip install torch" in capsys.readouterr().err
    assert NUMPY_TABLES.arguments
