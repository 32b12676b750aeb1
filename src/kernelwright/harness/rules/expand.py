"""A source with its own macros expanded, as far as the text itself tells: what an evaluation of it can be made of.

Conditions are not followed: of several definitions the one before the use holds, or one that is given. Macros of the
plan stay names.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from kernelwright.core.lexer import Directive, Lexed, Token
from kernelwright.harness.rules.macros import takes_arguments

MOST_TOKENS: Final = 400_000
"""Tokens looked at for one text; one of the largest size allowed has some 100000."""
_DEEPEST: Final = 60
"""Uses of macros in arguments of others."""


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
    tight: bool = False
    """Whether a text made of it has no space before it; what is glued has none either."""


@dataclass(frozen=True)
class _Macro:
    parameters: tuple[str, ...] | None
    body: tuple[_Piece, ...]
    variadic: bool = False


_ANY: Final = _Piece("__VA_ARGS__", 0, glued=False)
_OPTIONAL: Final = _Macro((_ANY.text,), (_ANY,), variadic=True)
"""``__VA_OPT__``, as if there were arguments."""


def expand(
    text: Lexed,
    kept: Collection[str],
    given: Mapping[str, Directive | None] | None = None,
    most: int = MOST_TOKENS,
) -> Expanded:
    """The text without directives and with every macro's use replaced, but for the names ``kept``.

    What is ``given`` holds everywhere, whatever the text says. Raises TimeoutError for a text that grows beyond ``most`` tokens.
    """
    macros: dict[str, _Macro] = {"__VA_OPT__": _OPTIONAL}
    given = given or {}
    for definition in filter(None, given.values()):
        _define(definition, macros)
    kept = {*kept, *given}
    directives = [d for d in text.directives if d.name in {"define", "undef"} and d.tokens]
    plain, starts, origins, length = [], [], [], 0
    code = _Code(list(_pieces(text.tokens)), macros, most)
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
    parameters, variadic = None, False
    if takes_arguments(directive):
        end = next((i for i, token in enumerate(rest) if token.text == ")"), len(rest))
        dots = next((i for i, token in enumerate(rest[:end]) if token.text == "."), 0)
        words = [token.text for token in rest[:end] if token.kind == "word"]
        if dots and rest[dots - 1].kind != "word":
            words.append("__VA_ARGS__")
        parameters, variadic = tuple(words), dots > 0
        rest = rest[end + 1 :]
    macros[name.text] = _Macro(parameters, tuple(_pieces(rest)), variadic)


def _pieces(tokens: Sequence[Token]) -> Iterator[_Piece]:
    end = -1
    for token in tokens:
        glued = token.offset == end
        yield _Piece(token.text, token.offset, glued, tight=glued)
        end = token.offset + len(token.text)


class _Code:
    def __init__(
        self, pieces: Sequence[_Piece], macros: dict[str, _Macro], left: int, depth: int = 0
    ) -> None:
        self.todo = list(pieces)[::-1]
        self.macros = macros
        self.left = left
        self.depth = depth

    def until(self, offset: int | None) -> Iterator[_Piece]:
        """What the tokens before ``offset`` become."""
        while self.todo and (offset is None or self.todo[-1].origin < offset):
            self.left -= 1
            if self.left < 0 or self.depth > _DEEPEST:
                raise TimeoutError
            piece = self.todo.pop()
            macro = self.macros.get(piece.text)
            body = self._use(macro, piece) if macro and piece.text not in piece.hidden else None
            if body is None:
                yield piece
            else:
                self.todo.extend(reversed(body))

    def _use(self, macro: _Macro, use: _Piece) -> list[_Piece] | None:
        given: dict[str, list[_Piece]] = {}
        if macro.parameters is not None:
            if not self.todo or self.todo[-1].text != "(":
                return None
            arguments = self._arguments()
            names = macro.parameters
            given = dict(zip(names, arguments, strict=False))
            if macro.variadic:
                given[names[-1]] = _listed(arguments[len(names) - 1 :], use)
        body = _pasted(list(self._filled(macro, use, given)))
        return [replace(piece, tight=use.tight) if index == 0 else piece for index, piece in enumerate(body)]

    def _filled(self, macro: _Macro, use: _Piece, given: Mapping[str, list[_Piece]]) -> Iterator[_Piece]:
        """A body with its arguments: expanded ones, but beside ``##``, and as texts behind ``#``."""
        hidden = use.hidden | {use.text}
        empty = _Piece("", 0, glued=False)
        around = [empty, *macro.body, empty]
        for before, piece, behind in zip(around, around[1:], around[2:], strict=False):
            argument = given.get(piece.text)
            self.left -= 1 + len(argument or ())
            if argument is not None and before.text == "#":
                yield replace(
                    piece, text=_quoted(argument), origin=use.origin, glued=False, tight=before.tight
                )
            elif argument is not None:
                raw = "##" in {before.text, behind.text}
                filled = (argument or [empty]) if raw else self._expanded(argument)
                yield from (replace(each, glued=False, tight=piece.tight) for each in filled[:1])
                yield from filled[1:]
            elif piece.text != "#" or behind.text not in given:
                yield replace(piece, origin=use.origin, hidden=hidden)

    def _expanded(self, argument: list[_Piece]) -> list[_Piece]:
        inner = _Code(argument, self.macros, self.left, self.depth + 1)
        found = list(inner.until(None))
        self.left = inner.left
        return found

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


def _listed(arguments: list[list[_Piece]], use: _Piece) -> list[_Piece]:
    """Arguments with the commas between them."""
    comma = _Piece(",", use.origin, glued=True, tight=True)
    return [piece for index, argument in enumerate(arguments) for piece in ([comma] * (index > 0) + argument)]


def _quoted(pieces: Sequence[_Piece]) -> str:
    """The text that ``#`` makes."""
    text = "".join(piece.text if piece.tight else " " + piece.text for piece in pieces).strip()
    return '"' + re.sub(r'[\\"]', r"\\\g<0>", text).replace("\n", "\\n") + '"'


def _pasted(body: list[_Piece]) -> list[_Piece]:
    """A body in which ``a ## b`` is one token."""
    found: list[_Piece] = []
    for before, piece in pairwise([_Piece("", 0, glued=False), *body]):
        if piece.text == "##":
            continue
        if before.text == "##" and found:
            last = found.pop()
            piece = replace(last, text=last.text + piece.text)  # noqa: PLW2901
        found.append(piece)
    return [piece for piece in found if piece.text]
