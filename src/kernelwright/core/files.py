"""Files that appear whole or not at all, for whoever else looks at them or after a kill."""

import os
from pathlib import Path

from kernelwright.core.errors import UserError


def place(path: Path, data: bytes) -> None:
    """Write beside, bring to the disk, rename. Raises UserError, one line, and leaves what was there."""
    partial = path.parent / f".{path.name}.{os.getpid()}.partial"
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path}: is no ordinary file: choose another place")
        write_through(partial, data)
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


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
