"""Where the keys and texts of a plan stand in its file: by lines, for plans are TOML that people wrote."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_HEADER: Final = re.compile(r"\s*(\[\[?)\s*([\w.\"' -]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY: Final = re.compile(r"\s*[\"']?([\w. -]+?)[\"']?\s*=(?!=)")
_QUOTES: Final = re.compile("[\"']")
_NUMBER: Final = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class Places:
    """The plan's text and the line of the file where it begins, from 1.

    A key is written as ``tune.BM`` or ``scratch.part``; ``launch[1].grid`` is that of the second launch.
    """

    text: str
    first_line: int

    def find(self, key: str, needle: str = "") -> tuple[int, int]:
        """Line and column, both from 1, of ``needle`` in what ``key`` holds; column 0 where it is not seen.

        An empty key is the whole plan. Of a key that is not there its table is the place, else the first line.
        """
        numbers = self._lines_of(key)
        for pattern in _patterns(needle) if needle else ():
            for number in numbers:
                if match := pattern.search(self._lines[number]):
                    return self.first_line + number, match.start(1) + 1
        return self.first_line + (numbers[0] if numbers else 0), 0

    def key_at(self, line: int) -> str:
        """The key that a line of the file belongs to, as messages name it."""
        return shown(self._paths[line - self.first_line])

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _paths(self) -> list[str]:
        """Of each line, the key whose value it holds (a part of)."""
        section = path = ""
        launches = 0
        paths = []
        for line in self._lines:
            if header := _HEADER.match(line):
                section = path = _QUOTES.sub("", header[2])
                if header[1] == "[[":
                    path = section = f"{section}[{launches}]"
                    launches += 1
            elif key := _KEY.match(line):
                path = f"{section}.{key[1]}" if section else key[1]
            paths.append(path)
        return paths

    def _lines_of(self, key: str) -> list[int]:
        while key:
            found = [number for number, path in enumerate(self._paths) if _within(path, key)]
            if found:
                return found
            key = key.rpartition(".")[0]
        return list(range(len(self._lines)))


def shown(key: str) -> str:
    """A key as messages name it: the line tells which launch it is of."""
    return _NUMBER.sub("", key)


def _within(path: str, key: str) -> bool:
    plain = shown(path)
    return any(p == key or p.startswith(f"{key}.") for p in (path, plain))


def _patterns(needle: str) -> Iterator[re.Pattern[str]]:
    """As a whole value first, then as a word, then anywhere."""
    text = re.escape(needle)
    for pattern in (rf"[\"']({text})[\"']", rf"(?<!\w)({text})(?!\w)", f"({text})"):
        yield re.compile(pattern)
