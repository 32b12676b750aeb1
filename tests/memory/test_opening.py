"""Faults of the file are one line that says what, where and how to mend it; readers work beside the writer."""

import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.core.errors import MemoryFileError
from kernelwright.memory.opening import PAGE_BYTES, open_for_reading, open_for_writing
from kernelwright.memory.schema import MIGRATIONS
from kernelwright.memory.store import Memory

from .samples import PROBLEM, TEMPLATE, campaign, experiment


def fault(action: Callable[[], object]) -> str:
    """Message of the fault, which has to be one line."""
    with pytest.raises(MemoryFileError) as caught:
        action()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def filled(path: Path, experiments: int = 2) -> None:
    with Memory.open(path) as memory:
        memory.start_campaign(campaign(), PROBLEM)
        for number in range(experiments):
            memory.record(experiment(number), TEMPLATE)


def test_the_folder_is_made_and_the_format_noted(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "memory.db"
    filled(path)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert db.execute("PRAGMA page_size").fetchone() == (PAGE_BYTES,)
    assert db.execute("SELECT count(*) FROM pragma_table_list WHERE strict = 0 AND name NOT LIKE 'sqlite%'").fetchone() == (0,)  # fmt: skip
    db.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_memory_that_is_not_there(memory_file: Path, read_only: bool) -> None:
    message = fault(lambda: Memory.open(memory_file, create=False, read_only=read_only))
    told = f"{memory_file}: there is no memory here yet: begin with 'kernelwright run PROBLEM'; a campaign that was killed "
    assert message == f"{told}before its record was written begins anew with the same command"
    assert not memory_file.exists()


def test_reading_an_empty_file_says_that_nothing_is_there(memory_file: Path) -> None:
    memory_file.touch()
    assert "there is no memory here yet" in fault(lambda: Memory.open(memory_file, read_only=True))


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_format(memory_file: Path, read_only: bool) -> None:
    filled(memory_file)
    db = sqlite3.connect(memory_file)
    db.execute("PRAGMA user_version = 7")
    db.close()
    assert fault(lambda: Memory.open(memory_file, read_only=read_only)) == (
        f"{memory_file} was written by a newer kernelwright (format 7, this one knows {len(MIGRATIONS)}): "
        "upgrade kernelwright"
    )


def test_an_older_format_is_brought_up_to_date_by_the_writer_and_keeps_everything(memory_file: Path) -> None:
    filled(memory_file)

    def m002(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE extra (n INTEGER) STRICT")

    def fails(_: sqlite3.Connection) -> None:
        raise MemoryFileError("no")

    newer = (*MIGRATIONS, m002)
    assert "was written by an older kernelwright" in fault(
        lambda: open_for_reading(memory_file, migrations=newer)
    )
    fault(lambda: open_for_writing(memory_file, create=False, migrations=(*newer, fails)))
    with Memory.open(memory_file) as untouched:
        assert len(list(untouched.experiments("c1"))) == 2
    open_for_writing(memory_file, create=False, migrations=newer).close()
    database = open_for_reading(memory_file, migrations=newer)
    assert database.rows("SELECT count(*) FROM extra")[0][0] == 0
    assert len(list(Memory(database).experiments("c1"))) == 2
    database.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database(memory_file: Path, read_only: bool) -> None:
    memory_file.write_text("not a database, and longer than a header of SQLite would be " * 50)
    message = fault(lambda: Memory.open(memory_file, read_only=read_only))
    assert "no usable memory (file is not a database): move it away" in message


@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_memory(memory_file: Path, read_only: bool) -> None:
    filled(memory_file, 200)
    data = bytearray(memory_file.read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)
    memory_file.write_bytes(data)

    def read() -> None:
        with Memory.open(memory_file, read_only=read_only) as memory:
            list(memory.experiments("c1"))

    assert "malformed" in fault(read)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_of_another_program(memory_file: Path, read_only: bool) -> None:
    other = sqlite3.connect(memory_file)
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    assert "is a database of another program" in fault(lambda: Memory.open(memory_file, read_only=read_only))


def test_a_folder_where_the_file_should_be(memory_file: Path) -> None:
    memory_file.mkdir()
    assert "is a folder" in fault(lambda: Memory.open(memory_file))


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for below in (tmp_path / "file", tmp_path / "file" / "deeper"):
        for read_only in (False, True):
            message = fault(lambda: Memory.open(below / "memory.db", read_only=read_only))  # noqa: B023
            assert message == f"{tmp_path / 'file'}: is no folder: choose another place with --dir"


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder whose permissions count, also when the tests run as root."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        filled(folder / "memory.db")
        if user == 0:
            (folder / "memory.db").chmod(0o644)
            os.seteuid(65534)
        else:
            (folder / "memory.db").chmod(0o444)
            folder.chmod(0o555)
        try:
            yield folder
        finally:
            os.seteuid(user)
            folder.chmod(0o755)


def test_a_folder_that_cannot_be_written(unprivileged: Path) -> None:
    message = fault(lambda: Memory.open(unprivileged / "new.db"))
    assert message.endswith(
        "cannot be opened (unable to open database file): choose another place with --dir"
    )
    assert "Permission denied" in fault(lambda: Memory.open(unprivileged / "deeper" / "memory.db"))


def test_a_memory_that_cannot_be_written_can_still_be_read(unprivileged: Path) -> None:
    message = fault(lambda: Memory.open(unprivileged / "memory.db"))
    assert "cannot be " in message
    assert "choose another place with --dir" in message
    with Memory.open(unprivileged / "memory.db", read_only=True) as memory:
        assert len(list(memory.experiments("c1"))) == 2
    assert [file.name for file in unprivileged.iterdir()] == ["memory.db"]


def test_a_full_disk_loses_only_the_experiment_in_flight(memory_file: Path) -> None:
    filled(memory_file)
    database = open_for_writing(memory_file, create=False)
    pages = database.rows("PRAGMA page_count")[0][0]
    database.connection.execute(f"PRAGMA max_page_count = {pages}")
    memory = Memory(database)
    huge = replace(TEMPLATE, id="t2", source="x" * 100_000)
    message = fault(lambda: memory.record(experiment(9, template="t2"), huge))
    assert f"the disk is full: free some space on the disk of {memory_file.parent}; everything" in message
    database.connection.execute("PRAGMA max_page_count = 1000000")
    memory.record(experiment(9, template="t2"), huge)
    assert len(list(memory.experiments("c1"))) == 3
    memory.close()


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As a full disk is to SQLite: what it writes further on is an I/O error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def full(_: object) -> object:
    return type("Usage", (), {"free": 8192})


@pytest.mark.parametrize(("size", "there"), [(0, False), (8192, False), (8192, True)])
def test_a_full_disk_leaves_no_memory_without_tables_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, there: bool
) -> None:
    folder = tmp_path / "a" / "b"
    if there:
        folder.mkdir(parents=True)
    with files_of_at_most(size):
        message = fault(lambda: Memory.open(folder / "memory.db"))
        assert "disk I/O error: the disk of " in message
        monkeypatch.setattr(shutil, "disk_usage", full)
        message = fault(lambda: Memory.open(folder / "memory.db"))
    assert f"memory.db: the disk is full: free some space on the disk of {folder}; " in message
    assert (list(folder.iterdir()) if there else list(tmp_path.iterdir())) == []


def test_a_memory_on_a_full_disk_can_still_be_read(
    memory_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(memory_file)
    monkeypatch.setattr(shutil, "disk_usage", full)
    with files_of_at_most(0):
        with Memory.open(memory_file, read_only=True) as memory:
            assert len(list(memory.experiments("c1"))) == 2
        message = fault(lambda: Memory.open(memory_file, create=False))
    assert "the disk is full: free some space" in message
    with Memory.open(memory_file, create=False) as memory:
        memory.record(experiment(3), TEMPLATE)


def test_a_new_memory_that_no_campaign_came_into_goes_again_with_its_folders(tmp_path: Path) -> None:
    Memory.open(tmp_path / "a" / "b" / "memory.db").close()
    assert list(tmp_path.iterdir()) == []
    filled(tmp_path / "a" / "memory.db")
    Memory.open(tmp_path / "a" / "memory.db").close()
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["memory.db"]


def test_a_new_memory_that_somebody_else_uses_stays(memory_file: Path) -> None:
    first = Memory.open(memory_file)
    with Memory.open(memory_file) as second:
        first.close()
        second.start_campaign(campaign(), PROBLEM)
    with Memory.open(memory_file, read_only=True) as again:
        assert again.campaign("last") == campaign()


def test_without_hard_links_a_memory_is_made_all_the_same(
    memory_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    filled(memory_file)
    assert [file.name for file in memory_file.parent.iterdir()] == ["memory.db"]


def test_a_second_writer_waits_and_then_says_so(memory_file: Path) -> None:
    filled(memory_file)
    holder = open_for_writing(memory_file, create=False)
    second = Memory(open_for_writing(memory_file, create=False, timeout_s=0.02))
    with holder.transaction():
        message = fault(lambda: second.record(experiment(5), TEMPLATE))
        assert "another process keeps writing to it: try again" in message
    second.record(experiment(5), TEMPLATE)
    second.close()
    holder.close()


def test_a_reader_sees_what_is_committed_while_the_writer_works(memory_file: Path) -> None:
    filled(memory_file)
    writer = open_for_writing(memory_file, create=False)
    with Memory.open(memory_file, read_only=True) as reader:
        half_read = reader.experiments("c1")
        next(half_read)
        with writer.transaction():
            writer.execute("UPDATE campaigns SET seconds = 9.0")
            assert reader.campaign("c1").seconds == 0.0
        assert reader.campaign("c1").seconds == 9.0
        Memory(writer).record(experiment(7), TEMPLATE)
        assert len(list(half_read)) == 1
        assert len(list(reader.experiments("c1"))) == 3
        assert "cannot be written" in fault(lambda: reader.record(experiment(8), TEMPLATE))
    writer.close()


def test_two_processes_that_make_the_file_at_once_wait_for_each_other(
    memory_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(memory_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waits = []

    def other_is_done(seconds: float) -> None:
        waits.append(seconds)
        other.execute("ROLLBACK")

    monkeypatch.setattr("kernelwright.memory.opening.time.sleep", other_is_done)
    open_for_writing(memory_file, create=True, timeout_s=5.0).close()
    assert len(waits) == 1
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()


def test_making_the_file_beside_one_who_never_ends_says_so(memory_file: Path) -> None:
    other = sqlite3.connect(memory_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    message = fault(lambda: open_for_writing(memory_file, create=True, timeout_s=0.02))
    assert "another process keeps writing to it: try again" in message
    other.close()


OPEN_AND_RECORD = """
import sys
from pathlib import Path
from kernelwright.memory.store import Memory
from tests.memory.samples import PROBLEM, TEMPLATE, campaign, experiment
sys.stdin.readline()
with Memory.open(Path(sys.argv[1])) as memory:
    memory.start_campaign(campaign(sys.argv[2]), PROBLEM)
    for number in range(30):
        memory.record(experiment(number, campaign=sys.argv[2]), TEMPLATE)
"""


def test_several_processes_make_and_fill_one_new_memory_at_once(memory_file: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", OPEN_AND_RECORD, str(memory_file)]
    writers = [
        subprocess.Popen([*command, f"c{index}"], stdin=subprocess.PIPE, cwd=root, text=True)
        for index in range(4)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    with Memory.open(memory_file, read_only=True) as memory:
        assert {c.id: len(list(memory.experiments(c.id))) for c in memory.campaigns()} == {
            f"c{index}": 30 for index in range(4)
        }
