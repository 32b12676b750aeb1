"""Opens a board's file, and keeps a second server off it."""

import contextlib
import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from kernelwright.board_server.schema import APPLICATION_ID, STEPS
from kernelwright.core.errors import UserError
from kernelwright.core.toml_words import brief
from kernelwright.memory.database import Database, full_disk

BUSY_TIMEOUT_S: Final = 30.0


def open_database(path: Path, *, create: bool) -> Database:
    """The file, made where there is none. Raises UserError.

    Only its owner may read it: it holds sources and the seed, so that a file which others can read is refused.
    ``synchronous = FULL``: an accepted submission outlives a power cut.
    """
    if not create and not path.is_file():
        raise UserError(f"{path}: there is no board here yet: begin with 'kernelwright board serve'")
    folders = [folder for folder in path.absolute().parents if not folder.exists()]
    new = not path.exists()
    os.close(_opened(path))
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    try:
        _prepare(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        if new and _unused(path):
            _remove(path.resolve(), folders)
        why = full_disk(error, path) or f"no usable board ({error}): choose another --data"
        raise UserError(f"{path}: {why}") from None
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
    if (said := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise UserError(
            f"{path}: is damaged ({brief(said)}): restore it from a copy, or choose another --data"
        )
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
def only_server(path: Path) -> Iterator[Callable[[], None]]:
    """Two servers of one file would measure everything twice. Raises UserError for the second.

    The file itself is locked, so that every name of it leads to the same lock. Until what is yielded is called, a
    file that was not there before is a trial: it goes again, and the folders that were made for it, unless somebody
    has a token of it.
    """
    folders = [folder for folder in path.absolute().parents if not folder.exists()]
    new, kept = not path.exists(), False

    def keep() -> None:
        nonlocal kept
        kept = True

    lock = _opened(path)
    try:
        _lock(lock, path)
        try:
            yield keep
        finally:
            if new and not kept and _unused(path):
                _remove(path.resolve(), folders)
    finally:
        os.close(lock)


def _opened(path: Path) -> int:
    """The file's descriptor; it is made where there is none. Raises UserError for what can be no board.

    A second hard link is refused: SQLite keeps its journal beside the name that it was given, so that what one name
    has written would be lost under the other.
    """
    try:
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its links lead in a circle"
        raise UserError(f"{path}: cannot be opened: {reason}: choose another --data") from None
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink < 2:
        return descriptor
    os.close(descriptor)
    if stat.S_ISREG(found.st_mode):
        raise UserError(
            f"{path}: has a second name (a hard link), and a board must have one: remove the other"
        )
    raise UserError(f"{path}: is no ordinary file: choose another --data")


def _lock(descriptor: int, path: Path) -> None:
    """SQLite's own locks are of another kind and do not meet this one."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine = os.path.samestat(os.fstat(descriptor), path.stat())
    except (BlockingIOError, FileNotFoundError):
        mine = False
    if not mine:
        raise UserError(f"{path}: another server uses it: end that one, or choose another --data")


def _unused(path: Path) -> bool:
    """Whether nobody has a token of a board that never began."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT 1 FROM users").fetchone() is None
    except sqlite3.DatabaseError:
        return True


def _remove(path: Path, folders: list[Path]) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # somebody else uses the folder by now
        for folder in folders:
            folder.rmdir()
