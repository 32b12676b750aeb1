"""No statement of SQLite changes or removes what was recorded, in any table that is history."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from kernelwright.memory.opening import open_for_reading, open_for_writing
from kernelwright.memory.schema import MIGRATIONS, ONLY_TRIGGERS
from kernelwright.memory.store import Memory

from .samples import PROBLEM, TEMPLATE, campaign, experiment

WRITTEN_AGAIN = {"campaigns", "requests", "submissions", "environment"}
"""States and notes: everything else is history, a table of later as well."""
VALUES = {"TEXT": "x", "INTEGER": 1, "REAL": 1.0}
OTHERS = {"TEXT": "y", "INTEGER": 2, "REAL": 2.0}


@pytest.fixture
def file(memory_file: Path) -> Iterator[sqlite3.Connection]:
    Memory.open(memory_file).close()
    with closing(open_for_writing(memory_file, create=True)) as database:
        yield database.connection


def history(file: sqlite3.Connection) -> list[str]:
    names = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return sorted({name for (name,) in names} - WRITTEN_AGAIN)


def columns(file: sqlite3.Connection, table: str) -> dict[str, str]:
    return {row[1]: row[2] for row in file.execute(f"PRAGMA table_info({table})")}


def keys(file: sqlite3.Connection, table: str) -> Iterator[list[str]]:
    """All that REPLACE could go by, SQLite's own number of a row among it."""
    primary = [row[1] for row in file.execute(f"PRAGMA table_info({table})") if row[5]]
    yield primary
    for row in file.execute(f"PRAGMA index_list({table})").fetchall():
        if row[2]:
            yield [each[2] for each in file.execute(f"PRAGMA index_info({row[1]})")]
    with suppress(sqlite3.OperationalError):
        file.execute(f"SELECT rowid FROM {table}")
        yield ["rowid"]


def insert(file: sqlite3.Connection, table: str, row: dict[str, object], verb: str, more: str = "") -> None:
    marks = ", ".join("?" * len(row))
    file.execute(f"{verb} INTO {table} ({', '.join(row)}) VALUES ({marks}) {more}", list(row.values()))


def test_nothing_recorded_can_be_changed_removed_or_replaced(file: sqlite3.Connection) -> None:
    file.execute("PRAGMA foreign_keys = OFF")
    tables = history(file)
    assert {"experiments", "measurements", "milestones", "duels", "certificates", "templates"} < set(tables)
    for table in tables:
        kinds = columns(file, table)
        insert(file, table, {name: VALUES[kind] for name, kind in kinds.items()}, "INSERT")
        before = file.execute(f"SELECT * FROM {table}").fetchall()
        for name, kind in kinds.items():
            with pytest.raises(sqlite3.IntegrityError, match="are history"):
                file.execute(f"UPDATE {table} SET {name} = ?", [OTHERS[kind]])
        with pytest.raises(sqlite3.IntegrityError, match="are history"):
            file.execute(f"DELETE FROM {table}")
        for key in keys(file, table):
            row: dict[str, object] = {name: OTHERS[kind] for name, kind in kinds.items()}
            row |= {name: VALUES[kinds.get(name, "INTEGER")] for name in key}
            changes = ", ".join(f"{name} = excluded.{name}" for name in kinds)
            for verb, more in (
                ("INSERT OR REPLACE", ""),
                ("REPLACE", ""),
                ("INSERT", f"ON CONFLICT DO UPDATE SET {changes}"),
            ):
                with suppress(sqlite3.IntegrityError):  # what is shared stays, and says nothing
                    insert(file, table, row, verb, more)
                assert file.execute(f"SELECT * FROM {table}").fetchall() == before, (table, key, verb)


def test_who_replaces_an_experiment_is_told(file: sqlite3.Connection) -> None:
    file.execute("PRAGMA foreign_keys = OFF")
    row = {name: VALUES[kind] for name, kind in columns(file, "experiments").items()}
    insert(file, "experiments", row, "INSERT")
    for changed in ({"score": 9.0}, {"number": 2}):
        with pytest.raises(sqlite3.IntegrityError, match="are history: this one is recorded already"):
            insert(file, "experiments", row | changed, "INSERT OR REPLACE")


def test_a_memory_of_before_is_read_as_it_is_and_guarded_once_it_is_written(memory_file: Path) -> None:
    before = MIGRATIONS[: len(MIGRATIONS) - len(ONLY_TRIGGERS)]
    with Memory(open_for_writing(memory_file, create=True, migrations=before)) as memory:
        memory.start_campaign(campaign(), PROBLEM)
        memory.record(experiment(1), TEMPLATE)
    change = "INSERT OR REPLACE INTO experiments SELECT * FROM experiments"
    with Memory.open(memory_file, read_only=True) as memory:
        assert len(list(memory.experiments("c1"))) == 1
    with closing(sqlite3.connect(memory_file)) as db:
        db.execute(change)  # nothing keeps it from that yet
        db.rollback()
    with Memory.open(memory_file) as memory:
        memory.record(experiment(2), TEMPLATE)
    with (
        closing(sqlite3.connect(memory_file)) as db,
        pytest.raises(sqlite3.IntegrityError, match="are history"),
    ):
        db.execute(change)
    with closing(open_for_reading(memory_file)) as database:
        assert len(list(Memory(database).experiments("c1"))) == 2
