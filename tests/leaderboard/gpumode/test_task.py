"""Every task file of GPU MODE that we have, an answer of its server, and what is no task."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import Ranking
from kernelwright.leaderboard.gpumode.files import pick_task, read_task_folder, read_task_json
from kernelwright.leaderboard.gpumode.task import Task
from tests.leaderboard.gpumode.support import DATA, repository

LAST, GEOMEAN = Ranking.LAST, Ranking.GEOMEAN
# Read off the files by eye: tests, benchmarks, ranking, the three limits in seconds, and one case.
KNOWN: dict[str, tuple[Any, ...]] = {
    "amd_distributed-gemm-rs": (11, 6, GEOMEAN, (640, 640, 640), ("m", 8192), ("has_bias", False)),
    "bioml-trimul": (18, 7, GEOMEAN, (1200, 1200, 1200), ("distribution", "normal"), ("nomask", True)),
    "helion-fp8_quant_py": (5, 3, GEOMEAN, (180, 180, 420), ("hidden_dim", 7168), ("seed", 54352)),
    "nvidia-nvfp4_group_gemm": (10, 4, GEOMEAN, (None, None, 300), ("m", (128, 384)), ("g", 2)),
    "pmpp_v2-grayscale_py": (3, 6, LAST, (180, 180, 420), ("size", 16384), ("seed", 54352)),
    "pmpp_v2-histogram_py": (5, 6, LAST, (180, 180, 420), ("size", 10485760), ("contention", 10)),
    "pmpp_v2-matmul_py": (5, 8, LAST, (180, 180, 420), ("n", 5120), ("seed", 123456)),
    "pmpp_v2-prefixsum_py": (5, 11, LAST, (180, 180, 420), ("size", 268435456), ("seed", 91357)),
    "pmpp_v2-vectoradd_py": (5, 5, LAST, (180, 180, 420), ("size", 16384), ("seed", 54352)),
    "princeton-cross_entropy_py": (3, 3, GEOMEAN, (300, 900, 1200), ("vocab_size", 128256)),
}


def imported(folder: Path, file: Path) -> Task:
    """The task of a file, with empty files beside it where it names some."""
    problem = folder / "set" / "problem"
    problem.mkdir(parents=True)
    for entry in yaml.safe_load(file.read_text(encoding="utf-8"))["files"]:
        if entry["source"] != "@SUBMISSION@":
            (problem / entry["source"]).resolve().touch()
    shutil.copy(file, problem / "task.yml")
    return read_task_folder(problem)


def test_no_task_file_is_left_out() -> None:
    assert {path.name.removesuffix("-task.yml") for path in DATA.glob("*-task.yml")} == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_a_task_file_imports(name: str, tmp_path: Path) -> None:
    tests, benchmarks, ranking, limits, *values = KNOWN[name]
    file = DATA / f"{name}-task.yml"
    task = imported(tmp_path, file)
    assert (len(task.tests), len(task.benchmarks), task.ranking) == (tests, benchmarks, ranking)
    assert (task.test_timeout_s, task.benchmark_timeout_s, task.ranked_timeout_s) == limits
    last = task.benchmarks[-1]
    for key, value in values:
        assert last[key] == value
    raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert [
        {k: list(v) if isinstance(v, tuple) else v for k, v in c.items()} for c in task.benchmarks
    ] == raw["benchmarks"]
    assert [{k: list(v) if isinstance(v, tuple) else v for k, v in c.items()} for c in task.tests] == raw[
        "tests"
    ]
    assert task.description.strip() == raw["description"].strip()
    assert task.multi_gpu is ("amd_distributed" in name)
    assert task.gpus == (("A100",) if "princeton" in name else ())
    assert "submission.py" not in task.sources
    assert task.main in task.sources


def test_the_set_s_file_tells_name_gpus_and_deadline(tmp_path: Path) -> None:
    task = read_task_folder(repository(tmp_path) / "vectoradd_py")
    assert (task.name, task.gpus) == ("vectoradd_v2", ("B200", "H100", "A100", "L4"))
    assert task.deadline == 4133894400  # 2100-12-31, UTC
    assert set(task.sources) == {"task.yml", "task.py", "utils.py", "reference.py", "eval.py"}


def entry() -> dict[str, Any]:
    return {
        "id": 1,
        "name": "adds",
        "deadline": "2027-11-29T12:06:12.607273+00:00",
        "secret_seed": 314159265,
        "gpu_types": ["H100"],
        "description": "Adds.",
        "task": {
            "lang": "py",
            "files": {"eval.py": "print()", "submission.py": "@SUBMISSION@", "reference.py": "x = 1"},
            "config": {"main": "eval.py"},
            "tests": [{"seed": 1, "size": 8}],
            "benchmarks": [{"seed": 2, "size": 16}],
            "ranked_timeout": 420,
            "ranking_by": "geom",
        },
    }


def test_the_servers_answer_is_the_same_record(tmp_path: Path) -> None:
    file = tmp_path / "boards.json"
    file.write_text(json.dumps([entry(), {**entry(), "name": "other"}]), encoding="utf-8")
    task = read_task_json(file, name="adds")
    assert (task.name, task.gpus, task.ranking, task.ranked_timeout_s) == ("adds", ("H100",), GEOMEAN, 420)
    assert task.benchmarks == ({"seed": 2, "size": 16},)
    assert set(task.sources) == {"eval.py", "reference.py"}
    assert "314159265" not in repr(task)
    with pytest.raises(UserError, match=r"there is no leaderboard '' .there are: adds, other"):
        read_task_json(file)


@pytest.mark.parametrize("answer", ["{}", "[]", "7", '{"name": null}', '[{"task": {}}, 3]'])
def test_an_answer_that_names_nothing(tmp_path: Path, answer: str) -> None:
    file = tmp_path / "boards.json"
    file.write_text(answer)
    with pytest.raises(UserError) as refused:
        read_task_json(file)
    assert str(refused.value) == f"{file}: names no leaderboard: give an answer of /leaderboards"
    with pytest.raises(UserError, match=r"there is no leaderboard 'None' \(there are: none\)"):
        read_task_json(file, name="None")


def test_what_is_no_ordinary_file_is_called_so(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UserError, match=r"fifo: is no folder with a task.yml, and no .yml or .json"):
        read_task_folder(tmp_path / "fifo")
    (tmp_path / "task.yml").write_text("files: [{name: eval.py, source: fifo}]", encoding="utf-8")
    with pytest.raises(UserError, match=r"files\[0\]\.source: .*/fifo is no ordinary file"):
        read_task_folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a task"),
        ("[1, 2]", "not a task"),
        ("lang: py", "files: is missing"),
        ("files: [{name: ../x, source: x}]", 'files[0] "../x".name: is no plain file name'),
        ("files: [{name: x}]", 'files[0] "x".source: is missing'),
        ("files: {x: y}", "files: must be a list"),
        ("files: [{name: eval.py, source: ../../../etc/passwd}]", "files[0].source: '../../../etc/passwd' lies outside"),
        ("files: [{name: eval.py, source: /etc/passwd}]", "files[0].source: '/etc/passwd' lies outside"),
        ("files: [{name: eval.py, source: link}]", "files[0].source: 'link' lies outside"),
        ("files: [{name: eval.py, source: nowhere}]", "files[0].source: there is no file"),
        ("files: [{name: eval.py, source: task.yml}]", "benchmarks: is empty"),
        ("files: []\nbenchmarks: [{size: 1}]", "config.main: 'eval.py' is not among the files"),
        ("files: []\nbenchmarks: [{size: [[1]]}]", "benchmarks[0].size: must be a number"),
        ("files: []\nbenchmarks: [{size: }]", "benchmarks[0].size: must be a number"),
        ("files: []\nbenchmarks: [{a: 'x; y'}]", "benchmarks[0].a: holds ';'"),
        ("files: []\nbenchmarks: [{'a b': 1}]", 'benchmarks[0]."a b": is no name'),
        ("files: []\ntests: [5]", "tests[0]: "),
        ("files: []\nranking_by: best", "ranking_by: "),
        ("files: []\ntest_timeout: -1", "test_timeout: "),
        ("files: []\nlang: rust", "lang: "),
        ("files: [", ":1: not valid YAML"),
        ("files: !!python/object/apply:os.system [id]", "not valid YAML"),
        ("a: " + "[" * 5000, "not valid YAML"),
        ("a: 0b" + "1" * 20_000, "not valid YAML: an integer of more than"),
        ("files: []\nbenchmarks: &a [*a]", "benchmarks[0]: "),
    ],
)  # fmt: skip
def test_one_line_with_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    folder = tmp_path / "set" / "problem"
    folder.mkdir(parents=True)
    (folder / "link").symlink_to("/etc/passwd")
    file = folder / "task.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_task_folder(folder)
    assert str(caught.value).startswith(str(file))
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_wider_root_is_the_users_choice(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    (tmp_path / "eval.py").touch()
    (folder / "task.yml").write_text(
        "files: [{name: eval.py, source: ../../../eval.py}]\nbenchmarks: [{n: 1}]", encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"lies outside .* give --root"):
        read_task_folder(folder)
    assert read_task_folder(folder, root=tmp_path).name == "c"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"task": 5}, "task: "),
        ({"deadline": "tomorrow"}, "deadline: 'tomorrow' is no date"),
        ({"name": "a\nb"}, "name: must be printable"),
        ({"gpu_types": ["<H100>"]}, "gpu_types[0]: "),
        ({"task": {"files": [], "benchmarks": [{"n": 1}]}}, "task.files: must be a table"),
        ({"task": {"files": {"eval.py": "\ud800"}, "benchmarks": [{"n": 1}]}}, "files.eval.py: is no text"),
        ({"task": {"files": {"../eval.py": ""}, "benchmarks": [{"n": 1}]}}, "task.files."),
    ],
)
def test_an_odd_answer_is_one_line(change: dict[str, Any], said: str) -> None:
    row = {**entry(), **change}
    with pytest.raises(UserError) as caught:
        pick_task([row], "server", str(row["name"]))
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(
    key=st.sampled_from(["name", "deadline", "gpu_types", "description", "task"]), value=JSON, inner=st.data()
)
def test_no_answer_crashes(key: str, value: Any, inner: st.DataObject) -> None:
    row = entry()
    row[key] = value
    if key == "task":
        row["task"] = {**entry()["task"], inner.draw(st.sampled_from(list(entry()["task"]))): value}
    try:
        task = pick_task(row, "server")
    except UserError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - either is fine
    else:
        assert task.benchmarks
