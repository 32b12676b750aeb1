"""Transactions and queries on one SQLite connection; faults of SQLite and the file system as one line each."""

import contextlib
import errno
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kernelwright.core.errors import MemoryFileError

Value = str | int | float | None
NO_SPACE: Final = {errno.ENOSPC, errno.EDQUOT}
LITTLE_BYTES: Final = 1 << 20
"""SQLite's shared memory, journal and a page of each table have to find room."""


class Database:
    """One connection, for one thread. ``memory.opening`` makes it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.path = path
        self.made: tuple[Path, ...] = ()
        """The file and its folders, innermost first, as far as they were made for this connection."""

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the body's writes, or none. Raises MemoryFileError."""
        with one_line(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # SQLite has rolled back by itself when the disk is full
                    self.connection.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: Value) -> list[sqlite3.Row]:
        """All rows of one query: one consistent view of the file, and no lock is left behind."""
        with one_line(self.path):
            cursor = self.connection.cursor()
            cursor.row_factory = sqlite3.Row
            return cursor.execute(query, values).fetchall()

    def insert(self, table: str, row: Mapping[str, Value], *, unless_known: bool = False) -> int:
        """Add a row inside a transaction; its number."""
        conflict = " ON CONFLICT DO NOTHING" if unless_known else ""
        marks = ", ".join("?" * len(row))
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}){conflict}"  # noqa: S608 - our own names
        cursor = self.connection.execute(statement, [_storable(value) for value in row.values()])
        return int(cursor.lastrowid or 0)

    def execute(self, statement: str, *values: Value) -> None:
        """Run one statement inside a transaction."""
        self.connection.execute(statement, [_storable(value) for value in values])


def _storable(value: Value) -> Value:
    """Text of compilers may hold bytes that are no UTF-8: better escaped than an experiment lost."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def damaged(path: Path, what: str, why: object) -> MemoryFileError:
    """What to say of a record that nobody wrote so."""
    return MemoryFileError(
        f"{path}: {what} cannot be read ({why}): the memory is damaged or was tampered with: "
        "restore it from a copy, or begin another one with --dir"
    )


@contextlib.contextmanager
def one_line(path: Path) -> Iterator[None]:
    """What SQLite and the file system say, as a MemoryFileError of one line with the mend."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise MemoryFileError(f"{path}: refused: {error}") from None
    except sqlite3.DatabaseError as error:
        if "decode to UTF-8" in str(error):
            raise damaged(path, "a record", "its text is no UTF-8") from None
        raise MemoryFileError(f"{path}: {full_disk(error, path) or _meaning(str(error))}") from None
    except OSError as error:
        if error.errno in NO_SPACE:
            raise MemoryFileError(f"{path}: {_full(path)}") from None
        raise MemoryFileError(f"{path}: {error.strerror}: choose another place with --dir") from None


def full_disk(error: sqlite3.DatabaseError, path: Path) -> str:
    """What to do when SQLite cannot write for want of space; empty when that is not why.

    A memory of a file that cannot grow is "disk I/O error" as often as "full".
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _free_bytes(path) < LITTLE_BYTES):
        return _full(path)
    if code == sqlite3.SQLITE_IOERR:
        return f"{error}: the disk of {path.parent} fails or lets files grow no more: choose another place"
    return ""


def _full(path: Path) -> str:
    return (
        f"the disk is full: free some space on the disk of {path.parent}; everything recorded before is kept"
    )


def _free_bytes(path: Path) -> int:
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return LITTLE_BYTES


def _meaning(message: str) -> str:
    if "not a database" in message or "malformed" in message:
        return f"no usable memory ({message}): move it away, or choose another place with --dir"
    if "readonly" in message:
        return f"cannot be written ({message}): choose another place with --dir"
    if "unable to open" in message:
        return f"cannot be opened ({message}): choose another place with --dir"
    if "locked" in message:
        return "another process keeps writing to it: try again when that is done"
    return message
