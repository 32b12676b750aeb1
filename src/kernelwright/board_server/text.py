"""Texts of strangers, before they are kept or shown."""

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def plain(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters; control and bidirectional characters are spelled out."""
    line = " ".join(text[: 4 * limit].split())
    shown = "".join(f"<U+{ord(c):04X}>" if unicodedata.category(c) in _HIDDEN else c for c in line)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
