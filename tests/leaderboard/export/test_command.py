"""``board export``: a file and a table, or one line and none."""

import json
import re
from pathlib import Path

import pytest

from kernelwright.cli import board_export
from kernelwright.cli.main import _run as run
from kernelwright.harness.official import Replayed
from kernelwright.leaderboard.base import CaseTime, Mode, Result, State
from kernelwright.leaderboard.export.gate import Answer
from kernelwright.leaderboard.export.targets import gpu_facts
from kernelwright.problems.loader import load_problem

ROOT = Path(__file__).parents[3]
BOARDS = ROOT / "examples" / "boards"


def test_a_problem_of_a_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = BOARDS / "vectoradd", tmp_path / "submission.py"
    code = run(
        ["board", "export", str(folder / "fast.cu"), "-p", str(folder), "-o", str(out), "--gpu", "H100",
         "--configuration", "THREADS=512", "--set", "STREAM=0", "--json"]
    )  # fmt: skip
    said = json.loads(capsys.readouterr().out)
    assert code == 0
    text = out.read_text(encoding="utf-8")
    assert text.startswith("#!POPCORN leaderboard vectoradd_v2\n#!POPCORN gpu H100\n")
    assert f"candidate {said['candidate']}." in text
    assert "# STRM=0 THREADS=512 UNROLL=2\n" in text
    checks = {check["check"]: check["answer"] for check in said["checks"]}
    assert checks["rules"] == checks["banned word"] == "passed"
    assert checks["official timing"] == "not_run"


def test_a_bundled_problem_needs_no_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.py"
    baseline = ROOT / "src/kernelwright/problems/bundled/gemm/baseline.cu"
    assert run(["board", "export", str(baseline), "-p", "gemm", "-o", str(out), "--gpu", "A100", "--leaderboard", "x"]) == 0  # fmt: skip
    assert "written to" in " ".join(capsys.readouterr().out.split())
    text = out.read_text(encoding="utf-8")
    assert 'TORCH_CUDA_ARCH_LIST"] = "8.0"' in text
    assert "    A, B, C = data\n" in text


def test_what_is_refused_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = BOARDS / "vectoradd", tmp_path / "submission.txt"
    assert run(["board", "export", str(folder / "fast.cu"), "-p", str(folder), "-o", str(out)]) == 1
    assert "refused, nothing was written" in capsys.readouterr().out
    broken = tmp_path / "broken.cu"
    text = (folder / "baseline.cu").read_text(encoding="utf-8")
    broken.write_text(text.replace("const int i", "griddepcontrol(); const int i"), encoding="utf-8")
    assert run(["board", "export", str(broken), "-p", str(folder), "-o", str(tmp_path / "s.py")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.cu"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["-p", "gemm"], "--gpu is needed"),
        (["-p", "gemm", "--gpu", "MI300"], "'MI300' is not known"),
        (["-p", "gemm", "--gpu", "H100", "--set", "NO=1"], "no such tunable"),
        (["-p", "softmax", "--gpu", "H100"], "baseline.cu:4:15: launch.grid: unknown name 'N'"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = ROOT / "src/kernelwright/problems/bundled/gemm/baseline.cu"
    assert run(["board", "export", str(baseline), *arguments, "-o", str(tmp_path / "s.py")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert what in lines[0]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ('"cdiv(COUNT, TILE)"', '"COUNT / 0"', "mine.cu:{line}:{column}: "),
        ('"cdiv(COUNT, TILE)"', '"COUNT * 0.5"', "mine.cu:{line}:{column}: "),
        ("extern", "#ifdef WHATEVER\n#endif\nextern", "mine.cu:{line}: the condition asks for 'WHATEVER'"),
    ],
)
def test_a_fault_of_the_candidate_has_its_place(
    before: str, after: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (BOARDS / "vectoradd" / "fast.cu").read_text(encoding="utf-8")
    assert before in text
    file, folder = tmp_path / "mine.cu", str(BOARDS / "vectoradd")
    file.write_text(changed := text.replace(before, after, 1), encoding="utf-8")
    line = next(n for n, each in enumerate(changed.splitlines(), 1) if after.splitlines()[0] in each)
    assert run(["board", "export", str(file), "-p", folder, "-o", str(tmp_path / "s.py")]) == 2
    said = capsys.readouterr().err
    place = re.search(r"mine\.cu:(\d+)(?::(\d+))?: ", said)
    assert place, said
    assert int(place[1]) == line
    if "column" in what:
        start = changed.splitlines()[line - 1].index(after) + 2
        assert start <= int(place[2]) < start + len(after)


def test_names_of_gpus() -> None:
    assert gpu_facts("B200_Nebius").arch == "sm_100a"
    assert gpu_facts("L4x4").num_sms == 58
    assert gpu_facts("L40S").num_sms == 142
    assert gpu_facts("H200").plan_values() == {"num_sms": 132, "max_shared_bytes": 232448, "warp_size": 32}


@pytest.mark.parametrize(
    ("answers", "wanted", "detail"),
    [
        ([(State.PASSED, ""), (State.PASSED, "")], Answer.PASSED, "milliseconds: 1.5"),
        (
            [(State.PASSED, ""), (State.FAILED, "case 2 is wrong")],
            Answer.REFUSED,
            "benchmark: failed: case 2",
        ),
        ([(State.TIMED_OUT, "too long"), (State.PASSED, "")], Answer.REFUSED, "test: timed_out"),
    ],
)
def test_official_timing_is_part_of_the_gate(
    answers: list[tuple[State, str]], wanted: Answer, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def replayed(folder: Path, text: str, mode: Mode, *, device: str) -> Replayed:
        assert (folder, text, device) == (problem.folder, "x = 1", "cuda:0")
        state, reason = answers[0 if mode is Mode.TEST else 1]
        result = Result("", mode, state, reason, cases=(CaseTime({"size": 1}, 1.5e-3),))
        return Replayed(result, 1.0, ("landlock",))

    problem = load_problem("gemm")
    monkeypatch.setattr(board_export, "replay", replayed)
    monkeypatch.setattr(board_export, "find_spec", lambda _: object())
    found = board_export.official(problem, "cuda:0")("x = 1")
    assert found[0] is wanted
    assert detail in found[1]
    assert ("sandbox without: landlock" in found[1]) is (wanted is Answer.PASSED)


def test_official_timing_that_cannot_be_had_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_export, "find_spec", lambda _: None)
    judge = board_export.official(load_problem(BOARDS / "vectoradd"), "cpu")
    assert judge("x = 1") == (Answer.NOT_RUN, "PyTorch is not installed: pip install torch")
    monkeypatch.setattr(board_export, "find_spec", lambda _: object())
    answer, detail = judge("x = 1")
    assert answer is Answer.NOT_RUN
    assert "were not kept" in detail
