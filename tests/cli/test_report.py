"""``report`` and ``show`` on recorded campaigns."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.memory.records import ProfileRecord
from kernelwright.memory.store import Memory
from kernelwright.report import Records

from ..report.campaigns import EVIL, NAME, write


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


def profiled(folder: Path, *digests: str) -> str:
    """Gives the leader profiles; its candidate's id."""
    with Memory.open(folder / "memory.db", create=False) as memory:
        leader = Records.read(memory, memory.campaign(NAME)).incumbent
        assert leader is not None
        for number, text in enumerate(digests):
            memory.profile(
                ProfileRecord(NAME, leader.candidate, "n", 1, "memory", text, "{}", f"occasion {number}", 9.0)
            )
    return leader.candidate


def digests(capsys: pytest.CaptureFixture[str], folder: Path) -> list[str]:
    """Of the leader: in ``report --format json`` and ``show --json``."""
    words = (["report", "--format", "json"], ["show", "--json"])
    return [
        json.loads(command(capsys, *each, "--dir", f"{folder}"))["bottleneck"]["digest"] for each in words
    ]


def test_show_prints_the_digest_of_the_report(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    reported, shown = digests(capsys, folder)
    assert shown == reported
    assert shown.startswith("Bottleneck (static, no hardware counters, ")
    assert f"\n{shown}\n" in command(capsys, "show", "--dir", f"{folder}")

    profiled(folder, "an older digest", "Bottleneck (hardware counters, n): grid\nNumbers: SM % [3]")
    reported, shown = digests(capsys, folder)
    assert shown == reported == "Bottleneck (hardware counters, n): grid\nNumbers: SM % [3]"
    said = command(capsys, "show", "--dir", f"{folder}")
    assert f"\n{shown}\n" in said
    assert "no hardware counters" not in said


def test_show_has_no_digest_without_a_leader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "memory.db", 12, failing=1.0, state="failed")
    assert "Bottleneck" not in command(capsys, "show", "--dir", f"{tmp_path}")
    assert json.loads(command(capsys, "show", "--json", "--dir", f"{tmp_path}"))["bottleneck"] is None


def test_show_has_every_profile_of_a_candidate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leader = profiled(folder, "first\ndigest", "second digest")
    said = command(capsys, "show", "--candidate", leader, "--dir", f"{folder}")
    assert "\nprofile (occasion 0):\nfirst\ndigest\nprofile (occasion 1):\nsecond digest\n\n" in said
    other = command(capsys, "show", "--candidate", "c000000", "--dir", f"{folder}")
    assert "profile (leads):" in other
    assert "second digest" not in other


def test_show_spells_out_what_a_digest_hides(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    leader = profiled(folder, f"{EVIL}\x1b[2J [red]")
    spelled = EVIL.replace("\u202e", "<U+202E>") + "<U+001B>[2J [red]\n"
    assert spelled in command(capsys, "show", "--dir", f"{folder}")
    assert f"profile (occasion 0):\n{spelled}" in command(
        capsys, "show", "--candidate", leader, "--dir", f"{folder}"
    )


def test_show_candidate_spells_out_reasons_and_sources_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(folder / "memory.db")) as memory, memory:
        for (trigger,) in memory.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            memory.execute(f"DROP TRIGGER {trigger}")
        memory.execute("UPDATE experiments SET reason = 'odd \x1b[2J'")
        memory.execute("UPDATE templates SET source = source || '// \x1b[31m'")
    said = command(capsys, "show", "--candidate", "c000000", "--dir", f"{folder}")
    assert "\x1b" not in said
    assert "odd <U+001B>[2J" in said
    assert "// <U+001B>[31m" in said


def test_show_has_the_first_sentence_of_a_strategy(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    text = "tile [BM=8]: Blocks of a persistent grid. Then a whole essay about it."
    with closing(sqlite3.connect(folder / "memory.db")) as memory, memory:
        for (trigger,) in memory.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            memory.execute(f"DROP TRIGGER {trigger}")
        memory.execute("UPDATE milestones SET strategy = ?", (text,))
    said = command(capsys, "show", "--dir", f"{folder}")
    assert "tile [BM=8]: Blocks of a persistent grid\n" in said
    assert "essay" not in said
    assert "essay" in command(capsys, "show", "--json", "--dir", f"{folder}")
