"""Texts of strangers, before they are kept or shown; points in time for whoever serves a board."""

import unicodedata
from datetime import datetime
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def plain(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters; control and bidirectional characters are spelled out."""
    line = " ".join(text[: 4 * limit].split())
    shown = "".join(f"<U+{ord(c):04X}>" if unicodedata.category(c) in _HIDDEN else c for c in line)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def local_time(unix_time: float) -> str:
    """In the form that ``--deadline`` takes."""
    return datetime.fromtimestamp(unix_time).astimezone().isoformat(timespec="seconds")
