"""``report`` and ``show`` on recorded campaigns."""

import json
from pathlib import Path

import pytest

from kernelwright.cli.main import main

from ..report.campaigns import NAME, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "memory.db", 60)
    return tmp_path


def command(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as done:
        main([*words])
    assert done.value.code == code
    said = capsys.readouterr()
    return said.err if code else said.out


@pytest.mark.parametrize(
    ("name", "begin"), [("r.html", "<!DOCTYPE html>"), ("r.md", "# gemm"), ("r.json", "{")]
)
def test_the_suffix_says_the_format(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, begin: str
) -> None:
    said = command(capsys, "report", "last", "-o", f"{folder / name}", "--dir", f"{folder}")
    assert NAME in said
    assert (folder / name).read_text(encoding="utf-8").startswith(begin)


def test_without_a_file_it_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "report", "--format", "json", "--dir", f"{folder}")
    assert json.loads(said)["headline"]["campaign"] == NAME


def test_bad_input_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["nobody"], ["last", "--format", "pdf"], ["last", "-o", f"{folder}/none/r.html"]):
        assert len(command(capsys, "report", *words, "--dir", f"{folder}", code=2).splitlines()) == 1


def test_commands_to_repeat_it_are_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for fact in json.loads(command(capsys, "report", "--format", "json", "--dir", f"{folder}"))["commands"]:
        words = fact["value"].split()[1:]
        assert "Usage: kernelwright" in command(capsys, *words, "--help")


def test_show_has_headline_and_chart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "show", "--dir", f"{folder}")
    assert "times as fast as the baseline." in said
    assert "ms, log" in said
    assert "\u202e" not in said
    data = json.loads(command(capsys, "show", "--json", "--dir", f"{folder}"))
    assert data["headline"]["experiments"] == data["experiments"] == 60
    assert [step["cost_ms"] for step in data["trajectory"]] == sorted(
        (step["cost_ms"] for step in data["trajectory"]), reverse=True
    )
