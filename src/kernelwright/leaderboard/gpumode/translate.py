"""A board's ``ref_kernel`` as a ``reference.py`` of ours, where it is a few plain formulas.

Ours works in float64 on arrays of any array API namespace (docs/problems.md), the board's on torch tensors of the
problem's own precision: casts between floating dtypes fall away. What is not recognised is said, never guessed.
"""

import ast
import keyword
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kernelwright.core.expressions import parse
from kernelwright.leaderboard.gpumode.inputs_read import Size, Tensor
from kernelwright.leaderboard.gpumode.reference_facts import Facts

_SYMBOLS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.Pow: "**",
}  # fmt: skip
_ELEMENTWISE: Final = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "tanh": "tanh", "sin": "sin", "cos": "cos", "abs": "abs",
    "square": "square", "floor": "floor", "ceil": "ceil",
}  # fmt: skip
_PAIRS: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@", "mm": "@", "bmm": "@",
}  # fmt: skip
_REDUCTIONS: Final = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min"}
_NOTHING: Final = {"contiguous", "clone", "detach", "float", "double", "half", "cpu", "cuda"}
_OF_FLOATS: Final = {"float16", "float32", "float64", "bfloat16", "half", "float", "double"}
_TAKEN: Final = {"xp", "sizes", "device", "reference"}


class NotPlain(Exception):  # noqa: N818 - reads as what was met
    """Something that is not recognised: the line of ``reference.py`` and what stands there."""

    def __init__(self, node: ast.AST, what: str = "") -> None:
        text = what or ast.unparse(node).splitlines()[0]
        super().__init__(f"line {getattr(node, 'lineno', 0)}: {text[:100]}")


@dataclass(frozen=True)
class Translated:
    """The text of our ``reference.py``, for arrays of these names and at least these sizes.

    ``product``: the two arguments of a matrix product, where that is all.
    """

    text: str
    arrays: frozenset[str]
    sizes: frozenset[str]
    product: tuple[str, str] | None = None


def translate(facts: Facts, title: str) -> Translated:
    """Our reference for a board's. Raises NotPlain with what is not recognised."""
    if facts.reference is None or not facts.parameters or not facts.outputs:
        raise NotPlain(facts.reference or ast.Pass(), "it has no ref_kernel whose arguments could be told")
    writer = _Writer(facts)
    writer.body(facts.reference.body)
    values = dict(zip(facts.inputs.names, facts.inputs.values, strict=True))
    ends = []
    for name in facts.outputs:
        value, tensor = writer.outputs.get(name), values[name]
        if value is None or not isinstance(tensor, Tensor):
            raise NotPlain(facts.reference, f"nothing is known of the output {name}")
        extents = ", ".join(map(_sized, tensor.shape)) + ("," if len(tensor.shape) == 1 else "")
        ends.append(f'"{name}": xp.broadcast_to({value}, ({extents}))')
    inputs = [n for n in facts.inputs.names if n not in facts.outputs and isinstance(values[n], Tensor)]
    lines = [
        f'"""{_comment(title)}: made from the board\'s ref_kernel, which lies in board/reference.py."""',
        "",
        *(["from array_api_compat import device", "", ""] if writer.uses_device else [""]),
        f"def reference({', '.join(['xp', 'sizes', *inputs])}):",
        '    """Works on arrays of any array API namespace; inputs are float64, integers int64."""',
        *(f"    {line}" for line in writer.lines),
        f"    return {{{', '.join(ends)}}}",
    ]
    arrays = frozenset([*inputs, *facts.outputs])
    sizes = frozenset(writer.sizes)
    return Translated("\n".join(lines) + "\n", arrays, sizes, writer.product(facts))


class _Writer:
    """Writes one line for one assignment; ``names`` maps the board's names to ours."""

    def __init__(self, facts: Facts) -> None:
        self._inside = dict(zip(facts.parameters, facts.inputs.names, strict=True))
        known = dict(zip(facts.inputs.names, facts.inputs.values, strict=True))
        self.names: dict[str, str] = {}
        self.sizes: set[str] = set()
        for inside, name in self._inside.items():
            value = known[name]
            if isinstance(value, Size):
                self.names[inside] = f"({_sized(value.text)})"
                self.sizes |= parse(value.text).names
            elif isinstance(value, Tensor) and name not in facts.outputs:
                self.names[inside] = name
        self._first = next((name for name in self.names.values() if name.isidentifier()), "")
        self._taken = {*facts.inputs.names, *_TAKEN}
        self._outputs = {inside: name for inside, name in self._inside.items() if name in facts.outputs}
        self.lines: list[str] = []
        self.outputs: dict[str, str] = {}
        self.uses_device = False
        self._data = facts.reference.args.args[0].arg if facts.reference and facts.reference.args.args else ""

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.With(body=body):
                self.body(body)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Assign(targets=[ast.Tuple()], value=ast.Name(id=name)) if name == self._data:
                pass  # the unpacking, which the parameters have
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=part)], value=value) if (
                name in self._outputs and _is_all(part)
            ):
                self.outputs[self._outputs[name]] = self._text(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="copy_"), args=[value])
            ) if name in self._outputs:
                self.outputs[self._outputs[name]] = self._text(value)
            case ast.Return(value=ast.Name(id=name)) if name in self._outputs:
                pass
            case ast.Return(value=ast.Tuple(elts=items)) if all(_is_one_of(i, self._outputs) for i in items):
                pass
            case ast.Return(value=ast.expr() as value) if len(self._outputs) == 1 and not self.outputs:
                self.outputs[next(iter(self._outputs.values()))] = self._text(value)
            case _:
                raise NotPlain(statement)

    def _assign(self, name: str, value: ast.expr) -> None:
        text = self._text(value)
        if name in self._outputs:
            self.outputs[self._outputs[name]] = text
            self.names[name] = text
            return
        own = name if name not in self._taken and not keyword.iskeyword(name) else f"{name}_"
        self.lines.append(f"{own} = {text}")
        self.names[name] = own

    # -- expressions ----------------------------------------------------------------------------------

    def _text(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Constant(value=bool()):
                raise NotPlain(node)
            case ast.Constant(value=int() | float() as number):
                return repr(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self._text(operand)})"
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SYMBOLS:
                return f"({self._text(left)} {_SYMBOLS[type(operator)]} {self._text(right)})"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=function)):
                return self._function(function, node)
            case ast.Call(func=ast.Attribute(value=owner, attr=method)):
                return self._method(owner, method, node)
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=0)) if (
                _name(call) == "sort"
            ):
                return self._text(call)  # values, then indices
            case ast.Attribute(value=ast.Call() as call, attr="values") if _name(call) == "sort":
                return self._text(call)
        raise NotPlain(node)

    def _function(self, function: str, call: ast.Call) -> str:
        if function == "tensor" and call.args and isinstance(call.args[0], ast.List | ast.Tuple):
            return self._constants(call.args[0])
        if function in _PAIRS and len(call.args) == 2 and not call.keywords:
            return f"({self._text(call.args[0])} {_PAIRS[function]} {self._text(call.args[1])})"
        if not call.args:
            raise NotPlain(call)
        return self._of_array(self._text(call.args[0]), function, call.args[1:], call)

    def _method(self, owner: ast.expr, method: str, call: ast.Call) -> str:
        value = self._text(owner)
        if method in _NOTHING:
            return value
        if method in {"to", "type"} and not _casts_to_integers(call):
            return value
        if method in _PAIRS and len(call.args) == 1 and not call.keywords:
            return f"({value} {_PAIRS[method]} {self._text(call.args[0])})"
        return self._of_array(value, method, call.args, call)

    def _of_array(self, value: str, function: str, rest: list[ast.expr], call: ast.Call) -> str:
        keywords = {k.arg: k.value for k in call.keywords if k.arg != "dtype"}
        if function in _ELEMENTWISE and not rest and not keywords:
            return f"xp.{_ELEMENTWISE[function]}({value})"
        if function == "relu" and not rest and not keywords:
            return f"xp.where({value} > 0, {value}, 0 * {value})"
        if function == "sigmoid" and not rest and not keywords:
            return f"(1 / (1 + xp.exp(-{value})))"
        if function == "bincount" and not rest and set(keywords) == {"minlength"}:
            return f"xp.bincount({value}, minlength={self._text(keywords['minlength'])})"
        if function == "sort" and not rest and not keywords:
            return f"xp.sort({value})"
        axis = self._axis(rest, keywords, call)
        if function == "cumsum" and axis is not None:
            return f"xp.cumulative_sum({value}, axis={axis})"
        if function in _REDUCTIONS:
            return f"xp.{_REDUCTIONS[function]}({value}{'' if axis is None else f', axis={axis}'})"
        raise NotPlain(call)

    def _axis(
        self, rest: list[ast.expr], keywords: Mapping[str | None, ast.expr], call: ast.Call
    ) -> int | None:
        if set(keywords) - {"dim", "axis"} or len(rest) + len(keywords) > 1:
            raise NotPlain(call)
        given = [*rest, *keywords.values()]
        if not given:
            return None
        try:
            axis = ast.literal_eval(given[0])
        except ValueError:
            raise NotPlain(call) from None
        if not isinstance(axis, int):
            raise NotPlain(call)
        return axis

    def _constants(self, node: ast.List | ast.Tuple) -> str:
        self.uses_device = True
        items = ", ".join(self._text(item) for item in node.elts)
        return f"xp.asarray([{items}], dtype=xp.float64, device=device({self._first}))"

    def product(self, facts: Facts) -> tuple[str, str] | None:
        """The arguments, where the only output is the product of two."""
        for left in facts.inputs.names:
            for right in facts.inputs.names:
                if [*self.outputs.values()] == [f"({left} @ {right})"] and not self.lines:
                    return left, right
        return None


def _is_one_of(node: ast.expr, names: Mapping[str, str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_all(part: ast.expr) -> bool:
    """``[...]`` and ``[:]``."""
    return (isinstance(part, ast.Constant) and part.value is ...) or (
        isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None
    )


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _casts_to_integers(call: ast.Call) -> bool:
    """Whether ``.to(...)`` may cut off fractions; a device or a floating dtype does not."""
    nodes = [*call.args, *(k.value for k in call.keywords if k.arg == "dtype")]
    dtypes = [n.attr for n in nodes if isinstance(n, ast.Attribute) and n.attr not in {"device", "dtype"}]
    return any(dtype not in _OF_FLOATS for dtype in dtypes)


def _sized(text: str) -> str:
    """A shape's expression with its names read off ``sizes``."""

    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Subscript(ast.Name("sizes"), ast.Constant(node.id))

    return ast.unparse(Names().visit(ast.parse(text, mode="eval"))).replace("'", '"')


def _comment(title: str) -> str:
    return "".join(c for c in title if c.isalnum() or c in " ,.-_:")[:60]
