"""The user's home folder, which a process need not have: no HOME, and a user id that the system does not know."""

from pathlib import Path

from kernelwright.core.errors import UserError

NOWHERE = Path("/nonexistent")
"""Debian's home of who has none: nothing is found in it."""


def home() -> Path:
    """The home folder, or one that does not exist."""
    try:
        return Path.home()
    except RuntimeError:
        return NOWHERE


def expanded(path: Path) -> Path:
    """A path that a user gave, with its ``~``. Raises UserError, one line, where that leads nowhere."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise UserError(f"{path}: there is no such home folder: set HOME, or give the path itself") from None
