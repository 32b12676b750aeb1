"""First values of the host's constants: what NVRTC finds constant may be a call for nvcc, where a header's macro differs."""

from collections.abc import Iterator, Sequence
from typing import Final

from kernelwright.core.lexer import Lexed, Token
from kernelwright.harness.rules.templates import TAKES, device_macros

_SCOPES: Final = frozenset({"namespace", "struct", "class", "union"})
_DEVICE: Final = frozenset(
    {"__device__", "__global__", "__constant__", "__shared__", "constexpr", "using", "enum", "static_assert"}
)
_HELD: Final = frozenset({"const", "static", "inline", "extern", "auto"})
_CASTS: Final = frozenset(
    [
        "sizeof",
        "alignof",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "unsigned",
        "signed",
        "float",
        "double",
        "size_t",
    ]
)
_CHANGES: Final = frozenset({"=", "-=", "new", "delete", "throw"})
_PAIRS: Final = {"(": ")", "{": "}", "[": "]"}


def host_values(text: Lexed) -> Iterator[tuple[int, str]]:
    """Offset and reason of every constant outside of functions that is neither ``constexpr`` nor free of calls."""
    device = {name for name, says in device_macros(text).items() if says}
    calling = _calling(text)
    tokens, at = text.tokens, 0
    while at < len(tokens):
        begin, words = at, []
        while at < len(tokens) and tokens[at].text not in {"(", "{", "}", ";", "="}:
            words += [tokens[at].text] if tokens[at].kind == "word" else []
            at += 1
            if at < len(tokens) and tokens[at].text == "(" and words and words[-1] in TAKES:
                at = _behind(tokens, at)
        ending = tokens[at].text if at < len(tokens) else ""
        is_block = len(tokens[begin:at]) == 2 and words == ["extern"]
        if (
            ending == "{"
            and (is_block or _SCOPES & set(words))
            and not _HELD & set(words) - {"inline", "extern"}
        ):
            at += 1
            continue
        if ending in {"", "}", ";"}:
            at += 1
            continue
        end = _statement(tokens, at)
        if (
            not (_DEVICE | device) & set(words)
            and _HELD & set(words)
            and _calls(tokens[at + 1 : end], calling)
        ):
            yield tokens[begin].offset, "a constant whose value calls or changes something: write constexpr"
        at = end


def _calling(text: Lexed) -> frozenset[str]:
    """Macros that may stand for a call."""
    users: dict[str, list[str]] = {}
    todo = []
    for directive in (d for d in text.directives if d.name == "define" and d.tokens):
        name, *value = directive.tokens
        todo += [name.text] if _calls(value, frozenset()) else []
        for token in value:
            users.setdefault(token.text, []).append(name.text)
    found: set[str] = set()
    while todo:
        name_ = todo.pop()
        if name_ not in found:
            found.add(name_)
            todo.extend(users.get(name_, ()))
    return frozenset(found)


def _calls(tokens: Sequence[Token], calling: frozenset[str]) -> bool:
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        if token.text in _CHANGES or token.text in calling:
            return True
        if [t.text for t in tokens[index : index + 2]] in (["+", "+"], ["-", "-"]):
            return True
        if token.text in {"(", "{"} and before and before.kind == "word" and before.text not in _CASTS:
            return True
        if token.text == "(" and before and before.text in {")", "]", ">"}:
            return True
    return False


def _statement(tokens: Sequence[Token], at: int) -> int:
    """The index behind a declaration: its ``;``, or a body."""
    while at < len(tokens):
        text = tokens[at].text
        if text == ";":
            return at + 1
        at = _behind(tokens, at) if text in _PAIRS else at + 1
        if text == "{" and (at >= len(tokens) or tokens[at].text not in {";", ","}):
            return at
    return at


def _behind(tokens: Sequence[Token], at: int) -> int:
    opening, closing, depth = tokens[at].text, _PAIRS[tokens[at].text], 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].text == opening) - (tokens[index].text == closing)
        if depth == 0:
            return index + 1
    return len(tokens)
