"""A source with its own macros expanded, as far as the text itself tells: what an evaluation of it can be made of.

Conditions are not followed: of several definitions the one before the use holds. Macros of the plan stay names.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kernelwright.core.lexer import Directive, Lexed, Token
from kernelwright.harness.rules.macros import takes_arguments

_MOST_TOKENS: Final = 400_000
"""Tokens looked at for one text; one of the largest size allowed has some 100000."""


@dataclass(frozen=True)
class Expanded:
    """Text and, for the start of every token in it, the offset in the original."""

    plain: str
    starts: list[int]
    origins: list[int]

    def origin(self, offset: int) -> int:
        """Where in the original stands what is at ``offset`` here."""
        at = bisect_right(self.starts, offset) - 1
        return self.origins[at] if at >= 0 else 0


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    origin: int
    glued: bool
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Macro:
    parameters: tuple[str, ...] | None
    body: tuple[_Piece, ...]


def expand(text: Lexed, kept: Collection[str]) -> Expanded:
    """The text without directives and with every macro's use replaced, but for the names ``kept``.

    Raises TimeoutError for a text that grows too much.
    """
    macros: dict[str, _Macro] = {}
    directives = [d for d in text.directives if d.name in {"define", "undef"} and d.tokens]
    plain, starts, origins, length = [], [], [], 0
    code = _Code(text.tokens, macros)
    for directive in (*directives, None):
        for piece in code.until(directive.offset if directive else None):
            part = piece.text if piece.glued else " " + piece.text
            starts.append(length + (not piece.glued))
            origins.append(piece.origin)
            plain.append(part)
            length += len(part)
        if directive and directive.tokens[0].text not in kept:
            _define(directive, macros)
    return Expanded("".join(plain), starts, origins)


def _define(directive: Directive, macros: dict[str, _Macro]) -> None:
    name, *rest = directive.tokens
    macros.pop(name.text, None)
    if directive.name == "undef":
        return
    parameters = None
    if takes_arguments(directive):
        end = next((i for i, token in enumerate(rest) if token.text == ")"), len(rest))
        words = [t.text for t in rest[:end] if t.kind == "word"]
        variadic = any(t.text == "." for t in rest[:end])
        parameters = (*words, *(["__VA_ARGS__"] if variadic else []))
        rest = rest[end + 1 :]
    macros[name.text] = _Macro(parameters, tuple(_pieces(rest)))


def _pieces(tokens: Sequence[Token]) -> Iterator[_Piece]:
    end = -1
    for token in tokens:
        yield _Piece(token.text, token.offset, token.offset == end)
        end = token.offset + len(token.text)


class _Code:
    def __init__(self, tokens: Sequence[Token], macros: dict[str, _Macro]) -> None:
        self.todo = list(_pieces(tokens))[::-1]
        self.macros = macros
        self.left = _MOST_TOKENS

    def until(self, offset: int | None) -> Iterator[_Piece]:
        """What the tokens before ``offset`` become."""
        while self.todo and (offset is None or self.todo[-1].origin < offset):
            self.left -= 1
            if self.left < 0:
                raise TimeoutError
            piece = self.todo.pop()
            macro = self.macros.get(piece.text)
            body = self._use(macro, piece) if macro and piece.text not in piece.hidden else None
            if body is None:
                yield piece
            else:
                self.todo.extend(reversed(body))

    def _use(self, macro: _Macro, use: _Piece) -> list[_Piece] | None:
        hidden = use.hidden | {use.text}
        given: dict[str, list[_Piece]] = {}
        if macro.parameters is not None:
            if not self.todo or self.todo[-1].text != "(":
                return None
            arguments = self._arguments()
            names = macro.parameters
            if names[-1:] == ("__VA_ARGS__",):
                given["__VA_ARGS__"] = [p for argument in arguments[len(names) - 1 :] for p in argument]
            given |= dict(zip(names, arguments, strict=False))
        body: list[_Piece] = []
        for piece in macro.body:
            if piece.text in given:
                body += given[piece.text]
            else:
                body.append(_Piece(piece.text, use.origin, piece.glued, hidden))
            self.left -= 1 + len(given.get(piece.text, ()))
        return _pasted(body)

    def _arguments(self) -> list[list[_Piece]]:
        self.todo.pop()
        found: list[list[_Piece]] = [[]]
        depth = 0
        while self.todo:
            piece = self.todo.pop()
            if depth == 0 and piece.text in {")", ","}:
                if piece.text == ")":
                    break
                found.append([])
                continue
            depth += (piece.text in {"(", "[", "{"}) - (piece.text in {")", "]", "}"})
            found[-1].append(piece)
        return found


def _pasted(body: list[_Piece]) -> list[_Piece]:
    """A body in which ``a ## b`` is one token."""
    if not any(piece.text == "##" for piece in body):
        return body
    found: list[_Piece] = []
    for before, piece in pairwise([_Piece("", 0, glued=False), *body]):
        if piece.text == "##":
            continue
        if before.text == "##" and found:
            last = found.pop()
            piece = _Piece(last.text + piece.text, last.origin, last.glued, last.hidden)  # noqa: PLW2901
        found.append(piece)
    return found
