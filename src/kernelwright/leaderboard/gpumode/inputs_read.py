"""What ``generate_input`` of a board's ``reference.py`` returns, read off its syntax; nothing is executed.

A small reading of straight-line code: sizes are integer expressions over the function's parameters, tensors come
from torch's factories. Whatever else happens makes a value unknown; an unknown item makes the whole unreadable.
"""

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal

DTYPES: Final = {
    "float16": "float16", "half": "float16", "float32": "float32", "float": "float32", "float64": "float64",
    "double": "float64", "int32": "int32", "int": "int32", "int64": "int64", "long": "int64", "uint8": "uint8",
}  # fmt: skip
"""torch's names of the dtypes that a problem can have."""
Fill = Mapping[str, Any]
"""A distribution of ``problem.toml``; empty: not known."""
UNKNOWN_FILL: Final[Fill] = MappingProxyType({})
_MAX_NODES: Final = 20_000
_FILLS: Final[Mapping[str, Fill | None]] = {
    "empty": None, "empty_like": None, "zeros": None, "zeros_like": None,
    "randn": {"distribution": "normal"}, "randn_like": {"distribution": "normal"},
    "rand": {"distribution": "uniform", "low": 0.0, "high": 1.0},
    "rand_like": {"distribution": "uniform", "low": 0.0, "high": 1.0},
    "ones": {"distribution": "constant", "value": 1.0}, "ones_like": {"distribution": "constant", "value": 1.0},
    "full": UNKNOWN_FILL, "randint": UNKNOWN_FILL,
}  # fmt: skip
_SAME: Final = {"contiguous", "cuda", "clone", "detach", "requires_grad_"}
_CASTS: Final = {"half", "float", "double", "int", "long"}


@dataclass(frozen=True)
class Size:
    """An integer: an expression over the case's arguments, in the language of problems."""

    text: str


@dataclass(frozen=True)
class Tensor:
    """A dense tensor. ``fill`` is ``None`` where nothing was drawn: a buffer for an output.

    ``changed``: some of what was drawn was overwritten afterwards.
    """

    dtype: str
    shape: tuple[str, ...]
    fill: Fill | None = field(default=None, hash=False)
    changed: bool = False


@dataclass(frozen=True)
class Number:
    """A number that is no size; its value is mostly not known."""


@dataclass(frozen=True)
class Unknown:
    """What cannot be read."""

    line: int = 0


Value = Size | Tensor | Number | Unknown


@dataclass(frozen=True)
class Returned:
    """What ``generate_input`` returns. ``style`` as in :class:`~kernelwright.leaderboard.abi.Abi`."""

    names: tuple[str, ...]
    values: tuple[Value, ...]
    style: Literal["tuple", "single", "dict"] = "tuple"

    @property
    def readable(self) -> bool:
        """Whether every item is known."""
        return bool(self.values) and all(isinstance(value, Size | Tensor) for value in self.values)


def read_inputs(function: ast.FunctionDef) -> Returned:
    """What a function returns at its end; without items where that cannot be read."""
    if sum(1 for _ in ast.walk(function)) > _MAX_NODES:
        return Returned((), ())
    reader = _Reader(function)
    found = reader.returned or Returned((), ())
    return replace(found, names=_free(found, reader.parameters))


def _free(found: Returned, parameters: Collection[str]) -> tuple[str, ...]:
    """Names that tensors may have beside the case's arguments and what every reference of ours gets."""
    pairs = enumerate(zip(found.names, found.values, strict=True))
    taken = {"xp", "sizes", *parameters}
    return tuple(
        f"item{index}" if name in taken and not isinstance(value, Size) else name
        for index, (name, value) in pairs
    )


class _Reader:
    """Walks a body once; ``values`` are the names known so far."""

    def __init__(self, function: ast.FunctionDef) -> None:
        arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        self.parameters = tuple(a.arg for a in arguments)
        self.values: dict[str, Value] = {name: Size(name) for name in self.parameters}
        self.returned: Returned | None = None
        self._body(function.body)

    def _body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.returned is None:
                self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Return(value=ast.expr() as value):
                self.returned = self._return(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.values[name] = self._value(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.values[name] = self._value(value)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=items)) if len(
                names
            ) == len(items):
                found = [self._value(item) for item in items]
                for target, value_ in zip(names, found, strict=True):
                    if isinstance(target, ast.Name):
                        self.values[target.id] = value_
            case ast.Expr(value=ast.Call() as call):
                self._in_place(call)
            case ast.Expr() | ast.Assert() | ast.Pass() | ast.Import() | ast.ImportFrom():
                pass
            case ast.With(body=body):
                self._body(body)
            case _:
                self._forget(statement)

    def _in_place(self, call: ast.Call) -> None:
        """``a.uniform_(0, 1)`` as a statement changes what ``a`` holds."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method.endswith("_"):
                if isinstance(self.values.get(name), Tensor):
                    self.values[name] = self._value(call)

    def _forget(self, statement: ast.stmt) -> None:
        """Anything may have happened to the names that a statement assigns; one that is filled keeps its shape."""
        for node in ast.walk(statement):
            match node:
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                    if isinstance(known := self.values.get(name), Tensor):
                        self.values[name] = _changed(known)
                case ast.Name(id=name, ctx=ast.Store()):
                    known = self.values.get(name)
                    in_place = isinstance(statement, ast.AugAssign) and isinstance(known, Tensor)
                    self.values[name] = _changed(known) if in_place else Unknown(node.lineno)
                case ast.Return():
                    self.returned = Returned((), ())

    def _return(self, value: ast.expr) -> Returned:
        match value:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return Returned(_names(items), tuple(map(self._value, items)))
            case ast.Dict(keys=keys, values=items):
                names = [
                    k.value if isinstance(k, ast.Constant) and isinstance(k.value, str) else "" for k in keys
                ]
                if all(re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) for name in names):
                    return Returned(tuple(names), tuple(map(self._value, items)), "dict")
                return Returned((), ())
            case _:
                return Returned(_names([value]), (self._value(value),), "single")

    # -- expressions ----------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name):
                return self.values.get(name, Unknown(node.lineno))
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                return Size(str(number))
            case ast.Constant(value=float()) | ast.Call(func=ast.Attribute(value=ast.Name(id="math"))):
                return Number()
            case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(self._value(operand), Unknown):
                return _negated(self._value(operand))
            case ast.BinOp(left=left, op=operator, right=right):
                return self._binary(self._value(left), operator, self._value(right), node)
            case ast.Call(func=ast.Name(id="int"), args=[inner]):
                return self._value(inner)
            case ast.Call():
                return self._call(node)
        return Unknown(node.lineno)

    def _binary(self, left: Value, operator: ast.operator, right: Value, node: ast.BinOp) -> Value:
        symbols: dict[type[ast.operator], str] = {
            ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
        }  # fmt: skip
        symbol = symbols.get(type(operator))
        if isinstance(left, Size) and isinstance(right, Size) and symbol:
            return Size(f"{in_brackets(left.text)} {symbol} {in_brackets(right.text)}")
        if isinstance(left, Size | Number) and isinstance(right, Size | Number):
            return Number()
        if isinstance(left, Tensor) and isinstance(right, Size | Number):
            return _scaled(left, operator, _number(node.right))
        if isinstance(right, Tensor) and isinstance(left, Size | Number):
            known = isinstance(operator, ast.Mult | ast.Add)
            return _scaled(right, operator, _number(node.left) if known else None)
        if isinstance(left, Tensor) and isinstance(right, Tensor) and left.shape == right.shape:
            return replace(left, fill=UNKNOWN_FILL)
        return Unknown(node.lineno)

    def _call(self, call: ast.Call) -> Value:
        match call.func:
            case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name in _FILLS:
                return self._made(name, call)
            case ast.Attribute(value=owner, attr=method):
                tensor = self._value(owner)
                if isinstance(tensor, Tensor):
                    return self._method(tensor, method, call)
        return Unknown(call.lineno)

    def _made(self, name: str, call: ast.Call) -> Value:
        keywords = {k.arg: k.value for k in call.keywords}
        arguments = list(call.args)
        fill = _FILLS[name]
        if name == "randint":
            numbers = [n for n in map(_number, arguments[:2]) if n is not None]
            low, high = (0.0, *numbers)[-2:] if numbers else (0.0, None)
            arguments = arguments[len(numbers) :]
            if high is not None:
                fill = {"distribution": "integers", "low": int(low), "high": int(high)}
        elif name == "full":
            number = _number(arguments.pop()) if len(arguments) > 1 else None
            fill = UNKNOWN_FILL if number is None else {"distribution": "constant", "value": number}
        dtype = DTYPES.get("int64" if name == "randint" else "float32")
        if name.endswith("_like"):
            like = self._value(arguments[0]) if arguments else Unknown()
            if not isinstance(like, Tensor):
                return Unknown(call.lineno)
            shape, dtype = like.shape, like.dtype
        elif (found := self._shape(arguments, keywords.get("size"))) is None:
            return Unknown(call.lineno)
        else:
            shape = found
        if "dtype" in keywords:
            dtype = _dtype(keywords["dtype"])
        return Tensor(dtype, shape, fill) if dtype else Unknown(call.lineno)

    def _shape(self, arguments: list[ast.expr], size: ast.expr | None) -> tuple[str, ...] | None:
        match [*arguments, *([size] if size is not None else [])]:
            case [ast.Tuple(elts=items) | ast.List(elts=items)]:
                extents = [self._value(item) for item in items]
            case items:
                extents = [self._value(item) for item in items]
        texts = tuple(extent.text for extent in extents if isinstance(extent, Size))
        return texts if texts and len(texts) == len(extents) else None

    def _method(self, tensor: Tensor, method: str, call: ast.Call) -> Value:
        numbers = [_number(argument) for argument in call.args]
        if method in _SAME:
            return tensor
        if method == "item":
            return Number()
        if method in {"to", "type"}:
            return _cast(tensor, call)
        if method in _CASTS:
            return replace(tensor, dtype=DTYPES[method])
        if method == "zero_":
            return replace(tensor, fill=None)
        if method in {"uniform_", "normal_", "random_", "fill_"}:
            return replace(tensor, fill=_drawn(method, numbers))
        return replace(tensor, fill=UNKNOWN_FILL) if method.endswith("_") else Unknown(call.lineno)


def _changed(known: Value | None) -> Value:
    """A tensor keeps shape and dtype whatever is written into it; a buffer is an input then."""
    if not isinstance(known, Tensor):
        return Unknown()
    return replace(known, fill=UNKNOWN_FILL if known.fill is None else known.fill, changed=True)


def _negated(value: Value) -> Value:
    return replace(value, fill=UNKNOWN_FILL) if isinstance(value, Tensor) else Number()


def _drawn(method: str, numbers: list[float | None]) -> Fill:
    if any(number is None for number in numbers):
        return UNKNOWN_FILL
    given = [number for number in numbers if number is not None]
    match method, given:
        case "uniform_", [] | [_, _]:
            low, high = given or (0.0, 1.0)
            return {"distribution": "uniform", "low": low, "high": high}
        case "normal_", [] | [_, _]:
            mean, std = given or (0.0, 1.0)
            return {"distribution": "normal", "mean": mean, "std": std}
        case "fill_", [value]:
            return {"distribution": "constant", "value": value}
    return UNKNOWN_FILL


def _cast(tensor: Tensor, call: ast.Call) -> Value:
    """``.to`` of a device leaves a tensor as it is; of a dtype that problems lack nothing is known."""
    nodes = [*call.args, *(k.value for k in call.keywords if k.arg == "dtype")]
    dtypes = [node for node in nodes if isinstance(node, ast.Attribute)]
    if not dtypes:
        return tensor
    dtype = _dtype(dtypes[0])
    return replace(tensor, dtype=dtype) if dtype else Unknown(call.lineno)


def _scaled(tensor: Tensor, operator: ast.operator, number: float | None) -> Tensor:
    """A normal or uniform draw times or plus a number; of others the values are no longer known."""
    fill = dict(tensor.fill or {})
    kind = fill.get("distribution")
    if number is None or kind not in {"normal", "uniform"}:
        return replace(tensor, fill=UNKNOWN_FILL)
    place, spread = (("low", "high"), ()) if kind == "uniform" else (("mean",), ("std",))
    values = {"mean": 0.0, "std": 1.0} | fill if kind == "normal" else fill
    match operator:
        case ast.Mult() | ast.Div() if number > 0:
            factor = number if isinstance(operator, ast.Mult) else 1 / number
            changed = {name: values[name] * factor for name in (*place, *spread)}
        case ast.Add() | ast.Sub():
            shift = number if isinstance(operator, ast.Add) else -number
            changed = {name: values[name] + shift for name in place}
        case _:
            return replace(tensor, fill=UNKNOWN_FILL)
    return replace(tensor, fill={**values, **changed})


def _dtype(node: ast.expr) -> str | None:
    return DTYPES.get(node.attr) if isinstance(node, ast.Attribute) else None


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number) if abs(number) < 1e300 else None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _number(operand)
            return None if inner is None else -inner
    return None


def in_brackets(text: str) -> str:
    """An expression that may stand beside any operator."""
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def _names(items: list[ast.expr]) -> tuple[str, ...]:
    """The variables' own names, else ``item`` and the place; each once."""
    names: list[str] = []
    for index, item in enumerate(items):
        while isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in _SAME:
            item = item.func.value  # noqa: PLW2901 - a.contiguous() is still a
        name = item.id if isinstance(item, ast.Name) and item.id != "torch" else f"item{index}"
        names.append(name if name not in names else f"item{index}")
    return tuple(names)
