"""What a linker would take for something of the host: a symbol's name alone can make a loader call what bears it.

Data with external linkage lies in the host's object too, bytes of machine code among them, and device functions are
there as stubs.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from kernelwright.core.lexer import Lexed, Token
from kernelwright.core.plan import CPP_KEYWORDS
from kernelwright.harness.rules.macros import pasted
from kernelwright.harness.rules.templates import declaration, device_macros

_CALLED: Final = ("__gmon_start__", "_init", "_fini")
_NAMES: Final = re.compile(
    r"__gmon_start__|_init|_fini|Py[A-Z]\w*|__cxa_\w*|__cuda[A-Z]\w*|__libc_\w*|__tls_\w*|__gxx_\w*|__dso_\w*"
)
_OF_DEVICE: Final = frozenset({"__device__", "__global__", "__shared__", "__constant__", "template"})
_ASM: Final = ("asm", "__asm", "__asm__")
_MOST: Final = 400
_BLOCKS: Final = 16
_STATEMENT: Final = frozenset({"volatile", "__volatile__", "__volatile", "goto", "inline"})
_REWRITES: Final = CPP_KEYWORDS | {"__volatile__", "asm", "__asm__", "__shared__"}


def host_symbols(text: Lexed) -> Iterator[tuple[int, str]]:
    """Offset and reason of every name and declaration that may mean something to the host's linker or loader."""
    for token in text.all_tokens:
        if token.kind == "word" and _NAMES.fullmatch(token.text):
            yield token.offset, f"{token.text!r} is a name that the host's loader may know: use another"
    for word, offset in pasted(text, (*_CALLED, "extern", "asm", "__asm__")):
        yield offset, f"pastes tokens that give {word!r}: write it out"
    for directive in text.directives:
        if (
            directive.name in {"define", "undef"}
            and directive.tokens
            and directive.tokens[0].text in _REWRITES
        ):
            yield (
                directive.offset,
                f"a macro named {directive.tokens[0].text!r} rewrites the language: remove it",
            )
    macros = device_macros(text)
    says = _OF_DEVICE | {name for name, device in macros.items() if device}
    blocks = 0
    for stream in (text.tokens, *(d.tokens for d in text.directives)):
        for index, token in enumerate(stream):
            if token.kind != "word":
                continue
            blocks += [t.text for t in stream[index : index + 3 : 2]] == ["extern", "{"]
            if blocks > _BLOCKS:
                yield token.offset, f"more than {_BLOCKS} blocks of extern: put kernels into one"
                return
            if token.text == "extern" and not _is_device(stream, index, says):
                yield (
                    token.offset,
                    "extern of what is not device code: write __device__ or __global__ behind it",
                )
            elif token.text in _ASM and _labels(stream, index):
                yield (
                    token.offset,
                    "asm that may name a symbol of the host: write asm volatile",
                )


def _is_device(stream: Sequence[Token], index: int, says: frozenset[str]) -> bool:
    if index and stream[index - 1].text in says:
        return True
    at = index + 1
    if at < len(stream) and stream[at].kind == "string":
        at += 1
        if [t.text for t in stream[at : at + 1]] == ["{"]:
            return all(_says(stream, start, says) for start in _members(stream, at))
    return _says(stream, at, says)


def _says(stream: Sequence[Token], at: int, says: frozenset[str]) -> bool:
    words, _ = declaration(stream, at)
    return any(word in says for word in words)


def _members(stream: Sequence[Token], at: int) -> Iterator[int]:
    """Where declarations begin in the braces at ``at``."""
    depth, begins = 0, False
    for index in range(at, len(stream)):
        text = stream[index].text
        if begins and depth == 1 and text not in {"}", ";"}:
            yield index
        begins = False
        depth += (text == "{") - (text == "}")
        begins = depth == 1 and text in {"{", "}", ";"}
        if depth == 0:
            return


def _labels(stream: Sequence[Token], index: int) -> bool:
    """Whether ``asm`` is one of ``f() asm("name")``, or may be by a macro: an instruction is a statement, or has operands."""
    behind = stream[index + 1 : index + _MOST]
    if not behind or behind[0].text != "(":
        return not behind or behind[0].text not in _STATEMENT
    inside = list(takewhile(lambda token: token.kind in {"string", "word"}, behind[1:]))
    closing = behind[len(inside) + 1 : len(inside) + 2]
    if closing and closing[0].text != ")":
        return False
    before = stream[index - 1].text if index else ";"
    return before not in {";", "{", "}", ":", "else", "do"} or any(token.kind == "word" for token in inside)
