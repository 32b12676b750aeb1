"""Server-sent events, as they come in pieces (WHATWG HTML, section 9.2.6)."""

import re
from dataclasses import dataclass
from typing import Final

_END: Final = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
"""A CR at the end of what came may still be the half of a CRLF."""


@dataclass(frozen=True)
class Event:
    """One frame: its name and its data, lines joined by LF."""

    name: str
    data: bytes


class Events:
    """Makes events of bytes, wherever those are cut. The caller bounds how many bytes come."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._seen = 0
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes."""
        self._rest += piece
        found: list[Event] = []
        begin = 0
        # A line end may have begun one byte before what was looked at already.
        search = max(0, self._seen - 1)
        while end := _END.search(self._rest, search):
            self._line(bytes(self._rest[begin : end.start()]), found)
            begin = search = end.end()
        del self._rest[:begin]
        self._seen = len(self._rest)
        return found

    def _line(self, text: bytes, found: list[Event]) -> None:
        if not text:
            if self._data:
                found.append(Event(self._name or "message", b"\n".join(self._data)))
            self._name, self._data = "", []
            return
        field, _, value = text.removeprefix(b"\xef\xbb\xbf").partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            self._name = value.decode(errors="replace")
        elif field == b"data":
            self._data.append(value)
