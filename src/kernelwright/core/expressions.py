"""Expressions of plans, constraints and problems: parsed into a small tree of our own, never ``eval``-ed.

Language (docs/design.md section 2): integers and decimal numbers, names, ``+ - * / // % **``, comparisons
and their chains (``32 <= T <= 1024``), ``and or not``, ``a if c else b``, calls of ``min max cdiv ceil_pow2``,
parentheses. Rules that differ from Python:

- ``/`` of integers must divide exactly, else it is an error; it gives a float only where an operand is one.
- ``and``, ``or`` and ``not`` give true or false, never an operand.
- No number may reach 2**63 in magnitude; an exponent is at most 64.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.core.configuration import Value
from kernelwright.core.errors import ExpressionError
from kernelwright.core.expression_arrays import Column, NeedsExactPath, evaluate_arrays
from kernelwright.core.expression_nodes import (
    FUNCTIONS,
    MAX_MAGNITUDE,
    Binary,
    Call,
    Choice,
    Compare,
    Fault,
    Logic,
    Name,
    Node,
    Number,
    Unary,
    evaluate_node,
)

MAX_LENGTH = 2000
MAX_NODES = 400
MAX_DEPTH = 50
MAX_STEPS = 1 << 21
"""Most parts times rows that are computed one by one: about two seconds; plans are written by strangers."""

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_UNARY: dict[type[ast.unaryop], str] = {ast.UAdd: "+", ast.USub: "-", ast.Not: "not"}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


@dataclass(frozen=True)
class Expression:
    """A parsed expression of ``size`` parts; equal texts are equal expressions."""

    text: str
    names: frozenset[str]
    tree: Node
    size: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def evaluate(self, values: Mapping[str, Value]) -> int | bool | float:
        """Value for one number a name. Raises ExpressionError with the column of the failing part."""
        try:
            return evaluate_node(self.tree, values)
        except Fault as fault:
            raise ExpressionError(fault.message, self.text, fault.column) from None

    def evaluate_many(self, columns: Mapping[str, Column]) -> npt.NDArray[Any]:
        """Values for arrays [n] of numbers (scalars stand for n equal ones), same rules as :meth:`evaluate`.

        Raises ExpressionError where any of the n evaluations would.
        """
        result, valid = self.evaluate_where(columns)
        if not valid.all():
            first = np.unravel_index(int(np.argmin(valid)), valid.shape)
            self.evaluate(_row(self._broadcast(columns), first))
            raise ExpressionError("cannot be evaluated", self.text)
        return result

    def evaluate_where(self, columns: Mapping[str, Column]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Values, and where they exist: a failing evaluation (an inexact ``/``) is a false in the second array.

        Raises ExpressionError only for a name that ``columns`` lacks, or when it would take too long.
        """
        for name in self.names - columns.keys():
            self.evaluate(dict.fromkeys(columns, 1))
            raise ExpressionError(f"unknown name {name!r} (known: {_listed(columns)})", self.text)
        arrays = self._broadcast(columns)
        shape = next(iter(arrays.values())).shape if arrays else ()
        try:
            result, bad = evaluate_arrays(self.tree, arrays)
        except NeedsExactPath:
            return self._one_by_one(arrays, shape)
        return np.broadcast_to(result, shape), ~np.broadcast_to(bad, shape)

    def _broadcast(self, columns: Mapping[str, Column]) -> dict[str, npt.NDArray[Any]]:
        names = sorted(self.names)
        arrays = np.broadcast_arrays(*(np.asarray(columns[name]) for name in names))
        return dict(zip(names, arrays, strict=True))

    def _one_by_one(
        self, arrays: Mapping[str, npt.NDArray[Any]], shape: tuple[int, ...]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """The slow way for huge numbers and mixed types: Python's integers are exact."""
        if self.size * prod(shape) > MAX_STEPS:
            raise ExpressionError(
                "numbers near 2**63, or integers mixed with decimals, for too many combinations", self.text
            )
        values: list[int | bool | float] = []
        valid = np.ones(shape, dtype=bool)
        for place in np.ndindex(shape):
            try:
                values.append(evaluate_node(self.tree, _row(arrays, place)))
            except Fault:
                values.append(0)
                valid[place] = False
        return np.array(values).reshape(shape), valid


def _row(arrays: Mapping[str, npt.NDArray[Any]], place: tuple[Any, ...]) -> dict[str, Value]:
    return {name: array[place].item() for name, array in arrays.items()}


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(sorted(names)) or "none"


def parse(text: str) -> Expression:
    """Parse an expression. Raises ExpressionError naming the column of what is not in the language."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"longer than {MAX_LENGTH} characters", text[:40] + "...")
    stripped = text.strip().replace("\n", " ")
    try:
        tree = ast.parse(stripped, mode="eval").body
    except SyntaxError as error:
        message = "empty expression" if not stripped else f"not an expression ({error.msg})"
        raise ExpressionError(message, text, error.offset or 0) from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionError("not an expression, or nested too deeply", text) from None
    builder = _Builder(text, len(text) - len(text.lstrip()))
    root = builder.build(tree, 0)
    return Expression(text=text, names=frozenset(builder.names), tree=root, size=builder.nodes)


class _Builder:
    """Turns Python's tree into ours; everything that is not in the language is refused here."""

    def __init__(self, text: str, indent: int) -> None:
        self.text = text
        self.indent = indent
        self.names: set[str] = set()
        self.nodes = 0

    def build(self, node: ast.expr, depth: int) -> Node:
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise self._refusal(f"nested more than {MAX_DEPTH} deep", node)
        if self.nodes > MAX_NODES:
            raise self._refusal(f"more than {MAX_NODES} parts", node)
        return self._dispatch(node, depth + 1)

    def _dispatch(self, node: ast.expr, depth: int) -> Node:
        column = self._column(node)
        match node:
            case ast.Constant(value=value):
                return self._number(value, node)
            case ast.Name(id=name):
                self.names.add(name)
                return Name(name, column)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return Unary(_UNARY[type(op)], self.build(operand, depth), column)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return Binary(_BINARY[type(op)], self.build(left, depth), self.build(right, depth), column)
            case ast.BoolOp(op=op, values=values):
                name = "and" if isinstance(op, ast.And) else "or"
                return Logic(name, tuple(self.build(v, depth) for v in values), column)
            case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(o) in _COMPARE for o in ops):
                operands = tuple(self.build(o, depth) for o in [left, *rest])
                return Compare(tuple(_COMPARE[type(o)] for o in ops), operands, column)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                then, other = self.build(body, depth), self.build(orelse, depth)
                return Choice(self.build(test, depth), then, other, column)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(name, args, node, depth)
        raise self._refusal("not part of the expression language", node)

    def _number(self, value: object, node: ast.expr) -> Number:
        # False for nan too; a huge integer is compared as it is: as a float it could not be had.
        if isinstance(value, bool | int | float) and abs(value) < MAX_MAGNITUDE:
            return Number(value, self._column(node))
        raise self._refusal(f"{str(value)[:40]!r} is not a number below 2**63", node)

    def _call(self, name: str, args: list[ast.expr], node: ast.expr, depth: int) -> Call:
        if name not in FUNCTIONS:
            raise self._refusal(f"unknown function {name!r} (known: {', '.join(sorted(FUNCTIONS))})", node)
        least, most = FUNCTIONS[name]
        if not least <= len(args) <= most:
            raise self._refusal(f"{name} takes {least}{'' if least == most else ' or more'} arguments", node)
        return Call(name, tuple(self.build(arg, depth) for arg in args), self._column(node))

    def _column(self, node: ast.expr) -> int:
        # ast counts bytes of UTF-8; identifiers here are ASCII in all but hostile texts.
        return node.col_offset + self.indent + 1

    def _refusal(self, message: str, node: ast.expr) -> ExpressionError:
        return ExpressionError(message, self.text, self._column(node))
