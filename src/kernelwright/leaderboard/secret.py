"""A user's credential in memory: it goes into one header, and is shown and kept nowhere."""

import re
from typing import NoReturn


class Secret:
    """A text that is shown nowhere: not by ``str``, ``repr``, a format, a pickle or a copy."""

    __slots__ = ("_pattern", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        self._pattern = re.compile(re.escape(value), re.IGNORECASE)

    def reveal(self) -> str:
        """The value, for the header and nothing else."""
        return self._value

    def hide(self, text: str) -> str:
        """The text without the value, for texts of a server that may echo it."""
        return self._pattern.sub("[hidden]", text)

    def __repr__(self) -> str:
        return "[hidden]"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a credential is not kept")
