"""Files with credentials: what other users of the machine may do with them."""

from pathlib import Path

from kernelwright.core.errors import UserError


def look_at_rights(path: Path) -> str:
    """A line where others can read the file, empty where nobody can. Raises UserError where others can write it.

    Who can write it decides what is sent, and to whom.
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # it went meanwhile
        return ""
    if mode & 0o022:
        raise UserError(
            f"{path}: others can write it, and put a credential of theirs there: chmod 600 {path}"
        )
    return (
        f"{path}: others can read it, and your credential with it: chmod 600 {path}" if mode & 0o044 else ""
    )
