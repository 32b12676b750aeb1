"""What strings of a source say to a compiler: inline PTX stands in them, whatever macros hide the ``asm``."""

import re
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Final

from kernelwright.core.lexer import CONDITIONS, Lexed, Token, lex
from kernelwright.harness.rules.expand import MOST_TOKENS, expand
from kernelwright.harness.rules.macros import definitions, holding, pieces_of

_MOST_CHOICES: Final = 32
_ESCAPE: Final = re.compile(
    r"\\(?:x(?P<hex>[\da-fA-F]+)|(?P<octal>[0-7]{1,3})|(?:u(?P<short>[\da-fA-F]{4})|U(?P<long>[\da-fA-F]{8}))|(.))",
    re.DOTALL | re.ASCII,
)
_UNCLEAR: Final = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:[oxuN]\{|[uUx](?![\da-fA-F])))")
_RAW: Final = re.compile(r'(?:u8|[uUL])?R"(\w{0,16})\((.*)\)\1"\Z', re.DOTALL)


def joined(text: Lexed) -> Iterator[tuple[int, str]]:
    """Contents of strings with their offset; neighbours are one string."""
    for stream in (text.tokens, *(d.tokens for d in text.directives)):
        parts: list[Token] = []
        for token in stream:
            # Words between strings may be macros that expand to strings: their texts stay neighbours.
            if token.kind == "string":
                parts.append(token)
            elif token.kind != "word" and parts:
                yield parts[0].offset, "".join(map(content, parts))
                parts = []
        if parts:
            yield parts[0].offset, "".join(map(content, parts))


def made(text: Lexed) -> Iterator[tuple[int, str]]:
    """Contents of strings that macros make, by ``#`` or of parts: for every choice of definitions that conditions leave.

    Raises TimeoutError where that is too much to be looked at.
    """
    macros = definitions(text)
    making = holding(macros, lambda token: token.text == "#" or token.kind == "string")
    if not making:
        return
    parts = making.keys() | pieces_of(text, macros, holding(macros, lambda token: token.text == "#"))
    doubtful = sorted(parts & _several(text))
    choices = [(None, *macros.get(name, ())) for name in doubtful]
    count = prod(map(len, choices))
    if count > _MOST_CHOICES:
        raise TimeoutError
    for chosen in product(*choices):
        expanded = expand(
            text, (), dict(zip(doubtful, chosen, strict=True)), most=2 * MOST_TOKENS // (count + 1)
        )
        for offset, found in joined(lex(expanded.plain)):
            yield expanded.origin(offset), found


def _several(text: Lexed) -> frozenset[str]:
    """Macros whose definition depends on a condition or on the place."""
    found: set[str] = set()
    seen: set[str] = set()
    depth = 0
    for directive in text.directives:
        depth += CONDITIONS.get(directive.name, 0)
        if directive.name in {"define", "undef"} and directive.tokens:
            name = directive.tokens[0].text
            if depth > 0 or name in seen:
                found.add(name)
            seen.add(name)
    return frozenset(found)


def unclear(token: Token) -> str:
    """An escape that is one for some compilers only, with a number in braces; empty where there is none."""
    found = None if _RAW.match(token.text) else _UNCLEAR.search(token.text)
    return found[1] if found else ""


def content(token: Token) -> str:
    """What a string holds, without its quotes and escapes."""
    if match := _RAW.match(token.text):
        return match[2]
    inner = token.text[token.text.find('"') + 1 : -1]
    return _ESCAPE.sub(_unescape, inner) if "\\" in inner else inner


def _unescape(match: re.Match[str]) -> str:
    if number := match["hex"] or match["octal"]:
        return chr(int(number, 16 if match["hex"] else 8) & 0xFF)  # what is too large is cut to a byte
    if point := match["short"] or match["long"]:
        return chr(min(int(point, 16), 0x10FFFF))
    return {"n": "\n", "t": "\t"}.get(match[5], match[5])
