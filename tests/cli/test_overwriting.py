"""No command writes over a file that is there already unless it is told to."""

from pathlib import Path

import pytest

from kernelwright.cli.main import main
from tests.cli.test_robust import error_of

BASELINE = str(Path(__file__).parents[2] / "src/kernelwright/problems/bundled/gemm/baseline.cu")
COMMANDS = {
    "submission.py": ("board", "export", BASELINE, "-p", "gemm", "--gpu", "A100", "-o"),
    "report.html": ("report", "last", "-o"),
    "certificate.json": ("certificate", "last", "-o"),
    "t4.json": ("export", "last", "--to"),
    "space.npz": ("import-results", "absent.json", "--to"),
    "curves.svg": ("bench", "optimiser", "--spaces", "absent", "--plot"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_is_there_stays_and_is_told_before_any_work(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("mine")
    said = error_of(capsys, *COMMANDS[name], name)
    told = f"{name}: is there already: choose another name, or replace it with --force\n"
    assert said == f"kernelwright: error: {told}"
    assert Path(name).read_text() == "mine"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "submission.py"])
def test_with_force_what_else_is_wrong_is_told_and_the_file_stays_until_there_is_a_new_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("mine")
    assert "already" not in error_of(capsys, *COMMANDS[name], name, "--force")
    assert Path(name).read_text() == "mine"


def test_a_link_that_leads_nowhere_is_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("submission.py").symlink_to("nowhere.py")
    assert "is there already" in error_of(capsys, *COMMANDS["submission.py"], "submission.py")


def test_force_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("submission.py").write_text("mine")
    with pytest.raises(SystemExit) as ended:
        main([*COMMANDS["submission.py"], "submission.py", "--force"])
    assert ended.value.code == 0, capsys.readouterr().err
    assert "gemm" in Path("submission.py").read_text()
