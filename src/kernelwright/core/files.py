"""Files that users name, read in bounded time; files that appear whole or not at all, also after a kill."""

import errno
import os
import resource
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from kernelwright.core.errors import NoSuchFile, UserError

_LEAST_FILE: Final = 4096
"""Bytes that a file has to be able to hold before a folder counts as one that can be written."""


def read_bytes(path: Path, most: int) -> bytes:
    """What an ordinary file of at most ``most`` bytes holds; a pipe or a device could go on for ever.

    Raises UserError, one line (NoSuchFile where there is none).
    """
    with _ordinary(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(most + 1) if size <= most else b""
    if size > most or len(data) > most:
        shown = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
        raise UserError(f"{path}: is larger than {shown}, which is no file of this kind")
    return data


def read_beginning(path: Path, most: int) -> bytes:
    """:func:`read_bytes` of a file that may hold more, which is left out."""
    with _ordinary(path) as file:
        return file.read(most)


@contextmanager
def _ordinary(path: Path) -> Iterator[BinaryIO]:
    try:
        # Without O_NONBLOCK a pipe would be waited for. What is looked at is what was opened.
        with open(path, "rb", opener=_opened) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _no_file(path)
            yield file
    except FileNotFoundError:
        raise NoSuchFile(f"{path}: there is no such file") from None
    except OSError as error:
        if error.errno in {errno.EISDIR, errno.ENXIO}:
            raise _no_file(path) from None
        raise UserError(f"{path}: {unreadable(error)}") from None


def _no_file(path: Path) -> UserError:
    return UserError(f"{path}: is no ordinary file: give one (of what a program writes, a copy)")


def unreadable(error: OSError) -> str:
    """What the system says of a file or a folder, with the mend."""
    mends = {
        errno.EACCES: "give yourself the right to read it (chmod u+rX)",
        errno.ELOOP: "its links lead in a circle: put an ordinary file there",
        errno.ENOENT: "mend the link or remove it",
        errno.ENOTDIR: "put a folder there, or remove it",
    }
    mend = mends.get(error.errno or 0, "put it where it can be read")
    return f"cannot be read: {error.strerror}: {mend}"


def read_text(path: Path, most: int) -> str:
    """:func:`read_bytes` of UTF-8 text; some editors begin it with a mark."""
    return decoded(path, read_bytes(path, most))


def decoded(path: Path, data: bytes) -> str:
    """The text that was read of a file. Raises UserError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 text at byte {error.start}: save it as UTF-8") from None


def _opened(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)


def place(path: Path, data: bytes) -> None:
    """Write beside, bring to the disk, rename. Raises UserError, one line, and leaves what was there."""
    partial = path.parent / f".{path.name}.{os.getpid()}.partial"
    try:
        if path.exists() and not path.is_file():
            what = (
                "a folder: name a file in it" if path.is_dir() else "no ordinary file: choose another place"
            )
            raise UserError(f"{path}: is {what}")
        write_through(partial, data)
        partial.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raises UserError for a file that is there and that nobody said may be replaced: before work is done for its sake."""
    try:
        there = path.is_file() or path.is_symlink()
    except OSError as error:
        raise unwritable(path, error) from None
    if there and not force:
        raise UserError(f"{path}: is there already: choose another name, or replace it with --force")


def place_folder(folder: Path, files: Mapping[str, bytes], look: Callable[[Path], object]) -> None:
    """A new folder with these files (a name may lie in a folder of its own), whole or not at all.

    It is made beside, under a name that nobody can foresee; there ``look`` sees it first, and may raise. Raises
    UserError, one line.
    """
    if os.path.lexists(folder):
        raise UserError(f"{folder}: is there already: choose another folder with -o, or remove it")
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.absolute().parent))
        try:
            for name, data in files.items():
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                write_through(partial / name, data)
            look(partial)
            partial.chmod(0o755)
            partial.rename(folder)
        except UserError as error:
            raise UserError(str(error).replace(str(partial), str(folder))) from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise unwritable(folder, error) from None


def temporary_folder() -> Path:
    """Where temporary files go, as :mod:`tempfile` looks for it. Raises UserError, one line, where none can be written."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        tried = str(error.strerror).partition(" in ")[2].strip("[]").replace("'", "")
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    closed = 0 <= soft < _LEAST_FILE
    mend = "widen the limit on the size of files (ulimit -f)" if closed else "free space there or set TMPDIR"
    raise UserError(f"no folder for temporary files: {tried} cannot be written: {mend}")


def write_through(path: Path, data: bytes) -> None:
    """Write a file and bring it to the disk; what could not be written whole is removed. Raises OSError."""
    try:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise


def unwritable(path: Path, error: OSError) -> UserError:
    """What is told of a file or folder that cannot be written, with how to mend it."""
    mends = {
        errno.ENOSPC: "free some space there, or choose another place",
        errno.EDQUOT: "free some space there, or choose another place",
        errno.ENOENT: "make its folder first",
    }
    mend = mends.get(error.errno or 0, "choose another place")
    return UserError(f"{path}: cannot be written: {error.strerror}: {mend}")
