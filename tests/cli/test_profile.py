"""``kernelwright profile`` where there are no counters: a digest all the same, and one line for bad input."""

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kernelwright.cli.main import main
from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.outcome import CaseTiming, Outcome, Status
from kernelwright.harness.protocol import CompileResult
from kernelwright.problems.loader import Case, load_problem
from tests.campaign.fakes import FACTS, candidate

profile_command = importlib.import_module("kernelwright.cli.profile")

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
    assert max(one["units"] for one in told["modelled"]) == 4.0
    assert "Modelled: no line wastes sectors" in told["digest"]


def test_lines_that_waste_memory_accesses_are_named_without_a_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scattered = tmp_path / "scattered.cu"
    source = BASELINE.read_text(encoding="utf-8")
    index = "blockIdx.x * blockDim.x + threadIdx.x"
    assert index in source
    scattered.write_text(
        source.replace(
            index, "blockIdx.x * blockDim.x + (threadIdx.x % 16) * (blockDim.x / 16) + threadIdx.x / 16"
        ),
        encoding="utf-8",
    )
    assert run(str(scattered)) == 0
    told = capsys.readouterr().out
    assert "uncoalesced loads: modelled: global loads need 16 sectors a request, 4 would do" in told
    assert "Modelled, line " in told
    assert "C[i] = " in told


GPU = replace(FACTS, kind="cuda")


@dataclass
class Timed:
    """A GPU's harness with three cases, the smallest first."""

    times: Mapping[str, float]
    floors: Mapping[str, float]
    facts: DeviceFacts = GPU
    cases: Sequence[Case] = tuple(Case(f"n={n}", {"n": n}) for n in (1, 2, 3))

    def floor_ms(self, case: Case) -> float:
        return self.floors.get(case.id, 0.0)

    async def benchmark(self, candidate: Candidate, compiled: CompileResult) -> Outcome:
        timings = tuple(CaseTiming(case, (ms,), "events") for case, ms in self.times.items())
        return Outcome(Status.MEASURED, cases=timings) if timings else Outcome(Status.WRONG, "1 value wrong")


@pytest.mark.parametrize(
    ("times", "floors", "chosen"),
    [
        ({"n=1": 3.0, "n=2": 40.0, "n=3": 90.0}, {"n=1": 1.0, "n=2": 10.0, "n=3": 100.0}, "n=2"),
        ({"n=1": 3.0, "n=2": 40.0, "n=3": 90.0}, {}, "n=3"),
        ({}, {"n=1": 1.0}, "n=3"),
    ],
)
async def test_the_case_farthest_from_its_floor_is_profiled(
    times: dict[str, float], floors: dict[str, float], chosen: str
) -> None:
    harness: Any = Timed(times, floors)
    one = candidate()
    seen = await profile_command._look(harness, one, CompileResult(one.id))
    assert profile_command._farthest(harness, seen.times_ms) == chosen
    assert seen.reason == ("" if times else "not timed: wrong: 1 value wrong")


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
    told = capsys.readouterr().err
    assert "compile_failed" in told
    assert f"{broken}:" in told
    assert "candidate.cu" not in told
