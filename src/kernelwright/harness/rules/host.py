"""Nothing of a candidate may become host code: a board's compiler makes code for the host too, of the same text.

What runs by itself there is found by how it is asked for: ``__host__`` functions, attributes that do more than tune
(``constructor``, ``section``, ``ifunc``...), and directives of an assembler, since asm outside of functions, and inside of
host functions, goes to the host's.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kernelwright.core.lexer import Lexed, Token

HOST_WORDS: Final = {
    "__host__": "a candidate is device code only: write __device__",
    **dict.fromkeys(
        ("__annotate__", "__location__", "__declspec", "__constructor__", "__destructor__"),
        "only plain attributes are allowed: remove it",
    ),
}
"""Words that no candidate needs, each with what to say."""
_ATTRIBUTE: Final = ("__attribute__", "__attribute")
_PLAIN: Final = re.compile(
    r"aligned|packed|unused|always_inline|noinline|pure|const|may_alias|vector_size|nothrow|noreturn|hot|cold|flatten"
    r"|fallthrough|deprecated|warn_unused_result|nodiscard|maybe_unused|likely|unlikely|no_unique_address"
    r"|nv|launch_bounds|maxnreg|block_size|cluster_dims"
)
_PTX: Final = re.compile(
    r"reg|pred|shared|local|const|param|align|pragma|v[248]|[bsuf]\d+|f16x2|bf16x2|noftz"
)
"""What may stand in inline PTX behind a dot that begins a word."""
_DIRECTIVE: Final = re.compile(r"(?<![\w.%$\])])\.([A-Za-z_]\w*)")
_PRAGMA: Final = ("_Pragma", "__pragma")
_TUNING: Final = re.compile(r'"\s*(?:nv_\w+|unroll|nounroll)\b[^"]*"')


def host_code(text: Lexed) -> Iterator[tuple[int, str]]:
    """Offset and reason of everything that asks for host code, as far as words and attributes tell."""
    for stream in (text.tokens, *(d.tokens for d in text.directives)):
        for index, token in enumerate(stream):
            if token.kind == "word" and token.text in _ATTRIBUTE:
                fault = _fault(stream, index + 1, "(", ")")
                if fault is not None:
                    yield token.offset, f"{token.text}{fault}: remove it"
            elif token.text == "[" and _opens(stream, index, "[", "["):
                fault = _fault(stream, index, "[", "]")
                if fault is not None and _is_word(stream, index + 2):
                    yield token.offset, f"the attribute{fault}: remove it"
            elif _opens(stream, index, "<", ":") and _opens(stream, index + 2, "<", ":"):
                yield token.offset, "an attribute in digraphs: remove it"
            elif token.kind == "word" and token.text in _PRAGMA and not _tunes(stream[index + 1 : index + 3]):
                yield token.offset, f"{token.text} of anything but a loop's unrolling: write it as #pragma"


def assembler(content: str) -> str:
    """The directive in a string that is none of inline PTX; empty where there is none."""
    names = (match[1] for match in _DIRECTIVE.finditer(content))
    return next((f".{name}" for name in names if not _PTX.fullmatch(name)), "")


def _fault(stream: Sequence[Token], at: int, opening: str, closing: str) -> str | None:
    """What is wrong with the attribute whose two brackets begin at ``at``; ``None`` for a plain one."""
    inner = at + 2
    if [t.text for t in stream[at:inner]] != [opening] * 2:
        return " that cannot be read"
    expects_name, depth = True, 0
    for token in stream[inner:]:
        if depth == 0 and token.text == closing:
            return None
        if depth == 0 and expects_name and token.kind == "word":
            if not _PLAIN.fullmatch(token.text.strip("_")):
                return f" {token.text!r} is not allowed"
            expects_name = False
        elif depth == 0 and token.text in {",", "::"}:
            expects_name = True
        elif token.text in {"(", ")"}:
            depth += 1 if token.text == "(" else -1
        elif depth == 0:
            return " that cannot be read"
    return " that cannot be read"


def _tunes(inside: Sequence[Token]) -> bool:
    return len(inside) == 2 and inside[0].text == "(" and bool(_TUNING.fullmatch(inside[1].text))


def _opens(stream: Sequence[Token], index: int, first: str, second: str) -> bool:
    """Whether two tokens stand side by side."""
    pair = stream[index : index + 2]
    return [t.text for t in pair] == [first, second] and pair[1].offset == pair[0].offset + 1


def _is_word(stream: Sequence[Token], index: int) -> bool:
    return index < len(stream) and stream[index].kind == "word"
