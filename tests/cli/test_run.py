"""The command line on the cpu device, as a new user would try it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import pytest

from kernelwright.campaign.sitting import MEMORY_FILE
from kernelwright.cli import check
from kernelwright.cli.main import main
from kernelwright.core.candidate import Candidate
from kernelwright.core.outcome import KILLED, Outcome, Status
from kernelwright.harness.protocol import CompileResult
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem
from tests.harness.fake_device import FACTS


def command(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    output = capsys.readouterr()
    assert ended.value.code == code, output.err
    return output.out


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A short campaign on the cpu device in a process of its own; the object that ``run --json`` ends with."""
    monkeypatch.chdir(tmp_path)
    words = ["run", "reduce_sum", "--device", "cpu", "--evaluations", "8", "--seconds", "100", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "kernelwright", *words], capture_output=True, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_run_resume_and_show(campaign: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign["problem"] == "reduce_sum"
    assert campaign["device"] == "cpu"
    assert campaign["cases"] == "slow"
    assert campaign["experiments"] == sum(campaign["statuses"].values()) == 8
    assert campaign["baseline"]["score"] <= campaign["incumbent"]["score"] < 0
    assert 0 < campaign["incumbent"]["ratio_to_baseline"] <= 1
    assert campaign["seconds"] > 0
    assert campaign["peak_rss_mb"] < 250

    more = json.loads(command(capsys, "resume", "last", "--evaluations", "10", "--json"))
    assert more["campaign"] == campaign["campaign"]
    assert more["experiments"] == 10

    shown = json.loads(command(capsys, "show", "--json", "--experiments"))
    assert shown["campaign"] == campaign["campaign"]
    ids = [entry["candidate"] for entry in shown["all_experiments"]]
    assert len(set(ids)) == 10
    for case in shown["all_experiments"][0]["cases"].values():
        assert len(case["samples_ms"]) == 8
    assert "baseline" in command(capsys, "show")
    assert "__global__" in command(capsys, "show", "--source")
    assert ids[0] in command(capsys, "show", "--candidate", ids[0][:10])
    assert command(capsys, "show", "--diff", ids[0], ids[1]).startswith("--- baseline")
    assert ids[3] in command(capsys, "show", "--experiments").replace("\n", "")


def test_more_requests_to_models_are_granted_by_resume(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = load_problem("vector_add").baseline_source
    texts = [
        f"<proposal>\nkind: template\nname: {name}\ndirection: {name}\n```\n{source.replace('int i', f'int {name}').replace('[i]', f'[{name}]').replace('i < N', f'{name} < N')}```\n</proposal>\n"
        for name in ("one", "two")
    ]
    replies = tmp_path / "replies.jsonl"
    replies.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    asked = ("--model", f"recorded:{replies}", "--no-catalogue", "--max-requests", "1")
    budget = ("--evaluations", "2", "--seconds", "100", "--dir", str(tmp_path), "--json")
    command(capsys, "run", "vector_add", "--device", "cpu", *asked, *budget)
    assert requests_of(tmp_path) == 1
    command(capsys, "resume", "last", "--evaluations", "3", "--dir", str(tmp_path), "--json")
    assert requests_of(tmp_path) == 1
    words = ("--max-requests", "2", "--max-cost", "1", "--model-timeout", "60")
    command(capsys, "resume", "last", "--evaluations", "4", *words, "--dir", str(tmp_path), "--json")
    assert requests_of(tmp_path) == 2


def requests_of(directory: Path) -> int:
    with Memory.open(directory / MEMORY_FILE, create=False) as memory:
        return len(memory.requests(memory.campaign("last").id))


def test_check_tells_a_right_candidate_from_a_wrong_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = load_problem("vector_add").baseline_source
    file = tmp_path / "mine.cu"
    file.write_text(good)
    arguments = ("check", str(file), "--problem", "vector_add", "--device", "cpu", "--json")
    right = json.loads(command(capsys, *arguments))
    assert right["status"] == "measured"
    assert all(case["median_ms"] > 0 for case in right["cases"].values())
    assert right["static"] is not None

    file.write_text(good.replace("A[i] + B[i]", "A[i] - B[i]"))
    assert file.read_text() != good
    wrong = json.loads(command(capsys, *arguments, code=1))
    assert wrong["status"] == "wrong"
    assert "first at" in wrong["reason"]
    assert wrong["cases"] == {}
    assert "wrong" in command(capsys, *arguments[:-1], code=1)


class KilledHarness:
    """Somebody kills its device worker again and again."""

    facts = FACTS

    def __init__(self, *_: object, **__: object) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def compile(self, candidate: Candidate) -> CompileResult:
        return CompileResult(candidate.id)

    async def benchmark(self, *_: object) -> Outcome:
        return Outcome(Status.NOT_RUN, "the device worker ended with signal 9 once more", check=KILLED)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_check_says_nothing_of_a_candidate_whose_worker_was_killed(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "LocalHarness", KilledHarness)
    file = load_problem("vector_add").folder / "baseline.cu"
    with pytest.raises(SystemExit) as ended:
        main(["check", str(file), "--problem", "vector_add", "--device", "cpu", *more])
    reason = f"{file} could not be measured: the device worker ended with signal 9 once more"
    assert (ended.value.code, *capsys.readouterr()) == (3, "", f"kernelwright: error: {reason}\n")


def test_problems_are_listed_shown_and_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert "gemm" in command(capsys, "problems", "list")
    assert len(json.loads(command(capsys, "problems", "list", "--json"))) >= 7
    assert "M=128,N=128,K=128" in command(capsys, "problems", "show", "gemm")
    assert json.loads(command(capsys, "problems", "show", "gemm", "--json"))["name"] == "gemm"
    assert "properties" in json.loads(command(capsys, "problems", "schema"))


def test_doctor_names_what_it_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(command(capsys, "doctor", "--device", "cpu", "--json"))
    assert {"python", "g++"} <= {finding["name"] for finding in found["findings"]}
    assert all(finding["mend"] for finding in found["findings"] if not finding["ok"])


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(capsys, "--version").startswith("kernelwright ")
    assert "resume" in command(capsys, "--help")


def test_what_a_problems_self_test_finds_follows_its_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(load_problem("vector_add").folder, tmp_path / "loose")
    file = tmp_path / "loose" / "problem.toml"
    text = file.read_text().replace("tolerance = { rtol = 1e-6 }", "tolerance = { atol = 100.0 }")
    file.write_text(text)
    place = str(tmp_path / "loose")
    words = ["run", place, "--device", "cpu", "--evaluations", "1", "--dir", str(tmp_path), "--json"]
    result = json.loads(command(capsys, *words))
    assert any("zeros" in warning for warning in result["warnings"]), result["warnings"]
    with Memory.open(tmp_path / "memory.db", read_only=True) as memory:
        assert json.loads(memory.notes(result["campaign"])["selftest"]) == result["warnings"]
