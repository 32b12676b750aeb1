"""What commands say on stderr beside their output."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from kernelwright.cli import telling
from kernelwright.cli.gauntlet import Count
from kernelwright.cli.main import main
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.sandbox import Layer, SandboxReport
from tests.cli.said import NOTE
from tests.cli.test_gauntlet import copy

BASELINE = Path(__file__).parents[2] / "src/kernelwright/problems/bundled/vector_add/baseline.cu"
LACKING = f"{NOTE}sandbox without: walls (kernelwright doctor tells why)"
HONEST = ("honest/grid_stride.cu", "honest/vectorised_with_tail.cu", "honest/early_exit.cu")


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without one layer of the sandbox."""
    report = SandboxReport((Layer("walls", holds=False), Layer("roof", holds=True)))
    monkeypatch.setattr(LocalHarness, "sandbox", property(lambda _: report))


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, list[str]]:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--device", "cpu"])
    output = capsys.readouterr()
    assert ended.value.code == code, output.err
    return output.out, output.err.splitlines()


@pytest.mark.usefixtures("lacking")
@pytest.mark.parametrize(
    "words",
    [
        ("check", str(BASELINE), "-p", "vector_add"),
        ("check", str(BASELINE), "-p", "vector_add", "--json"),
        ("profile", str(BASELINE), "-p", "vector_add", "--json"),
        ("problem", "test", "vector_add", "--json"),
    ],
    ids=lambda words: "-".join((words[0], words[-1].lstrip("-"))),
)
def test_a_missing_layer_is_told_by_whoever_runs_a_candidate(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = said(capsys, *words)
    assert err.count(LACKING) == 1
    assert "walls" not in out
    if words[-1] == "--json":
        json.loads(out)


@pytest.mark.usefixtures("lacking")
def test_a_gauntlet_tells_it_once_for_all_its_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy(tmp_path, "honest/grid_stride.cu", "honest/tiled_gemm.cu")
    out, err = said(capsys, "gauntlet", str(tmp_path), "--json")
    assert err.count(LACKING) == 1
    assert json.loads(out)["honest"] == 2


@pytest.mark.usefixtures("lacking")
def test_a_campaign_and_its_replay_tell_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--dir", str(tmp_path))
    out, err = said(capsys, "run", "vector_add", "--evaluations", "2", "--json", *where)
    assert err.count(LACKING) == 1
    json.loads(out)
    with pytest.raises(SystemExit):
        main(["replay", "last", "--json", *where])
    assert capsys.readouterr().err.splitlines().count(LACKING) == 1


def test_an_interrupted_gauntlet_shows_what_it_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Count, line: str, *, bad: bool = False) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Count, "add", interrupt)
    out, err = said(capsys, "gauntlet", str(copy(tmp_path, *HONEST)), "--json", code=130)
    found: dict[str, Any] = json.loads(out)
    verdicts = sorted(row["verdict"] for row in found["rows"])
    assert verdicts == ["honest", "not run", "not run"]
    assert found["interrupted"]
    assert found["not_run"] == 2
    assert {row["reason"] for row in found["rows"]} == {"", "interrupted before its verdict"}
    assert err[-1] == "kernelwright: interrupted"


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_has_every_line_for_a_terminal_and_some_elsewhere(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    clock = iter([0.0, 1.0, 2.0, telling.PERIOD_S + 3.0, telling.PERIOD_S + 4.0])
    monkeypatch.setattr(telling, "monotonic", lambda: next(clock))
    count = telling.Count(4, shown.append, all_lines=terminal)
    for number, bad in enumerate((False, True, False, False)):
        count.add(f"file {number}", bad=bad)
    lines = [f"{n + 1} of 4: file {n}" for n in range(4)]
    assert shown == (lines if terminal else lines[1:3])
