"""Tokens of a source as a compiler sees them: after line splices, without comments, directives apart.

Follows the translation phases of C++17 (ISO/IEC 14882:2017, [lex.phases]): splices go first, raw strings and
comments are whole tokens, a directive ends at a newline outside of comments. Trigraphs are gone since C++17.
Every scan is linear in the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["word", "number", "string", "char", "punct"]

_INCLUDES: Final = frozenset({"include", "include_next", "import", "embed"})
_TOKEN: Final = re.compile(
    r"""(?P<space>[^\S\n]+)
    |(?P<newline>\n)
    |(?P<comment>//[^\n]*|/\*)
    |(?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\()
    |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    |(?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<word>[^\W\d]\w*)
    |(?P<punct>%:%:|\#\#|%:|<<<|<<|>>|::|\?\?[=/'()!<>-]|[-=!<>]=|->|&&|\|\||.)""",
    re.VERBOSE | re.DOTALL,
)
_HEADER: Final = re.compile(r"[^\S\n]*(<[^>\n]*>|\"[^\"\n]*\")")
_SPLICE: Final = re.compile(r"\\\n")
_DIGRAPHS: Final = {"%:": "#", "%:%:": "##"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token and where it starts in the text without splices."""

    kind: Kind
    text: str
    offset: int


@dataclass(frozen=True)
class Directive:
    """``#name ...``; ``header`` is the quoted name of an include, empty for a computed one."""

    name: str
    tokens: tuple[Token, ...]
    offset: int
    header: str = ""


@dataclass(frozen=True)
class Lexed:
    """A source in tokens. ``plain`` has comments blanked and every character in its place, in ASCII.

    ``doubt`` names what two compilers may read differently: offset and what it is.
    """

    plain: str
    tokens: tuple[Token, ...]
    directives: tuple[Directive, ...]
    splices: tuple[int, ...]
    newlines: tuple[int, ...]
    doubt: tuple[int, str] | None = None

    def line(self, offset: int) -> int:
        """Line, from 1, in the text as it was written."""
        return 1 + bisect_right(self.newlines, offset - 1) + bisect_right(self.splices, offset)

    @property
    def all_tokens(self) -> Iterator[Token]:
        """Tokens of code and of directives."""
        yield from self.tokens
        for directive in self.directives:
            yield from directive.tokens


def lex(text: str) -> Lexed:
    """Read a whole text; never raises."""
    return _Lexer(text.replace("\r\n", "\n")).run()


class _Lexer:
    def __init__(self, text: str) -> None:
        self.splices = [m.start() - 2 * n for n, m in enumerate(_SPLICE.finditer(text))]
        self.text = _SPLICE.sub("", text)
        self.doubt = self._line_doubt()
        self.plain: list[str] = []
        self.code: list[Token] = []
        self.directives: list[Directive] = []
        self.current: list[Token] | None = None
        self.start = 0
        self.header = ""
        self.fresh = True  # nothing but space so far on this line

    def _line_doubt(self) -> tuple[int, str] | None:
        if (at := self.text.find("\r")) >= 0:
            return at, "a carriage return inside a line"
        if found := re.search(r"\\[^\S\n]+\n", self.text):
            return found.start(), "a backslash followed by spaces at the end of a line"
        return None

    def run(self) -> Lexed:
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            assert match is not None
            at = self._take(match)
        self._end_directive()
        plain = "".join(self.plain)
        return Lexed(
            plain=plain,
            tokens=tuple(self.code),
            directives=tuple(self.directives),
            splices=tuple(self.splices),
            newlines=tuple(m.start() for m in re.finditer("\n", self.text)),
            doubt=self.doubt,
        )

    def _take(self, match: re.Match[str]) -> int:
        kind, at = match.lastgroup, match.start()
        if kind == "delimiter":
            kind = "raw"
        if kind == "newline":
            self._end_directive()
            self._keep("\n")
            self.fresh = True
        elif kind == "space":
            self._blank(len(match.group()))
        elif kind == "comment":
            end = match.end() if match.group() != "/*" else self._find("*/", match.end())
            self._blank(end - at)
            return end
        elif kind == "raw":
            return self._raw(match)
        else:
            return self._token(kind or "punct", match.group(), at)
        return match.end()

    def _raw(self, match: re.Match[str]) -> int:
        end = self._find(f'){match["delimiter"]}"', match.end())
        if bisect_right(self.splices, end) > bisect_right(self.splices, match.start()):
            self.doubt = self.doubt or (match.start(), "a raw string with a line continuation")
        self._emit(Token("string", self.text[match.start() : end], match.start()))
        self._keep('"' + " " * (end - match.start() - 2) + '"')
        return end

    def _find(self, closing: str, start: int) -> int:
        found = self.text.find(closing, start)
        return len(self.text) if found < 0 else found + len(closing)

    def _token(self, kind: str, text: str, at: int) -> int:
        end = at + len(text)
        self._keep(text)
        text = _DIGRAPHS.get(text, text)
        if self.fresh and text == "#" and self.current is None:
            self.current, self.start, self.header, self.fresh = [], at, "", False
            return end
        self._emit(Token(kind, text, at))  # type: ignore[arg-type]
        if kind == "punct" and (text == "\\" or (text.startswith("??") and len(text) == 3)):
            what = "a trigraph" if text != "\\" else "a backslash outside of a string"
            self.doubt = self.doubt or (at, what)
        if self.current is not None and len(self.current) == 1 and text in _INCLUDES:
            return self._header(end)
        return end

    def _header(self, at: int) -> int:
        """A header's name is one token: slashes and stars in it open no comment."""
        match = _HEADER.match(self.text, at)
        if match is None:
            return at
        self.header = match[1]
        self._keep(match.group())
        return match.end()

    def _emit(self, token: Token) -> None:
        self.fresh = False
        (self.code if self.current is None else self.current).append(token)

    def _end_directive(self) -> None:
        if self.current is not None:
            name = self.current[0].text if self.current else ""
            self.directives.append(Directive(name, tuple(self.current[1:]), self.start, self.header))
            self.current = None

    def _keep(self, text: str) -> None:
        self.plain.append(text if text.isascii() else text.encode("ascii", "replace").decode())

    def _blank(self, length: int) -> None:
        self.plain.append(" " * length)
