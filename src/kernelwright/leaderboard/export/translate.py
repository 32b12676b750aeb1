"""Expressions of a plan as C++ and as Python, with exactly the meaning that ``core.expressions`` gives them.

The C++ is on ``int64_t`` and calls the helpers of ``runtime.h``, which refuse what the evaluator refuses.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from kernelwright.core.configuration import Value
from kernelwright.core.errors import ExpressionError
from kernelwright.core.expression_nodes import (
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
from kernelwright.core.expressions import Expression

Names = Mapping[str, str]
"""What a name is called where the text will stand."""

_CPP_BINARY: Final = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "//": "floor_divide",
    "%": "modulo",
    "**": "power",
}


def to_cpp(expression: Expression, known: Mapping[str, Value], names: Names) -> str:
    """C++ whose value is the expression's; parts that ``known`` decides are numbers.

    Raises ExpressionError for a decimal number, or a name that is neither known nor in ``names``.
    """
    return _written(expression, known, names, _cpp)


def to_python(expression: Expression, known: Mapping[str, Value], names: Names) -> str:
    """Python whose value is the expression's, but for the limit of 2**63; needs a function ``exact`` for ``/``.

    Raises as :func:`to_cpp`.
    """
    return _written(expression, known, names, _python)


def _written(
    expression: Expression,
    known: Mapping[str, Value],
    names: Names,
    write: Callable[[Node, Names], str],
) -> str:
    try:
        return write(_folded(expression.tree, known), names)
    except Fault as fault:
        raise ExpressionError(fault.message, expression.text, fault.column) from None


def _folded(node: Node, known: Mapping[str, Value]) -> Node:
    """The tree with every part that ``known`` decides as a number. A part that fails stays, to fail when it runs."""
    try:
        return Number(evaluate_node(node, known), node.column)
    except Fault:
        pass
    if isinstance(node, Choice):
        condition = _folded(node.condition, known)
        if isinstance(condition, Number):
            return _folded(node.then if condition.value else node.other, known)
        return Choice(condition, _folded(node.then, known), _folded(node.other, known), node.column)
    return _with_parts(node, lambda part: _folded(part, known))


def _with_parts(node: Node, change: Callable[[Node], Node]) -> Node:
    match node:
        case Unary():
            return replace(node, operand=change(node.operand))
        case Binary():
            return replace(node, left=change(node.left), right=change(node.right))
        case Compare():
            return replace(node, operands=tuple(map(change, node.operands)))
        case Logic():
            return replace(node, parts=tuple(map(change, node.parts)))
        case Call():
            return replace(node, args=tuple(map(change, node.args)))
    return node


def _integer(node: Number) -> str:
    if isinstance(node.value, float):
        raise Fault(f"the decimal number {node.value} cannot be exported: use integers", node.column)
    return str(int(node.value)) if node.value >= 0 else f"({int(node.value)})"


def _named(node: Name, names: Names) -> str:
    if node.name not in names:
        raise Fault(f"unknown name {node.name!r} (known: {', '.join(sorted(names)) or 'none'})", node.column)
    return names[node.name]


def _comparable(node: Node) -> Node:
    """An integer compares with 1e6 as with 1000000."""
    if isinstance(node, Number) and isinstance(node.value, float) and node.value.is_integer():
        return Number(int(node.value), node.column)
    return node


def _operands(node: Compare) -> tuple[Node, ...]:
    return tuple(map(_comparable, node.operands))


# -- C++ --------------------------------------------------------------------------------------------------


def _cpp(node: Node, names: Names) -> str:
    match node:
        case Number():
            return _integer(node)
        case Name():
            return _named(node, names)
        case Unary(op, operand, _):
            inside = _cpp(operand, names)
            return f"(!({inside}))" if op == "not" else f"({op}int64_t({inside}))"
        case Binary(op, left, right, _):
            return f"kw::{_CPP_BINARY[op]}({_cpp(left, names)}, {_cpp(right, names)})"
        case Compare():
            return _cpp_compare(node, names)
        case Logic(op, parts, _):
            return "(" + f" {'&&' if op == 'and' else '||'} ".join(_cpp_truth(p, names) for p in parts) + ")"
        case Choice(condition, then, other, _):
            test = _cpp_truth(condition, names)
            return f"({test} ? int64_t({_cpp(then, names)}) : int64_t({_cpp(other, names)}))"
        case Call(name, args, _):
            inside = ", ".join(_cpp(arg, names) for arg in args)
            return (
                f"std::{name}<int64_t>({{{inside}}})" if name in {"min", "max"} else f"kw::{name}({inside})"
            )


def _cpp_truth(node: Node, names: Names) -> str:
    return f"({_cpp(node, names)} != 0)"


def _cpp_compare(node: Compare, names: Names) -> str:
    """A chain keeps each value in a name of its own: it computes nothing twice, and nothing after a false part."""
    values = [_cpp(operand, names) for operand in _operands(node)]
    if len(values) == 2:
        return f"({values[0]} {node.ops[0]} {values[1]})"
    steps = [f"const int64_t c0 = {values[0]};"]
    for index, op in enumerate(node.ops, start=1):
        steps.append(
            f"const int64_t c{index} = {values[index]}; if (!(c{index - 1} {op} c{index})) return false;"
        )
    return "[&]() -> bool { " + " ".join(steps) + " return true; }()"


# -- Python -----------------------------------------------------------------------------------------------


def _python(node: Node, names: Names) -> str:
    match node:
        case Number():
            return _integer(node)
        case Name():
            return _named(node, names)
        case Unary(op, operand, _):
            return f"({op} {_python(operand, names)})"
        case Binary(op, left, right, _):
            a, b = _python(left, names), _python(right, names)
            return f"exact({a}, {b})" if op == "/" else f"({a} {op} {b})"
        case Compare():
            values = [_python(operand, names) for operand in _operands(node)]
            return (
                "("
                + values[0]
                + "".join(f" {op} {v}" for op, v in zip(node.ops, values[1:], strict=True))
                + ")"
            )
        case Logic(op, parts, _):
            return "(" + f" {op} ".join(f"bool({_python(part, names)})" for part in parts) + ")"
        case Choice(condition, then, other, _):
            return f"({_python(then, names)} if {_python(condition, names)} else {_python(other, names)})"
        case Call(name, args, _):
            return _python_call(name, [_python(arg, names) for arg in args])


def _python_call(name: str, args: list[str]) -> str:
    if name == "cdiv":
        return f"(-(-{args[0]} // {args[1]}))"
    if name == "ceil_pow2":
        return f"(1 << ({args[0]} - 1).bit_length())"
    return f"{name}({', '.join(args)})"
