"""TOML that others wrote: whatever is wrong with it is one error with the place."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

from kernelwright.core.errors import UserError

MAX_BITS: Final = 4096
"""Of an integer: of more than about 14,000 Python prints none, in no message either."""
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
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of thousands of digits
        message = " ".join(str(error).split())[:300]
        place = _PLACE.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place else (0, 0)
        raise TomlFault(_PLACE.sub("", message), line, column) from None
    if any(isinstance(value, int) and value.bit_length() > MAX_BITS for value in _values(table)):
        raise TomlFault(f"an integer of more than {MAX_BITS} bits")
    return table


def _values(table: dict[str, Any]) -> Iterator[Any]:
    todo: list[Any] = [table]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, list):
            todo += value
        else:
            yield value
