"""Texts that others wrote, made safe to look at."""

import unicodedata
from typing import Any, Final

from markupsafe import Markup

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_LAYOUT: Final = frozenset("\n\t")


def visible(value: Any) -> Any:
    """Texts with control and bidirectional characters spelled out: a source must not look other than it is."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if value.isascii() and value.isprintable():
        return value
    return "".join(
        f"<U+{ord(c):04X}>" if unicodedata.category(c) in _HIDDEN and c not in _LAYOUT else c
        for c in value.replace("\r\n", "\n")
    )
