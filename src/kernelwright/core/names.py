"""Names that programs keep for themselves."""

import keyword
from typing import Final

from kernelwright.core.plan import CPP_KEYWORDS

FOR_SCRIPTS: Final = frozenset({"xp", "sizes", "torch"})
"""What ``reference`` and ``library`` of a problem are given beside its arguments."""
_MORE_CPP: Final = (
    "alignas alignof and and_eq asm bitand bitor catch char8_t char16_t char32_t compl concept consteval constexpr "
    "constinit const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export friend goto "
    "mutable noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires "
    "static_assert static_cast thread_local throw try typeid typename virtual wchar_t xor xor_eq"
)
_CPP: Final = frozenset(_MORE_CPP.split()) | CPP_KEYWORDS


def language_of(name: str) -> str:
    """The language in which a name is a keyword and can be nothing else; empty for none."""
    if keyword.iskeyword(name):
        return "Python"
    return "C++" if name in _CPP else ""
