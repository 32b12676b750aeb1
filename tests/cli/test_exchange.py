"""Campaigns leave for other tools, spaces of other tools come in."""

import errno
import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.core.candidate import parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Outcome, Status
from kernelwright.devices.recorded import read_recorded
from kernelwright.memory.records import CampaignRecord, Experiment, ProblemRecord, TemplateRecord
from kernelwright.memory.store import Memory
from kernelwright.optimiser.kernel_tuner_io import read_t4

from ..campaign.fakes import measured, template
from ..memory.samples import DEVICE


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    output = capsys.readouterr()
    assert ended.value.code == code, output.err
    return output.out if code == 0 else output.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory with two templates; of the first, three configurations were tried."""
    with Memory.open(tmp_path / "memory.db") as memory:
        settings = json.dumps({"problem": "gemm", "device": "cpu"})
        device = json.dumps(asdict(replace(DEVICE, model="fake device")))
        memory.start_campaign(
            CampaignRecord("c1", "p", settings, device, "mean", 0.0), ProblemRecord("p", "gemm", "", "", "")
        )
        for name, outcomes in {
            "one": [measured(3.0), Outcome(Status.WRONG, reason="no"), measured(2.0)],
            "two": [measured(5.0)],
        }.items():
            for x, outcome in enumerate(outcomes, start=1):
                made = template(name)
                record = TemplateRecord(made.id, name, made.source, "test", name)
                cost = outcome.cases[0].median_ms if outcome.cases else None
                memory.record(
                    Experiment(
                        "c1", f"{name}{x}", made.id, Configuration({"X": x}), outcome, "why", x, cost_ms=cost
                    ),
                    record,
                )
    return tmp_path


def test_to_kernel_tuner_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "t4.json"
    assert "3 configurations of one" in run(
        capsys, "export", "c1", "--template", "one", "--to", str(file), "--dir", str(folder)
    )
    results = read_t4(file)
    assert [r.configuration["X"] for r in results] == [1, 2, 3]
    assert [r.status for r in results] == [Status.MEASURED, Status.WRONG, Status.MEASURED]
    assert results[2].times_ms == (2.0,) * 8
    recorded = folder / "back.npz"
    run(capsys, "import-results", str(file), "--to", str(recorded))
    space = read_recorded(recorded)
    assert (len(space.space), space.optimum_ms) == (3, 2.0)
    assert space.outcome(Configuration({"X": 2})).status is not Status.MEASURED


def test_to_a_recorded_space(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "one.npz"
    run(capsys, "export", "last", "--template", "one", "--to", str(file), "--dir", str(folder))
    space = read_recorded(file)
    assert (space.device, len(space.space), space.optimum_ms) == ("fake device", 3, 2.0)


@pytest.mark.parametrize("name", ["x.json", "x.npz"])
def test_a_full_disk_is_told_with_the_file_and_nothing_half_written_is_left(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    words = ("export", "c1", "--template", "one", "--to", str(folder / name), "--dir", str(folder))
    assert f"{folder / name}: cannot be written: No space left on device: free" in run(capsys, *words, code=2)
    assert [file.name for file in folder.iterdir() if "memory.db" not in file.name] == []


def test_a_template_has_to_be_named_where_there_are_several(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = run(capsys, "export", "c1", "--to", str(folder / "x.npz"), "--dir", str(folder), code=2)
    assert "one, two" in message
    assert "csv" in run(capsys, "export", "c1", "--to", "x.csv", "--dir", str(folder), code=2)


def test_a_kernel_tuner_space_becomes_the_beginning_of_a_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = {
        "ConfigurationSpace": {
            "TuningParameters": [
                {"Name": "BM", "Type": "int", "Values": "[16, 32]"},
                {"Name": "TM", "Type": "int", "Values": "[2, 4]"},
            ],
            "Conditions": [{"Expression": "BM % TM == 0", "Parameters": ["BM", "TM"]}],
        }
    }
    file = tmp_path / "t1.json"
    file.write_text(json.dumps(space))
    sections = run(capsys, "import-space", str(file))
    launch = '[[launch]]\nkernel = "k"\ngrid = [1]\nblock = ["BM"]\nargs = ["A"]\n'
    plan = parse_template(
        f'/* kernelwright\n{sections}{launch}*/\nextern "C" __global__ void k(float* A) {{}}\n'
    ).plan
    assert [t.name for t in plan.tunables] == ["BM", "TM"]
    assert plan.constraints[0].expression.text == "BM % TM == 0"
    assert "t2.json" in run(capsys, "import-space", str(tmp_path / "t2.json"), code=2)
