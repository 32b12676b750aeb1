"""A record that nobody wrote so is bad input: one line with the file, what it is and what to do, whoever reads it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kernelwright.cli.main import main

from ..report.campaigns import write

READERS = (["show"], ["show", "--json"], ["report"], ["certificate", "last"])
GOING_ON = (["resume", "last", "--seconds", "9999"], ["replay", "last", "--mode", "rederive"])
CHANGES = {
    "samples that are no JSON": "UPDATE measurements SET samples_ms = 'garbage'",
    "samples that are no numbers": """UPDATE measurements SET samples_ms = '[null, "x"]'""",
    "a truth value among the samples": "UPDATE measurements SET samples_ms = '[1.0, true]'",
    "no samples": "UPDATE measurements SET samples_ms = '[]'",
    "no measurements": "DELETE FROM measurements",
    "samples nested for ever": f"UPDATE measurements SET samples_ms = '{'[' * 9999}'",
    "text that is no UTF-8": "UPDATE experiments SET why = CAST(x'ff' AS TEXT)",
    "conditions": "UPDATE measurements SET conditions = '7'",
    "a configuration that is no JSON": "UPDATE experiments SET configuration = 'nojson'",
    "a configuration that is a list": "UPDATE experiments SET configuration = '[1]'",
    "a configuration with an object": """UPDATE experiments SET configuration = '{"BM": {}}'""",
    "static facts cut off": "UPDATE experiments SET static = '[1,2'",
    "static facts of another type": """UPDATE experiments SET static = '{"kernels": [{"name": 7}]}'""",
    "a status": "UPDATE experiments SET status = 'splendid'",
    "a time that never comes": "UPDATE experiments SET seconds = 9e999",
    "a beginning that no calendar shows": "UPDATE campaigns SET started = 1e300",
    "a time without an end": "UPDATE measurements SET samples_ms = '[1.0, Infinity]'",
    "a time below nothing": "UPDATE measurements SET samples_ms = '[-1.0]'",
    "a median of nothing": "UPDATE measurements SET samples_ms = '[0.0, 0.0, 1.0]'",
    "time spent": "UPDATE experiments SET spent = '[]'",
    "findings": "UPDATE experiments SET findings = '[1]'",
    "a duel's samples": """UPDATE duels SET samples = '{"a": 1}'""",
    "a duel's case": """UPDATE duels SET samples = '[{"case": "n"}]'""",
    "a duel's verdict": "UPDATE duels SET verdict = '{}'",
    "half an interval": "UPDATE duels SET verdict = json_set(verdict, '$.low', NULL)",
    "device facts": "UPDATE campaigns SET device = '{}'",
    "a device fact": "UPDATE campaigns SET device = json_set(device, '$.num_sms', 'many')",
    "settings": "UPDATE campaigns SET settings = '[]'",
    "an objective": "UPDATE campaigns SET objective = 'splendour'",
    "no templates": "DELETE FROM templates",
    "no proposals": "DELETE FROM proposals",
}
READ_LATER = {  # by these two: when the device is there, or not at all
    "a milestone of no time": "UPDATE milestones SET ratio = 0",
    "parents": "UPDATE proposals SET parents = '7'",
    "the sandbox": "UPDATE environment SET value = '{\"layers\": [1]}' WHERE key = 'sandbox'",
    "ceilings": "UPDATE environment SET value = '[]' WHERE key = 'ceilings'",
    "the strong reference": "UPDATE environment SET value = '{}' WHERE key = 'strongest'",
    "a confirmation": "INSERT INTO environment SELECT id, 'confirmation', '{\"baseline_ms\": 0}' FROM campaigns",
    "a fault": "INSERT INTO environment SELECT id, 'disqualified:c000000', 'garbage' FROM campaigns",
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("recorded") / "memory.db"
    write(file, 20)
    return file.read_bytes()


@pytest.mark.parametrize("change", [*CHANGES, *READ_LATER])
def test_every_reader_says_so_in_one_line(
    recorded: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    changed(tmp_path, recorded, (CHANGES | READ_LATER)[change])
    for words in (*READERS, *(GOING_ON if change in CHANGES else ())):
        refused(tmp_path, capsys, words)


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE experiments SET configuration = '{"BM": "x", "TN": 1, "VEC": 1}'""",
        "UPDATE experiments SET configuration = '{}'",
    ],
    ids=["no number", "no configuration"],
)
def test_who_uses_a_record_looks_whether_it_fits(
    recorded: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    changed(tmp_path, recorded, change)
    for words in (["show"], ["report"]):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--dir", f"{tmp_path}"])
        assert ended.value.code == 0
    capsys.readouterr()
    space = tmp_path / "space.npz"
    refused(tmp_path, capsys, ["export", "last", "--template", "tile1", "--to", f"{space}"])
    assert not space.exists()


def changed(folder: Path, recorded: bytes, statement: str) -> None:
    """The memory as somebody else left it."""
    (folder / "memory.db").write_bytes(recorded)
    with closing(sqlite3.connect(folder / "memory.db")) as memory, memory:
        for (trigger,) in memory.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            memory.execute(f"DROP TRIGGER {trigger}")
        assert memory.execute(statement).rowcount > 0


def refused(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--dir", f"{folder}"])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, ""), (words, said)
    assert said.err.count("\n") == 1, said.err
    assert f"{folder / 'memory.db'}: " in said.err
    assert "damaged or was tampered with: restore it from a copy" in said.err
