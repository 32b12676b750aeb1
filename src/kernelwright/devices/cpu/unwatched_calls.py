"""Calls that copy memory unseen: -fsanitize=thread looks at assignments, not at what a call takes or returns by value.

The checked build refuses such a call where that memory is not a local variable's: it could hide a race. What is copied,
g++'s own text of the instrumented functions tells (-fdump-tree-tsan).
"""

import re
from collections.abc import Collection, Iterator

from kernelwright.core.outcome import Check, Status
from kernelwright.devices.cpu.source_rules import Refusal

_FUNCTION = re.compile(r"^;; Function (.+?) \(", re.MULTILINE)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_CALL = re.compile(r"^ +(?:(?P<to>.+?) = )?[^\s(=][^\s=]* \((?P<given>.*)\);(?: \[.*\])?$", re.MULTILINE)
_VALUE = re.compile(r"\w*_\d+(?:\(D\))?")
_NAME = re.compile(r"(?:\w+::)*([A-Za-z_]\w*)")
_COMPUTED_INDEX = re.compile(r"\[[^\]]*_\d+")
_ARROW = "→"  # no bracket


def check_calls(text: str, shared: Collection[str]) -> Refusal | None:
    """Look at g++'s text. ``shared`` are the symbols of ``__shared__`` variables."""
    parts = _FUNCTION.split(_STRING.sub('""', text).replace("->", _ARROW))
    for function, code in zip(parts[1::2], parts[2::2], strict=True):
        if any(_is_memory(operand, shared) for call in _CALL.finditer(code) for operand in _operands(call)):
            reason = (
                f"in {function} a call takes or returns a struct by value from or to memory that threads share, which"
                " the checked mode cannot watch: copy it from or into a local variable in an assignment of its own"
            )
            return Refusal(Status.COMPILE_FAILED, reason, Check.COMPILER)
    return None


def _operands(call: re.Match[str]) -> Iterator[str]:
    """What is assigned to, and the arguments: between commas that stand in no brackets."""
    yield call["to"] or ""
    depth, begin, given = 0, 0, call["given"]
    for at, c in enumerate(given):
        depth += (c in "([<{") - (c in ")]>}")
        if c == "," and depth == 0:
            yield given[begin:at].strip()
            begin = at + 1
    yield given[begin:].strip()


def _is_memory(operand: str, shared: Collection[str]) -> bool:
    """Whether an operand is memory other than a local variable, or what a computed index makes of one."""
    if operand.startswith(("&", '"')) or _VALUE.fullmatch(operand):
        return False
    if operand.startswith(("*", "MEM")) or _ARROW in operand or _COMPUTED_INDEX.search(operand):
        return True
    name = _NAME.match(operand)
    return name is not None and any(_is_of(name[1], symbol) for symbol in shared)


def _is_of(name: str, symbol: str) -> bool:
    """Whether a symbol is plainly a variable's name, or holds it mangled."""
    return symbol == name or re.search(rf"(?<!\d){len(name)}{re.escape(name)}", symbol) is not None
