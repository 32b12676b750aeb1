"""TOML that others wrote: whatever is wrong with it is one error with the place."""

import re
import tomllib
from typing import Any, Final

from kernelwright.core.errors import UserError

MAX_BITS: Final = 4096
"""Of an integer: of more than about 14,000 Python prints none, in no message either."""
_LONG: Final = re.compile(r"(?<![\w.])(?:0[xob])?[0-9a-fA-F_]{1000,}")
_PLACE: Final = re.compile(r"\s*\(at line (\d+), column (\d+)\)")


class TomlFault(UserError):  # noqa: N818 - reads as what happened
    """Not valid TOML. ``line`` and ``column`` are 1-based, 0 if unknown; ``message`` may quote the text."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"not valid TOML: {message}" + (f" (line {line}, column {column})" if line else ""))
        self.message = message
        self.line = line
        self.column = column


def parse_toml(text: str) -> dict[str, Any]:
    """The table of a text. Raises TomlFault."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise TomlFault("nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        message = " ".join(str(error).split())[:300]
        place = _PLACE.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place else (0, 0)
        raise TomlFault(_PLACE.sub("", message), line, column) from None
    except ValueError as error:  # Python reads no integer of thousands of digits, and no impossible time
        digits = "digits" in str(error)
        raise _too_long(text) if digits else TomlFault(" ".join(str(error).split())[:300]) from None
    if holds_long_integer(table):
        raise _too_long(text)
    return table


def _too_long(text: str) -> TomlFault:
    """With the place of what looks like it."""
    message = f"an integer of more than {MAX_BITS} bits"
    if not (found := _LONG.search(text)):
        return TomlFault(message)
    start = found.start()
    return TomlFault(message, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))


def holds_long_integer(value: Any) -> bool:
    """Whether an integer in lists and tables (which YAML may put into each other) has more than MAX_BITS."""
    todo: list[Any] = [value]
    known: set[int] = set()
    while todo:
        each = todo.pop()
        if isinstance(each, int) and each.bit_length() > MAX_BITS:
            return True
        if isinstance(each, dict | list) and id(each) not in known:
            known.add(id(each))
            todo += [*each, *each.values()] if isinstance(each, dict) else each
    return False
