"""Templates of variables: NVRTC looks at no initial value of theirs, nvcc computes it on the host at loading.

So what a template declares is a class, a name of a type, or says ``__device__``, ``__global__`` or ``constexpr``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kernelwright.core.lexer import Directive, Lexed, Token
from kernelwright.harness.rules.macros import pasted, takes_arguments

_SAYS: Final = frozenset({"__device__", "__global__", "__constant__", "constexpr"})
_CLASS: Final = frozenset({"struct", "class", "union"})
_OTHER: Final = frozenset({"using", "concept", "template"})
_TYPES: Final = frozenset(
    {"void", "bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double"}
)
TAKES: Final = frozenset(
    [
        "__launch_bounds__",
        "__attribute__",
        "__attribute",
        "alignas",
        "__align__",
        "decltype",
        "explicit",
        "noexcept",
        "__cluster_dims__",
        "__block_size__",
        "__maxnreg__",
        "__builtin_align__",
    ]
)
_LONGEST: Final = 400
"""Tokens of a declaration's head; more are not looked through, and refused."""
_WHAT: Final = (
    "a template of a variable may run code on the host: write constexpr, or __device__ before its name"
)


def host_templates(text: Lexed) -> Iterator[tuple[int, str]]:
    """Offset and reason of every template that may declare a variable of the host."""
    for directive in _defines(text):
        if directive.tokens[0].text in _SAYS | _CLASS | _OTHER:
            yield (
                directive.offset,
                f"a macro named {directive.tokens[0].text!r} rewrites the language: remove it",
            )
    for word, offset in pasted(text, ("template",)):
        yield offset, f"pastes tokens that give {word!r}: write it out"
    macros = device_macros(text)
    for token in _declared(text.tokens, macros, written=True):
        yield token.offset, _WHAT
    for directive in text.directives:
        for token in _declared(directive.tokens, macros, written=False):
            yield token.offset, _WHAT


def _defines(text: Lexed) -> list[Directive]:
    return [d for d in text.directives if d.name in {"define", "undef"} and d.tokens]


def device_macros(text: Lexed) -> dict[str, bool]:
    """The text's macros, and whether all that they may stand for says that it is device code."""
    defines = _defines(text)
    names = {directive.tokens[0].text for directive in defines}
    found = dict.fromkeys(names, True)
    for directive in defines:
        name, *value = directive.tokens
        depth, says = 0, directive.name == "undef"
        for token in value:
            depth += (token.text == "(") - (token.text == ")")
            says |= depth == 0 and token.text in _SAYS
        found[name.text] &= (
            says and not takes_arguments(directive) and not any(token.text in names for token in value)
        )
    return found


def _declared(stream: Sequence[Token], macros: Mapping[str, bool], *, written: bool) -> Iterator[Token]:
    """Every ``template`` behind which no device code is declared; an instantiation is not ``written`` in macros."""
    for index, token in enumerate(stream):
        if token.text != "template" or token.kind != "word" or _is_part(stream, index):
            continue
        if [t.text for t in stream[index + 1 : index + 2]] == ["<"]:
            good = _is_device(*declaration(stream, behind_angles(stream, index + 1)), macros)
        else:
            words, ending = declaration(stream, index + 1)
            good = written and bool(ending) and bool(words) and words[0] in _CLASS | _SAYS | _TYPES
        if not good:
            yield token


def _is_part(stream: Sequence[Token], index: int) -> bool:
    """``x.template f<1>()``, and a template as a template's parameter."""
    before = stream[index - 1].text if index else ""
    if before in {".", "->", "::"}:
        return True
    depth = 1
    for at in range(index - 1, max(0, index - _LONGEST), -1):
        text = stream[at].text
        if text in {"(", "{", ";"}:
            return False
        depth += (text == ">") + 2 * (text == ">>") - (text == "<")
        if depth == 0:
            return stream[at - 1].text == "template"
    return False


def _is_device(words: Sequence[str], ending: str, macros: Mapping[str, bool]) -> bool:
    if not ending or not words:
        return False
    if words[0] in _CLASS:
        names = [word for word in words[1:] if word != "final" and word not in TAKES]
        return ending in {"{", ":", ";"} and len(names) == 1 and names[0] not in macros
    friend = words[0] == "friend" and words[1:2] and words[1] in _CLASS and ending == ";"
    return words[0] in _OTHER or bool(friend) or any(w in _SAYS or macros.get(w, False) for w in words)


def behind_angles(stream: Sequence[Token], at: int) -> int:
    """The index behind ``<...>``; the end where it does not close before a statement does."""
    depth = nested = 0
    for index in range(at, min(len(stream), at + _LONGEST)):
        text = stream[index].text
        if text in {";", "{", "}"}:
            break
        nested += (text in {"(", "["}) - (text in {")", "]"})
        if nested == 0:
            depth += (text == "<") - (text == ">") - 2 * (text == ">>")
            if depth <= 0:
                return index + 1
    return len(stream)


def declaration(stream: Sequence[Token], at: int) -> tuple[list[str], str]:
    """Words of a declaration before its body, arguments or value, and what ends them; nothing where that is unclear."""
    words: list[str] = []
    index = at
    while index < min(len(stream), at + _LONGEST):
        token = stream[index]
        if token.text == "(" and words and words[-1] in TAKES:
            index = _behind_parentheses(stream, index)
            continue
        if token.text == "<" and words:
            index = behind_angles(stream, index)
            continue
        if token.text == "::" and words[:1] and words[0] in _CLASS and stream[index - 1].kind == "word":
            words.pop()
        elif token.text in {"(", "{", ";", "=", ":"}:
            return words, token.text
        elif token.text in {",", ")", "}"}:
            break
        elif token.kind == "word":
            words.append(token.text)
        index += 1
    return words, ""


def _behind_parentheses(stream: Sequence[Token], at: int) -> int:
    depth = 0
    for index in range(at, min(len(stream), at + _LONGEST)):
        depth += (stream[index].text == "(") - (stream[index].text == ")")
        if depth == 0:
            return index + 1
    return len(stream)
