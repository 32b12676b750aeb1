"""Opens the memory's file: for the writer, which makes it and brings it up to date, or for readers beside it.

Journal in WAL mode: readers never wait for the writer. ``synchronous = NORMAL`` keeps every committed experiment
when a process is killed; a power cut may take the last few with it, never the file (sqlite.org/wal.html).
"""

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from kernelwright.core.errors import MemoryFileError
from kernelwright.memory.database import Database, one_line
from kernelwright.memory.schema import APPLICATION_ID, MIGRATIONS, ONLY_TRIGGERS

BUSY_TIMEOUT_S: Final = 30.0
RETRY_S: Final = 0.01
PAGE_BYTES: Final = 2048
"""Of a new file: an experiment fills a page and a part of another, and of larger pages more would stay empty."""

Migrations = Sequence[Callable[[sqlite3.Connection], None]]


def open_for_writing(
    path: Path, *, create: bool, timeout_s: float = BUSY_TIMEOUT_S, migrations: Migrations = MIGRATIONS
) -> Database:
    """Open, make the file and its folder if ``create``, bring an older format up to date."""
    _look(path, needed=not create)
    made = _make(path, timeout_s, migrations) if create and not path.exists() else ()
    try:
        with _connected(path, "mode=rwc", timeout_s) as database:
            _check_format(database, len(migrations))
            _use_wal(database.connection, timeout_s)
            _migrate(database, migrations)
    except MemoryFileError:
        _remove(made)
        raise
    database.made = made
    return database


def discard_unused(database: Database) -> None:
    """Remove what was made for this connection, if it holds no campaign and nobody else has it open by now.

    Without WAL the file has one user only. Who opens it this very moment is told by SQLite that it is gone.
    """
    connection = database.connection
    with contextlib.suppress(sqlite3.Error, OSError):
        if connection.execute("SELECT 1 FROM campaigns").fetchone() is None:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            _remove(database.made)


def _make(path: Path, timeout_s: float, migrations: Migrations) -> tuple[Path, ...]:
    """A new file appears with all of its tables or not at all; what was made, innermost first.

    It is made beside. When another process is faster, its file stands.
    """
    folders = tuple(folder for folder in path.absolute().parents if not folder.exists())
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with one_line(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with _connected(path, "mode=rwc", timeout_s, partial) as database:
            database.connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            _migrate(database, migrations)
            database.close()
            return (path, *folders) if _named(partial, path) else ()
    except MemoryFileError:
        _remove((partial, *folders))
        raise
    finally:
        _remove((partial,))


def _named(partial: Path, path: Path) -> bool:
    """Whether the file has its name now; false when there is one of that name."""
    try:
        os.link(partial, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            return False
        partial.rename(path)
    return True


def _remove(made: tuple[Path, ...]) -> None:
    """A file and what SQLite keeps beside it, then folders as far as they are empty."""
    if not made:
        return
    file, *folders = made
    with contextlib.suppress(OSError):  # a place that takes nothing, or somebody else uses the folder by now
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{file}{ending}").unlink(missing_ok=True)
        for folder in folders:
            folder.rmdir()


def open_for_reading(
    path: Path, *, timeout_s: float = BUSY_TIMEOUT_S, migrations: Migrations = MIGRATIONS
) -> Database:
    """Open for reading, also beside a writer and also in a folder that cannot be written."""
    _look(path, needed=True)
    try:
        return _reading(path, "mode=ro", timeout_s, migrations)
    except MemoryFileError:
        # WAL needs a file beside the memory even for reading it. Where none can be made and the writer left
        # nothing in one, nobody writes: the file may be read as it lies there.
        wal = Path(f"{path}-wal")
        if wal.exists() and wal.stat().st_size > 0:
            raise
        return _reading(path, "mode=ro&immutable=1", timeout_s, migrations)


def _reading(path: Path, mode: str, timeout_s: float, migrations: Migrations) -> Database:
    with _connected(path, mode, timeout_s) as database:
        number = _check_format(database, len(migrations))
        if number == 0:
            raise _nothing_here(path)
        if not ONLY_TRIGGERS.issuperset(migrations[number:]):
            raise MemoryFileError(
                f"{path} was written by an older kernelwright: 'kernelwright resume' brings it up to date"
            )
    return database


def _look(path: Path, *, needed: bool) -> None:
    with one_line(path):
        for folder in path.parents:
            if folder.exists() and not folder.is_dir():
                raise MemoryFileError(f"{folder}: is no folder: choose another place with --dir")
        if path.is_dir():
            raise MemoryFileError(f"{path}: is a folder, a memory is a file: choose another place with --dir")
        if path.exists() and not path.is_file():
            raise MemoryFileError(f"{path}: is no ordinary file: choose another place with --dir")
        if needed and not path.exists():
            raise _nothing_here(path)


def _nothing_here(path: Path) -> MemoryFileError:
    return MemoryFileError(
        f"{path}: there is no memory here yet: begin with 'kernelwright run PROBLEM'; a campaign that was killed "
        "before its record was written begins anew with the same command"
    )


@contextlib.contextmanager
def _connected(path: Path, mode: str, timeout_s: float, file: Path | None = None) -> Iterator[Database]:
    """A connection that stays open only when the body succeeds; faults speak of ``path``, whatever file it is."""
    with one_line(path):
        uri = f"{(file or path).absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            yield Database(connection, path)
        except BaseException:
            connection.close()
            raise


def _check_format(database: Database, newest: int) -> int:
    """Number of the file's format, 0 for an empty one. Raises MemoryFileError for a file that is not ours."""
    connection, path = database.connection, database.path
    number = _pragma(connection, "user_version")
    filled = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    if filled and _pragma(connection, "application_id") != APPLICATION_ID:
        raise MemoryFileError(f"{path}: is a database of another program: choose another place with --dir")
    if number > newest:
        raise MemoryFileError(
            f"{path} was written by a newer kernelwright (format {number}, this one knows {newest}): "
            "upgrade kernelwright"
        )
    return number


def _use_wal(connection: sqlite3.Connection, timeout_s: float) -> None:
    """SQLite does not wait by itself when two processes switch the journal of a new file at once."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)
        else:
            return


def _migrate(database: Database, migrations: Migrations) -> None:
    connection = database.connection
    if _pragma(connection, "user_version") == len(migrations):
        return
    with database.transaction():
        # Another process may have been faster: what is left is known only inside the transaction.
        for migrate in migrations[_pragma(connection, "user_version") :]:
            migrate(connection)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
