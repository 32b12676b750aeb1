"""A real campaign on the cpu, replayed in all ways from the command line; a model's replies are scripted."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kernelwright.campaign.sitting import MEMORY_FILE
from kernelwright.cli.main import main
from kernelwright.problems.loader import load_problem

from .campaigns import tampered

CODE = """/* kernelwright
[tune]
ELEMENTS = [8]
[[launch]]
kernel = "add"
grid = ["cdiv(N, 128 * ELEMENTS)"]
block = [128]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int start = blockIdx.x * (128 * ELEMENTS) + threadIdx.x;
    for (int e = 0; e < ELEMENTS; ++e) {
        const int i = start + e * 128;
        if (i < N)
            C[i] = A[i] + B[i];
    }
}
"""
REPLY = f"<proposal>\nkind: template\nname: strides\ndirection: coarse\n```\n{CODE}```\n</proposal>\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A problem of two sizes, and a campaign on it whose winner a model wrote."""
    path = tmp_path_factory.mktemp("whole")
    problem = path / "small"
    shutil.copytree(load_problem("vector_add").folder, problem)
    shutil.rmtree(problem / "catalogue")
    text = (problem / "problem.toml").read_text(encoding="utf-8")
    head = text[: text.index("[[slow_cases]]")]
    cases = "".join(f"[[slow_cases]]\nsizes = {{ N = {n} }}\n" for n in (65536, 262144))
    (problem / "problem.toml").write_text(head + cases, encoding="utf-8")
    (path / "replies.jsonl").write_text(json.dumps({"text": REPLY}) + "\n", encoding="utf-8")
    code = called(
        "run", str(problem), "--device", "cpu", "--evaluations", "2", "--dir", str(path / "memory"), "--json",
        "--model", f"recorded:{path / 'replies.jsonl'}", "--max-requests", "1", "--seconds", "100",
    )  # fmt: skip
    assert code == 0
    return path


def called(*words: str) -> object:
    with pytest.raises(SystemExit) as done:
        main(list(words))
    return done.value.code


def replayed(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, dict[str, Any]]:
    capsys.readouterr()
    code = called("replay", "last", "--json", "--dir", str(folder), *words)
    result = json.loads(capsys.readouterr().out)["replays"][0]
    return code, {**result, "parts": {part["name"]: part for part in result["parts"]}}


def test_rebuilt(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = replayed(folder / "memory", capsys)
    parts = result["parts"]
    for name in ("memory", "problem", "binary", "checks", "sanitizer"):
        assert parts[name]["verdict"] == "reproduced", parts[name]
    # Other work on this machine may move the ratio, then or now; it cannot turn the win into something else.
    ratio = parts["ratio"]["numbers"]
    if parts["ratio"]["verdict"] == "not reproduced":
        assert ratio["low"] > ratio["recorded_high"] or ratio["high"] < ratio["recorded_low"], parts["ratio"]
    assert ratio["high"] < 1
    assert parts["times"]["verdict"] == "differs"
    assert code == (0 if result["verdict"] == "reproduced" else 1)


def test_derived_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = replayed(folder / "memory", capsys, "--mode", "rederive")
    assert (code, result["verdict"]) == (0, "reproduced"), result
    assert "2 experiments of 2 templates" in result["parts"]["trajectory"]["reason"]


def test_found_again_from_the_recorded_replies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):  # other work on this machine may hide a win of two evaluations
        code, result = replayed(folder / "memory", capsys, "--mode", "regenerate")
        if code == 0:
            break
    assert (code, result["verdict"]) == (0, "reproduced"), result
    assert "the very same candidate" in result["parts"]["winner"]["reason"]
    assert "without 1 of 2 templates" in result["parts"]["search"]["reason"]


def test_not_found_again_by_a_model_that_knows_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = tmp_path / "stop.jsonl"
    replies.write_text(json.dumps({"text": "<proposal>\nkind: stop\n</proposal>"}) + "\n", encoding="utf-8")
    code, result = replayed(
        folder / "memory",
        capsys,
        "--mode",
        "regenerate",
        "--model",
        f"recorded:{replies}",
        "--evaluations",
        "2",
    )
    assert (code, result["verdict"]) == (1, "not reproduced"), result
    assert result["parts"]["winner"]["reason"].startswith("not reached: baseline takes")


def test_a_tampered_memory_is_one_line_and_exit_code_1(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tampered(folder / "memory" / MEMORY_FILE, tmp_path, "UPDATE templates SET source = source || ' '")
    capsys.readouterr()
    assert called("replay", "last", "--dir", str(tmp_path), "--mode", "all") == 1
    lines = capsys.readouterr().out.splitlines()
    assert sum("tampered" in line for line in lines if line.startswith("  ")) == 3


def test_bad_input_is_one_line_and_exit_code_2(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = ["--dir", str(folder / "memory")]
    for words in (
        ["nobody", *here],
        ["last", "--dir", str(tmp_path)],
        ["last", *here, "--mode", "x"],
        ["last", *here, "--device", "toaster"],
        ["last", *here, "--device", "detached:x"],
        ["last", *here, "--model", "anthropic:x"],
        ["last", *here, "--mode", "regenerate", "--model", "nonsense"],
        ["last", *here, "--mode", "rederive", "--problem", ""],
        ["last", *here, "--mode", "rederive", "--problem", "/not/there"],
        ["last", *here, "--mode", "rederive", "--problem", "gemm"],
    ):
        capsys.readouterr()
        assert called("replay", *words) == 2, words
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_another_problem_is_named_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert called("replay", "last", "--dir", str(folder / "memory"), "--problem", "gemm") == 2
    told = capsys.readouterr().err
    assert "--problem gemm: is the problem gemm, the campaign is on vector_add" in told


def test_a_problem_goes_by_its_folder_its_file_or_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = ["--mode", "rederive", "--problem"]
    for problem in (folder / "small", folder / "small" / "problem.toml", "vector_add"):
        code, result = replayed(folder / "memory", capsys, *here, str(problem))
        assert (code, result["verdict"]) == (0, "reproduced"), result
