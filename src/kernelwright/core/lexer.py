"""Tokens of a source as a compiler sees them: after line splices, without comments, directives apart.

Follows the translation phases of C++17 (ISO/IEC 14882:2017, [lex.phases]): splices go first, raw strings and
comments are whole tokens, a directive ends at a newline outside of comments. Trigraphs are gone since C++17.
What is a token in code may be none in text that a condition leaves out: some compilers know no digit separators there,
and a quote that is not closed reaches to the line's end. Where it matters, that is a doubt. Every scan is linear.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["word", "number", "string", "char", "punct"]

_INCLUDES: Final = frozenset({"include", "include_next", "import", "embed"})
CONDITIONS: Final = {"if": 1, "ifdef": 1, "ifndef": 1, "endif": -1}
"""What directives do to the number of conditions that are open."""
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\f\v]+)
    |(?P<newline>\n)
    |(?P<comment>//[^\n]*|/\*)
    |(?P<raw>(?:u8|[uUL])?R"(?P<delimiter>\w{0,16})\()
    |(?P<odd>(?:u8|[uUL])?R")
    |(?P<string>(?:u8|[uUL])?"(?:\\[^\n]|[^"\\\n])*")
    |(?P<char>(?:u8|[uUL])?'(?:\\[^\n]|[^'\\\n])*')
    |(?P<unclosed>(?:u8|[uUL])?["'][^\n]*)
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<word>[^\W\d]\w*)
    |(?P<punct>%:%:|\#\#|%:|<<<|<<|>>|::|<%|%>|<:(?!:(?![:>]))|:>|\?\?[=/'()!<>-]|[-=!<>]=|->|&&|\|\||.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_OPENS: Final = re.compile(r"""//|/\*|["'\\]""")
"""What begins another reading of a line for who takes what is before it differently."""
_SEPARATED: Final = re.compile(r"(?:0[xXbB])?[\da-fA-F]+(?:'[\da-fA-F]+)+(?<!'[eE])[\w.]*")
_PRINTED: Final = frozenset(map(chr, range(33, 127))) - {"$"}
_HEADER: Final = re.compile(r"[^\S\n]*(<[^>\n]*>|\"[^\"\n]*\")")
_SPLICE: Final = re.compile(r"\\\n")
_DIGRAPHS: Final = {"%:": "#", "%:%:": "##"}
_BRACKETS: Final = frozenset({"<:", ":>", "<%", "%>"})


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
        self.depth = 0  # of conditions

    def _line_doubt(self) -> tuple[int, str] | None:
        if (at := self.text.find("\r")) >= 0:
            return at, "a carriage return inside a line"
        if (at := self.text.find("\0")) >= 0:
            return at, "a character of value 0, where some end the text"
        if found := re.search(r"\\[^\S\n]*(\n|\Z)", self.text):
            blanks = " followed by spaces" if found[0].strip("\\\n") else ""
            return found.start(), f"a backslash{blanks} at the end of a line that is spliced with none"
        return None

    def _doubt(self, at: int, what: str) -> None:
        self.doubt = self.doubt or (at, what)

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
        kind, text, at = match.lastgroup or "punct", match.group(), match.start()
        if kind == "newline":
            self._end_directive()
            self._keep("\n")
            self.fresh = True
        elif kind == "space":
            self._blank(len(text))
        elif kind == "comment":
            end = match.end() if text != "/*" else self._find("*/", at, match.end())
            self._blank(end - at)
            return end
        elif kind == "raw":
            return self._raw(match)
        elif kind in {"unclosed", "odd"}:
            return self._broken(kind, text, at)
        else:
            return self._token(kind, text, at)
        return match.end()

    def _raw(self, match: re.Match[str]) -> int:
        start = match.start()
        end = self._find(f'){match["delimiter"]}"', start, match.end())
        if bisect_right(self.splices, end) > bisect_right(self.splices, start):
            self._doubt(start, "a raw string with a line continuation")
        if self._left_out() and re.search(r'["\n]', self.text[match.end() : end - 1]):
            self._doubt(start, "a raw string with quotes or lines in a directive or under a condition")
        self._emit(Token("string", self.text[start:end], start))
        self._keep('"' + " " * (end - start - 2) + '"')
        return end

    def _find(self, closing: str, opened: int, start: int) -> int:
        found = self.text.find(closing, start)
        if found < 0:
            self._doubt(opened, "a comment or a raw string that does not end")
            return len(self.text)
        return found + len(closing)

    def _broken(self, kind: str, text: str, at: int) -> int:
        """A quote that is not closed: all to the line's end is one token, of no meaning."""
        if kind == "odd":
            self._doubt(at, "a raw string with something strange before its parenthesis")
        elif _OPENS.search(text.lstrip("u8UL")[1:]):
            self._doubt(at, "a quote that is not closed before another one, or before a comment")
        self._emit(Token("punct", text, at))
        self._blank(len(text))
        return at + len(text)

    def _left_out(self) -> bool:
        """Whether some compilers may leave out what stands here, or read it as mere text."""
        return self.depth > 0 or self.current is not None

    def _token(self, kind: str, text: str, at: int) -> int:
        end = at + len(text)
        self._keep(text)
        text = _DIGRAPHS.get(text, text)
        if self.fresh and text == "#" and self.current is None:
            self.current, self.start, self.header, self.fresh = [], at, "", False
            return end
        self._emit(Token(kind, text, at))  # type: ignore[arg-type]
        if kind == "punct":
            self._look_at_punct(text, at)
        elif kind in {"number", "word"}:
            self._look_behind(text, at, end)
        if self.current is not None and len(self.current) == 1 and text in _INCLUDES:
            return self._header(end)
        return end

    def _look_at_punct(self, text: str, at: int) -> None:
        if text == "\\":
            self._doubt(at, "a backslash outside of a string")
        elif text.startswith("??") and len(text) == 3:
            self._doubt(at, "a trigraph")
        elif text in _BRACKETS:
            self._doubt(at, "brackets in digraphs")
        elif len(text) == 1 and text not in _PRINTED:
            self._doubt(at, f"the character {text!a} outside of strings and comments")

    def _look_behind(self, text: str, at: int, end: int) -> None:
        """Numbers with separators, and names before quotes, may be taken for something else."""
        behind = self.text[end : end + 1]
        if behind == '"' and text.endswith("R"):
            self._doubt(at, f"a quote directly behind {text[-20:]!r}")
        if text[0] not in "0123456789." or "'" not in text + behind:
            return
        plain = behind != "'" and _SEPARATED.fullmatch(text)
        directive = self.current[0].text if self.current else "define"
        if plain and self.depth == 0 and directive == "define":
            return
        line_end = self.text.find("\n", end)
        if _OPENS.search(self.text, end, len(self.text) if line_end < 0 else line_end):
            self._doubt(at, "a digit separator before quotes or a comment on a line that may be left out")

    def _header(self, at: int) -> int:
        """A header's name is one token: slashes and stars in it open no comment, as they do where it is left out."""
        match = _HEADER.match(self.text, at)
        if match is None:
            return at
        self.header = match[1]
        if _OPENS.search(match[1][1:-1]):
            self._doubt(at, "a header's name with quotes or comments in it")
        self._keep(match.group())
        return match.end()

    def _emit(self, token: Token) -> None:
        self.fresh = False
        (self.code if self.current is None else self.current).append(token)

    def _end_directive(self) -> None:
        if self.current is not None:
            name = self.current[0].text if self.current else ""
            self.depth = max(0, self.depth + CONDITIONS.get(name, 0))
            self.directives.append(Directive(name, tuple(self.current[1:]), self.start, self.header))
            self.current = None

    def _keep(self, text: str) -> None:
        self.plain.append(text if text.isascii() else text.encode("ascii", "replace").decode())

    def _blank(self, length: int) -> None:
        self.plain.append(" " * length)
