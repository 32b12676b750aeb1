"""Attributes in a source: those of a candidate do no more than tune.

Others make host code that runs by itself (``constructor``, ``section``, ``ifunc``...), or switch off what watches a
kernel (``no_sanitize``). Looked at where they are written, and again where macros have been expanded.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from kernelwright.core.lexer import Token

KEYWORDS: Final = ("__attribute__", "__attribute")
NAMESPACES: Final = ("gnu", "__gnu__", "clang", "_Clang", "msvc")
"""Without these words no attribute in brackets does more than the standard's."""
_PLAIN: Final = re.compile(
    r"aligned|packed|unused|always_inline|noinline|pure|const|may_alias|vector_size|nothrow|noreturn|hot|cold|flatten"
    r"|fallthrough|deprecated|warn_unused_result|nodiscard|maybe_unused|likely|unlikely|no_unique_address"
    r"|nv|launch_bounds|maxnreg|block_size|cluster_dims"
)


def attribute_faults(
    stream: Sequence[Token], macros: Collection[str] = (), more: Collection[str] = ()
) -> Iterator[tuple[int, str]]:
    """Offset and reason of every attribute that is not plain.

    ``macros`` are words that may become others; ``more`` are attributes that are allowed as well.
    """
    for index, token in enumerate(stream):
        if token.kind == "word" and token.text in KEYWORDS:
            fault = _fault(stream, index + 1, "()", macros, more)
            if fault:
                yield token.offset, f"{token.text}{fault}: remove it"
        elif [t.text for t in stream[index : index + 2]] == ["[", "["] and _is_word(stream, index + 2):
            # Two brackets in a row begin an attribute, whatever stands between them: no other code has them.
            fault = _fault(stream, index, "[]", macros, more)
            if fault:
                yield token.offset, f"the attribute{fault}: remove it"


def _fault(
    stream: Sequence[Token], at: int, brackets: str, macros: Collection[str], more: Collection[str]
) -> str:
    """What is wrong with the attribute whose two brackets begin at ``at``; empty for a plain one."""
    inner = at + 2
    if [t.text for t in stream[at:inner]] != [brackets[0]] * 2:
        return " that cannot be read"
    expects_name, depth = True, 0
    for token in stream[inner:]:
        if depth == 0 and token.text == brackets[1]:
            return ""
        if depth == 0 and expects_name and token.kind == "word":
            if not _PLAIN.fullmatch(token.text.strip("_")) and token.text not in more:
                return f" {token.text!r} is not allowed"
            if token.text in macros:
                return f" {token.text!r} is a macro, or a parameter of one"
            expects_name = False
        elif depth == 0 and token.text in {",", "::"}:
            expects_name = True
        elif token.text in {"(", ")"}:
            depth += 1 if token.text == "(" else -1
        elif depth == 0:
            return " that cannot be read"
    return " that cannot be read"


def _is_word(stream: Sequence[Token], index: int) -> bool:
    return index < len(stream) and stream[index].kind == "word"
