"""The tree of an expression, and its value for one set of numbers. Use it through ``core.expressions``."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelwright.core.configuration import Value

MAX_MAGNITUDE = 2**63
MAX_EXPONENT = 64
Scalar = int | bool | float

FUNCTIONS: Mapping[str, tuple[int, int]] = {
    "min": (2, 32),
    "max": (2, 32),
    "cdiv": (2, 2),
    "ceil_pow2": (1, 1),
}
"""Callable functions with their least and largest number of arguments."""

COMPARE: Mapping[str, Callable[[Scalar, Scalar], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Fault(Exception):  # noqa: N818 - internal: becomes an ExpressionError with the text
    """An evaluation failed at a column of the text."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: Scalar
    column: int


@dataclass(frozen=True)
class Name:
    """A name; bound at evaluation."""

    name: str
    column: int


@dataclass(frozen=True)
class Unary:
    """``+``, ``-`` or ``not``."""

    op: str
    operand: "Node"
    column: int


@dataclass(frozen=True)
class Binary:
    """An arithmetic operation."""

    op: str
    left: "Node"
    right: "Node"
    column: int


@dataclass(frozen=True)
class Compare:
    """A chain of comparisons: one operand more than operators."""

    ops: tuple[str, ...]
    operands: tuple["Node", ...]
    column: int


@dataclass(frozen=True)
class Logic:
    """``and`` or ``or`` of two or more parts, from left to right."""

    op: str
    parts: tuple["Node", ...]
    column: int


@dataclass(frozen=True)
class Choice:
    """``then if condition else other``."""

    condition: "Node"
    then: "Node"
    other: "Node"
    column: int


@dataclass(frozen=True)
class Call:
    """A call of one of :data:`FUNCTIONS`."""

    name: str
    args: tuple["Node", ...]
    column: int


Node = Number | Name | Unary | Binary | Compare | Logic | Choice | Call


def evaluate_node(node: Node, values: Mapping[str, Value]) -> Scalar:
    """Value of the tree. Raises Fault."""
    match node:
        case Number(value, _):
            return value
        case Name(name, column):
            return _lookup(name, values, column)
        case Unary(op, operand, _):
            value = evaluate_node(operand, values)
            return (not value) if op == "not" else -value if op == "-" else +value
        case Binary(op, left, right, column):
            return arithmetic(op, +evaluate_node(left, values), +evaluate_node(right, values), column)
        case Compare():
            return _compare(node, values)
        case Logic(op, parts, _):
            check = all if op == "and" else any
            return check(evaluate_node(part, values) for part in parts)
        case Choice(condition, then, other, _):
            return evaluate_node(then if evaluate_node(condition, values) else other, values)
        case Call(name, args, column):
            return _call(name, [+evaluate_node(arg, values) for arg in args], column)


def _lookup(name: str, values: Mapping[str, Value], column: int) -> Scalar:
    if name not in values:
        raise Fault(f"unknown name {name!r} (known: {', '.join(sorted(values)) or 'none'})", column)
    value = values[name]
    if isinstance(value, str):
        raise Fault(f"{name!r} is the text {value!r}: expressions compute with numbers", column)
    return _limited(value, column)


def _compare(node: Compare, values: Mapping[str, Value]) -> bool:
    left = evaluate_node(node.operands[0], values)
    for op, operand in zip(node.ops, node.operands[1:], strict=True):
        right = evaluate_node(operand, values)
        if not COMPARE[op](left, right):
            return False
        left = right
    return True


def arithmetic(op: str, left: float, right: float, column: int) -> float:
    """One operation on two numbers. Raises Fault."""
    if op == "+":
        return _limited(left + right, column)
    if op == "-":
        return _limited(left - right, column)
    if op == "*":
        return _limited(left * right, column)
    if op == "**":
        return _power(left, right, column)
    if right == 0:
        raise Fault("division by zero", column)
    if op == "//":
        return _limited(left // right, column)
    if op == "%":
        return left % right
    return _divide(left, right, column)


def _divide(left: float, right: float, column: int) -> float:
    if float in {type(left), type(right)}:
        return _limited(left / right, column)
    quotient, remainder = divmod(left, right)
    if remainder:
        raise Fault(f"{left} / {right} does not divide exactly (use // or cdiv)", column)
    return quotient


def _power(base: float, exponent: float, column: int) -> float:
    if abs(exponent) > MAX_EXPONENT:
        raise Fault(f"the exponent {exponent} is larger than {MAX_EXPONENT}", column)
    if exponent < 0 and (isinstance(base, int) or base == 0):
        raise Fault(f"{base} ** {exponent} is no integer", column)
    if base < 0 and exponent != int(exponent):
        raise Fault(f"{base} ** {exponent} is no real number", column)
    try:
        result: float = base**exponent
    except OverflowError:
        raise Fault("the result is too large", column) from None
    return _limited(result, column)


def _call(name: str, args: list[float], column: int) -> float:
    if name == "min":
        return min(args)
    if name == "max":
        return max(args)
    if any(isinstance(arg, float) for arg in args):
        raise Fault(f"{name} needs integers", column)
    if name == "cdiv":
        if args[1] == 0:
            raise Fault("division by zero", column)
        return _limited(-(-args[0] // args[1]), column)
    if args[0] < 1:
        raise Fault(f"ceil_pow2 needs a positive number, not {args[0]}", column)
    return _limited(1 << (int(args[0]) - 1).bit_length(), column)


def _limited(value: Scalar, column: int) -> Scalar:
    if not -MAX_MAGNITUDE < value < MAX_MAGNITUDE:  # false for nan too
        raise Fault("the result is not a number below 2**63 in magnitude", column)
    return value
