"""The syntax tree of a source, by tree-sitter-cuda, and integer constants in it.

A parser for editors: it never fails, and parts that it cannot make sense of become error nodes. So nothing is
refused for a parse error, and what macros hide is not seen here.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Final

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Tree

PARSE_SECONDS: Final = 0.5
_DEPTH: Final = 40
_PIECE: Final = 1 << 16
_OPERATORS: Final = frozenset({"+", "-", "*", "/", "%", "<<", ">>", "|", "&", "^"})


def parse(plain: str) -> Tree | None:
    """Tree of an ASCII text, or ``None`` when parsing takes longer than half a second of this thread's own time."""
    until = time.thread_time() + PARSE_SECONDS
    data = plain.encode("ascii", "replace")

    def late(_offset: int, _has_error: bool) -> bool:  # noqa: FBT001 - tree-sitter's signature
        return time.thread_time() > until

    parser = Parser(Language(tree_sitter_cuda.language()))
    try:
        # Only a text that is read piece by piece can be given up, only a whole one knows its nodes' texts.
        parser.parse(lambda offset, _: data[offset : offset + _PIECE], progress_callback=late)
    except ValueError:
        return None
    return None if time.thread_time() > until else parser.parse(data)


def walk(tree: Tree) -> Iterator[Node]:
    """Every named node in the order of the text, without recursion."""
    cursor = tree.walk()
    while True:
        if cursor.node is not None and cursor.node.is_named:
            yield cursor.node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def text_of(node: Node | None) -> str:
    """Text of a node, empty without one."""
    return (node.text or b"").decode() if node else ""


def operator(node: Node) -> str:
    """Operator of a binary or unary expression."""
    return text_of(node.child_by_field_name("operator"))


def constant(node: Node | None, known: Mapping[str, int], depth: int = 0) -> int | None:
    """Value of an integer expression of literals and known names; ``None`` for anything else."""
    if node is None or depth > _DEPTH:
        return None
    if node.type == "number_literal":
        return number(text_of(node))
    if node.type == "identifier":
        return known.get(text_of(node))
    if node.type in {"parenthesized_expression", "cast_expression", "condition_clause", "argument_list"}:
        inner = node.child_by_field_name("value") or (
            node.named_children[-1] if node.named_child_count == 1 else None
        )
        return constant(inner, known, depth + 1)
    if node.type == "unary_expression" and operator(node) == "-":
        value = constant(node.child_by_field_name("argument"), known, depth + 1)
        return None if value is None else -value
    if node.type == "binary_expression" and operator(node) in _OPERATORS:
        left = constant(node.child_by_field_name("left"), known, depth + 1)
        right = constant(node.child_by_field_name("right"), known, depth + 1)
        return None if left is None or right is None else _apply(operator(node), left, right)
    return None


def number(text: str) -> int | None:
    """Value of an integer literal as C++ writes it."""
    digits = text.lower().replace("'", "").rstrip("ulz")
    try:
        if digits.startswith("0") and digits.isdigit():
            return int(digits, 8)
        return int(digits, 0)
    except ValueError:
        return _whole(digits)


def _whole(digits: str) -> int | None:
    """A floating literal that is a whole number compares equal to a size too."""
    try:
        value = float(digits.removesuffix("f"))
    except ValueError:
        return None
    return int(value) if abs(value) < 2**53 and value == int(value) else None


def _apply(op: str, left: int, right: int) -> int | None:
    if op in {"/", "%"}:
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if op == "/" else left - quotient * right
    if op in {"<<", ">>"} and not 0 <= right < 64:
        return None
    values = {"+": left + right, "-": left - right, "*": left * right, "|": left | right,
              "&": left & right, "^": left ^ right}  # fmt: skip
    value = values[op] if op in values else (left << right if op == "<<" else left >> right)
    return value if abs(value) < 2**64 else None
