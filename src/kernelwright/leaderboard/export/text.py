"""A candidate's device code as a board may have it: without comments, without banned words, alike to all compilers.

A board's compiler (nvcc) also compiles for the host. What NVRTC compiled holds no host code, as long as both see the
same text: so nothing in it may depend on the compiler.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from kernelwright.core.compilers import ALIKE, COMPILERS
from kernelwright.core.errors import PlanError
from kernelwright.core.lexer import Directive, Lexed, Token, lex
from kernelwright.leaderboard.kernelbot.facts import BANNED

ARCH_MACRO: Final = "KERNELWRIGHT_ARCH"
"""Stands for ``__CUDA_ARCH__``, which nvcc's pass for the host lacks."""
_BANNED: Final = re.compile(BANNED, re.IGNORECASE)
_FOREIGN: Final = re.compile(r"(?:cuda|cu[A-Z]|CU_|__cu|nv)\w*")


@dataclass(frozen=True)
class DeviceCode:
    """``headers`` as they stand in the includes; ``words`` are all names that the code uses, ``defined`` its macros."""

    headers: tuple[str, ...]
    text: str
    words: frozenset[str]
    defined: tuple[str, ...]


class Renames(dict[str, str]):
    """Every name that has the banned word, and its new name; other names stay. Distinct names stay distinct."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        every = set(names)
        for name in sorted(n for n in every if _BANNED.search(n)):
            new = _BANNED.sub(_without, name)
            while new in every or new in self.values():
                new += "_"
            self[name] = new

    def __missing__(self, name: str) -> str:
        return name


def _without(match: re.Match[str]) -> str:
    found = match.group()
    return "STRM" if found.isupper() else "Strm" if found[0].isupper() else "strm"


def words_of(body: str) -> frozenset[str]:
    """All names in a source."""
    return frozenset(token.text for token in lex(body).all_tokens if token.kind == "word")


def device_code(
    body: str, macros: Iterable[str], renames: Mapping[str, str], origin: str, first_line: int = 1
) -> DeviceCode:
    """The source behind the plan, ready for a board; ``macros`` are the names that the plan defines.

    It begins in line ``first_line`` of the file. Raises PlanError with the line for what cannot be exported.
    """
    lexed = lex(body)
    try:
        _check(lexed, frozenset(macros))
    except _Refused as refused:
        line = lexed.line(refused.offset) + first_line - 1
        raise PlanError(str(refused), origin, line) from None
    characters = list(lexed.plain)
    for token in lexed.all_tokens:
        if token.kind in {"word", "string", "char"}:
            new = ARCH_MACRO if token.text == "__CUDA_ARCH__" else token.text
            new = renames[new] if token.kind == "word" else new
            characters[token.offset : token.offset + len(token.text)] = [new] + [""] * (len(token.text) - 1)
    hoisted = list(_outer_includes(lexed))
    for directive in hoisted:
        end = lexed.plain.find("\n", directive.offset)
        for at in range(directive.offset, len(characters) if end < 0 else end):
            characters[at] = ""
    headers = tuple(dict.fromkeys(directive.header for directive in hoisted))
    defined = dict.fromkeys(
        renames[d.tokens[0].text] for d in lexed.directives if d.name == "define" and d.tokens
    )
    return DeviceCode(headers, _tidy("".join(characters)), words_of(body), tuple(defined))


class _Refused(Exception):  # noqa: N818 - reads as what happened; becomes a PlanError with the line
    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset


def _check(lexed: Lexed, macros: frozenset[str]) -> None:
    if lexed.doubt:
        raise _Refused(
            lexed.doubt[0], f"{lexed.doubt[1]}, which compilers read differently: write it plainly"
        )
    for token in lexed.all_tokens:
        _check_token(token)
    own = set(macros)
    for index, directive in enumerate(lexed.directives):
        if directive.name in {"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef"}:
            _check_condition(directive, own, _following(lexed, index))
        elif directive.name == "define" and directive.tokens:
            own.add(directive.tokens[0].text)
        elif _BANNED.search(directive.header):
            raise _Refused(directive.offset, f"boards refuse the header {directive.header}: do without it")


def _check_token(token: Token) -> None:
    if token.kind == "word" and token.text != "__CUDA_ARCH__" and COMPILERS.fullmatch(token.text):
        raise _Refused(token.offset, f"{token.text} depends on the compiler: do without it")
    if not _BANNED.search(token.text):
        return
    if token.kind != "word" or _FOREIGN.fullmatch(token.text):
        shown = token.text[:60]
        raise _Refused(token.offset, f"boards refuse the word {BANNED!r}, here in {shown!r}: do without it")


def _check_condition(directive: Directive, own: AbstractSet[str], following: str) -> None:
    """A condition may ask for what all compilers answer alike, or guard a definition of the same name."""
    words = [token.text for token in directive.tokens if token.kind == "word"]
    if directive.name == "ifndef" and words == [following]:
        return
    for word in words:
        if word not in own and word not in ALIKE:
            what = f"the condition asks for {word!r}, which compilers may answer differently: do without it"
            raise _Refused(directive.offset, what)


def _following(lexed: Lexed, index: int) -> str:
    """The name that the next directive defines, if it does."""
    after = lexed.directives[index + 1 : index + 2]
    return after[0].tokens[0].text if after and after[0].name == "define" and after[0].tokens else ""


def _outer_includes(lexed: Lexed) -> Iterator[Directive]:
    """Includes under no condition."""
    depth = 0
    for directive in lexed.directives:
        if directive.name in {"if", "ifdef", "ifndef"}:
            depth += 1
        elif directive.name == "endif":
            depth -= 1
        elif directive.name == "include" and depth == 0 and directive.header:
            yield directive


def _tidy(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
    return "\n".join(kept).strip("\n") + "\n"
