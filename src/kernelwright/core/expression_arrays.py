"""Values of an expression's tree for whole columns of numbers. Use it through ``core.expressions``.

Every value travels with a mask of the rows where it does not exist, so that ``b != 0 and a % b == 0`` is as lazy
as for single numbers. Whatever 64-bit arithmetic might get wrong (numbers near 2**63, branches of different type)
raises NeedsExactPath; the caller then evaluates row by row.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.core.expression_nodes import (
    MAX_EXPONENT,
    Binary,
    Call,
    Choice,
    Compare,
    Logic,
    Name,
    Node,
    Number,
    Unary,
)

Column = npt.NDArray[Any] | int | float | bool
_Masked = tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]

_SAFE = 2.0**62
_EXACT_IN_FLOAT = 2**53
_COMPARE = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class NeedsExactPath(Exception):  # noqa: N818 - control flow between two functions
    """Row by row evaluation is needed."""


def evaluate_arrays(node: Node, columns: Mapping[str, npt.NDArray[Any]]) -> _Masked:
    """Values and the mask of rows that have none. Raises NeedsExactPath."""
    with np.errstate(all="ignore"):
        return _evaluate(node, columns)


def _evaluate(node: Node, columns: Mapping[str, npt.NDArray[Any]]) -> _Masked:
    match node:
        case Number(literal, _):
            return np.asarray(literal), np.zeros((), dtype=bool)
        case Name(name, _):
            return _column(columns[name])
        case Unary(op, operand, _):
            array, bad = _evaluate(operand, columns)
            return _unary(op, array), bad
        case Binary(op, left, right, _):
            (a, bad_a), (b, bad_b) = _evaluate(left, columns), _evaluate(right, columns)
            result, bad = _arithmetic(op, _number(a), _number(b))
            return result, bad | bad_a | bad_b
        case Compare():
            return _compare(node, columns)
        case Logic():
            return _logic(node, columns)
        case Choice():
            return _choice(node, columns)
        case Call():
            return _call(node, columns)


def _unary(op: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if op == "not":
        return np.asarray(array == 0)
    return np.asarray(-_number(array)) if op == "-" else _number(array)


def _column(column: npt.NDArray[Any]) -> _Masked:
    if column.dtype.kind not in "biuf":
        raise NeedsExactPath
    if column.dtype.kind == "u":
        column = column.astype(np.uint64)
    wide = (
        column
        if column.dtype.kind == "b"
        else column.astype(np.float64 if column.dtype.kind == "f" else np.int64)
    )
    _in_range(wide)
    return wide, np.zeros((), dtype=bool)


def _number(value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return value.astype(np.int64) if value.dtype.kind == "b" else value


def _in_range(value: npt.NDArray[Any]) -> None:
    """Refuses what may not be exact; nan fails the comparison too."""
    if value.dtype.kind != "b" and not (np.abs(value.astype(np.float64)) < _SAFE).all():
        raise NeedsExactPath


def _arithmetic(op: str, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> _Masked:
    fine = np.zeros((), dtype=bool)
    if op in {"+", "-", "*"}:
        function = {"+": np.add, "-": np.subtract, "*": np.multiply}[op]
        _in_range(function(a.astype(np.float64), b.astype(np.float64)))
        return function(a, b), fine
    if op == "**":
        return _power(a, b), fine
    zero = b == 0
    safe = np.where(zero, np.ones((), dtype=b.dtype), b)
    if op == "//":
        result = np.floor_divide(a, safe)
        _in_range(result)
        return result, zero
    if op == "%":
        return np.remainder(a, safe), zero
    if "f" in {a.dtype.kind, b.dtype.kind}:
        result = a / safe
        _in_range(result)
        return result, zero
    quotient, remainder = np.divmod(a, safe)
    return quotient, zero | (remainder != 0)


def _power(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if "f" in {a.dtype.kind, b.dtype.kind} or (b < 0).any() or (b > MAX_EXPONENT).any():
        raise NeedsExactPath
    _in_range(np.power(a.astype(np.float64), b.astype(np.float64)))
    return np.asarray(np.power(a, b))


def _compare(node: Compare, columns: Mapping[str, npt.NDArray[Any]]) -> _Masked:
    left, bad = _evaluate(node.operands[0], columns)
    holds: npt.NDArray[np.bool_] = np.ones((), dtype=bool)
    for op, operand in zip(node.ops, node.operands[1:], strict=True):
        right, bad_right = _evaluate(operand, columns)
        if left.dtype.kind != right.dtype.kind:
            for side in (left, right):
                if side.dtype.kind == "i" and (np.abs(side) > _EXACT_IN_FLOAT).any():
                    raise NeedsExactPath
        bad = bad | (bad_right & holds)
        holds = holds & _COMPARE[op](left, right)
        left = right
    return holds & ~bad, bad


def _logic(node: Logic, columns: Mapping[str, npt.NDArray[Any]]) -> _Masked:
    """``or`` is ``not (not a and not b)``: one loop serves both."""
    negate = node.op == "or"
    holds: npt.NDArray[np.bool_] = np.ones((), dtype=bool)
    bad: npt.NDArray[np.bool_] = np.zeros((), dtype=bool)
    for part in node.parts:
        value, bad_part = _evaluate(part, columns)
        bad = bad | (bad_part & holds)
        holds = holds & ((value == 0) if negate else (value != 0))
    return (~holds if negate else holds) & ~bad, bad


def _choice(node: Choice, columns: Mapping[str, npt.NDArray[Any]]) -> _Masked:
    condition, bad = _evaluate(node.condition, columns)
    then, bad_then = _evaluate(node.then, columns)
    other, bad_other = _evaluate(node.other, columns)
    if then.dtype.kind != other.dtype.kind:
        raise NeedsExactPath
    chosen = condition != 0
    return np.where(chosen, then, other), bad | np.where(chosen, bad_then, bad_other)


def _call(node: Call, columns: Mapping[str, npt.NDArray[Any]]) -> _Masked:
    evaluated = [_evaluate(arg, columns) for arg in node.args]
    args = [_number(value) for value, _ in evaluated]
    bad = np.zeros((), dtype=bool)
    for _, bad_arg in evaluated:
        bad = bad | bad_arg
    if len({arg.dtype.kind for arg in args}) > 1 or (
        args[0].dtype.kind == "f" and node.name not in {"min", "max"}
    ):
        raise NeedsExactPath
    if node.name in {"min", "max"}:
        result = args[0]
        for arg in args[1:]:
            result = np.minimum(result, arg) if node.name == "min" else np.maximum(result, arg)
        return result, bad
    if node.name == "cdiv":
        zero = args[1] == 0
        return -np.floor_divide(-args[0], np.where(zero, 1, args[1])), bad | zero
    return _ceil_pow2(args[0], bad)


def _ceil_pow2(value: npt.NDArray[Any], bad: npt.NDArray[np.bool_]) -> _Masked:
    result = np.maximum(value - 1, 0)
    for shift in (1, 2, 4, 8, 16, 32):
        result = result | (result >> shift)
    return result + 1, bad | (value < 1)
