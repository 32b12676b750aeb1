"""Nothing of a candidate may become host code: a board's compiler makes code for the host too, of the same text.

What runs by itself there is found by how it is asked for: ``__host__`` functions, attributes that do more than tune
(``constructor``, ``section``, ``ifunc``...), and directives of an assembler, since asm outside of functions, and inside of
host functions, goes to the host's.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from kernelwright.core.attributes import KEYWORDS, NAMESPACES, attribute_faults
from kernelwright.core.lexer import Lexed, Token
from kernelwright.harness.rules.macros import definitions, parts, pasted

HOST_WORDS: Final = {
    "__host__": "a candidate is device code only: write __device__",
    **dict.fromkeys(
        ("__annotate__", "__location__", "__declspec", "__constructor__", "__destructor__", *NAMESPACES),
        "only plain attributes are allowed: remove it",
    ),
}
"""Words that no candidate needs, each with what to say."""
_PTX: Final = re.compile(
    r"reg|pred|shared|local|const|param|align|pragma|v[248]|[bsuf]\d+|f16x2|bf16x2|noftz"
)
"""What may stand in inline PTX behind a dot that begins a word."""
_DIRECTIVE: Final = re.compile(r"(?<![\w.%$\])])\.([A-Za-z_]\w*)")
_OPENING: Final = {")": "(", "]": "["}
_PRAGMA: Final = ("_Pragma", "__pragma")
_TUNING: Final = re.compile(r'"\s*(?:nv_\w+|unroll|nounroll)\b[^"]*"')


def host_code(text: Lexed, of_plan: Collection[str] = ()) -> Iterator[tuple[int, str]]:
    """Offset and reason of everything that asks for host code, as far as words and attributes tell.

    ``of_plan`` are the macros that the plan defines.
    """
    for word, offset in pasted(text, KEYWORDS):
        yield offset, f"pastes tokens that give {word!r}: only plain attributes are allowed, write them out"
    macros = definitions(text).keys() | {*of_plan}
    yield from attribute_faults(text.tokens, macros)
    for directive in text.directives:
        parameters, body = parts(directive) if directive.name == "define" else ((), directive.tokens)
        yield from attribute_faults(directive.tokens, macros | {*parameters})
        if directive.name == "define" and not _nests(body):
            yield directive.offset, "a macro with brackets that do not match: write them where they belong"
    for stream in (text.tokens, *(d.tokens for d in text.directives)):
        for index, token in enumerate(stream):
            if token.kind == "word" and token.text in _PRAGMA and not _tunes(stream[index + 1 : index + 3]):
                yield token.offset, f"{token.text} of anything but a loop's unrolling: write it as #pragma"


def _nests(body: Sequence[Token]) -> bool:
    """Whether every bracket is closed: in an attribute's arguments others would end it and begin a new one."""
    opened: list[str] = []
    for token in body:
        if token.text in {"(", "["}:
            opened.append(token.text)
        elif token.text in {")", "]"} and (not opened or opened.pop() != _OPENING[token.text]):
            return False
    return not opened


def assembler(content: str) -> str:
    """The directive in a string that is none of inline PTX; empty where there is none."""
    names = (match[1] for match in _DIRECTIVE.finditer(content))
    return next((f".{name}" for name in names if not _PTX.fullmatch(name)), "")


def _tunes(inside: Sequence[Token]) -> bool:
    return len(inside) == 2 and inside[0].text == "(" and bool(_TUNING.fullmatch(inside[1].text))
