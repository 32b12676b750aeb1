"""Opens a board's file, and keeps a second server off it."""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kernelwright.board_server.schema import APPLICATION_ID, STEPS
from kernelwright.core.errors import UserError
from kernelwright.memory.database import Database

BUSY_TIMEOUT_S: Final = 30.0


def open_database(path: Path, *, create: bool) -> Database:
    """The file, made where there is none. Raises UserError.

    Only its owner may read it: it holds sources and the seed, so that a file which others can read is refused.
    ``synchronous = FULL``: an accepted submission outlives a power cut.
    """
    try:
        if not create and not path.is_file():
            raise UserError(f"{path}: there is no board here yet: begin with 'kernelwright board serve'")
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    except OSError as error:
        raise UserError(f"{path}: cannot be opened: {error.strerror}: choose another --data") from None
    try:
        _prepare(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise UserError(f"{path}: no usable board ({error}): choose another --data") from None
    except BaseException:
        connection.close()
        raise
    return Database(connection, path)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    filled = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    if filled and _pragma(connection, "application_id") != APPLICATION_ID:
        raise UserError(f"{path}: is a file of another program: choose another --data")
    if path.stat().st_mode & 0o077:
        raise UserError(f"{path}: others can read it, and sources with it: chmod 600 {path}")
    if _pragma(connection, "user_version") > len(STEPS):
        raise UserError(f"{path}: was written by a newer kernelwright: upgrade kernelwright")
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("BEGIN IMMEDIATE")
    for step in STEPS[_pragma(connection, "user_version") :]:
        for statement in step.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(STEPS)}")
    connection.execute("COMMIT")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


@contextlib.contextmanager
def only_server(path: Path) -> Iterator[None]:
    """Two servers of one file would measure everything twice. Raises UserError for the second.

    In a folder of many the lock may be somebody's link: it is not followed, and nothing is cut.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.fdopen(os.open(path.with_name(f"{path.name}.lock"), flags, 0o600), "r+b")
    except OSError as error:
        raise UserError(f"{path}: cannot be opened: {error.strerror}: choose another --data") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{path}: another server uses it: end that one, or choose another --data"
            ) from None
        yield
