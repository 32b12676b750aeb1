"""Names that mean nothing in device code: ours, and all by which a text could tell which build it is in.

The checked mode is another build of the same text. A candidate that knew it there would behave while it is looked at,
so the preprocessor answers alike in both.
"""

import re
from functools import cache
from typing import Final

from kernelwright.devices.cpu.toolchain import NATIVE

_OURS: Final = re.compile(r"\b(?:kw_[a-z]\w*|Kw[A-Z]\w*|kKw[A-Z]\w*)\b")
_OUR_MACRO: Final = re.compile(r"^#define (KW_\w+)", re.MULTILINE)
_TELLING: Final = (
    *("KW_CHECK", "__SANITIZE_THREAD__", "_GLIBCXX_TSAN", "__GCC_HAVE_DWARF2_CFI_ASM"),
    *("__has_feature", "__has_extension"),  # from g++ 14 on: thread_sanitizer
)


@cache
def hiding() -> str:
    """Lines for behind the device header: macros are undefined, and an error wherever one of our names is used.

    Macros of the header that use such names go on working: g++ lets pass what was defined before.
    """
    headers = "\n".join(path.read_text() for path in sorted((NATIVE / "device").glob("*.h")))
    macros = sorted({*_TELLING, *_OUR_MACRO.findall(headers)})
    return "".join(f"#undef {name}\n" for name in macros) + _poison(headers) + "\n"


def without_poison(preprocessed: str) -> str:
    """Preprocessed text in which our own macros have been expanded, so that these names stand in it."""
    poison = hiding().splitlines()[-1]
    return preprocessed.replace(poison, "", 1)


def _poison(headers: str) -> str:
    return "#pragma GCC poison " + " ".join(sorted(set(_OURS.findall(headers))))
