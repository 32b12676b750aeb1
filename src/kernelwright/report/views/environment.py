"""What the templates of all views share."""

import unicodedata
from collections.abc import Callable
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kernelwright.report import numbers

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


def environment(finalize: Callable[[Any], Any]) -> Environment:
    """Undefined names are errors; every value passes ``finalize`` before it is written."""
    env = Environment(
        loader=PackageLoader("kernelwright.report.views"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(
        ms=numbers.milliseconds,
        duration=numbers.duration,
        percent=numbers.percent,
        ratio=numbers.ratio,
        plain=numbers.plain,
    )
    return env
