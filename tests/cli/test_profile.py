"""``kernelwright profile`` where there are no counters: a digest all the same, and one line for bad input."""

import json
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.problems.loader import load_problem

BASELINE = load_problem("vector_add").folder / "baseline.cu"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["profile", *arguments, "--problem", "vector_add", "--device", "cpu"])
    return int(ended.value.code or 0)


def test_the_cpu_has_a_digest_of_level_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(BASELINE), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "not_available"
    assert told["case"] == "N=1048576"  # the largest
    assert told["digest"].startswith("Bottleneck (static, no hardware counters")
    assert told["kernels"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([str(BASELINE), "--case", "N=1"], "--case N=1: the cases are N=65536"),
        (["nowhere.cu"], "nowhere.cu: there is no such file"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_source_that_does_not_compile_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.cu"
    broken.write_text(BASELINE.read_text(encoding="utf-8") + "\nthis is no C++\n", encoding="utf-8")
    assert run(str(broken)) == 2
    assert "compile_failed" in capsys.readouterr().err
