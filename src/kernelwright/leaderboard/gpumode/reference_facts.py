"""Facts of a board's ``reference.py``, from its syntax alone: tolerance, what goes in, which item is the output."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from kernelwright.core.case import Tolerance
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.gpumode.inputs_read import Returned, Tensor, read_inputs

GENERATE: Final = "generate_input"
REFERENCE: Final = "ref_kernel"
CHECK: Final = "check_implementation"
_MATCH: Final = {"make_match_reference", "match_reference", "verbose_allclose", "allclose"}
_EXACT: Final = {"verbose_allequal", "equal"}
DEFAULT_RTOL: Final = 1e-5
DEFAULT_ATOL: Final = 1e-8
"""Of GPU MODE's ``make_match_reference`` and ``verbose_allclose``."""
_MAX_NODES: Final = 100_000


@dataclass(frozen=True)
class Facts:
    """What is known of a reference. ``tolerance``: both 0 is exact; ``None`` for a check of the board's own making.

    ``outputs`` are items that the reference fills, ``results`` what it returns, by the items' names; ``reference`` and
    ``parameters`` (the items' names inside it) are for whoever reads on.
    """

    tolerance: Tolerance | None
    inputs: Returned
    outputs: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    reference: ast.FunctionDef | None = None
    parameters: tuple[str, ...] = ()


def read_reference(text: str, origin: str, described: Returned | None = None) -> Facts:
    """Facts of a ``reference.py``. Raises UserError where it is no Python.

    ``described`` is what a run of ``generate_input`` showed; names are the source's all the same.
    """
    try:
        tree = ast.parse(text)
        large = sum(1 for _ in ast.walk(tree)) > _MAX_NODES
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f"{origin}:{line}" if line else origin
        raise UserError(f"{where}: not valid Python: {' '.join(str(error).split())[:200]}") from None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if large or GENERATE not in functions:
        return Facts(None if large else _tolerance(tree, functions), described or Returned((), ()))
    inputs = read_inputs(functions[GENERATE])
    if described:
        same = len(described.names) == len(inputs.names)
        inputs = replace(described, names=inputs.names if same else described.names)
    reference = functions.get(REFERENCE)
    if reference is None or not inputs.names:
        return Facts(_tolerance(tree, functions), inputs, _buffers(inputs), _buffers(inputs))
    parameters = _parameters(reference, inputs)
    inside = dict(zip(parameters, inputs.names, strict=False))
    filled = [inside[name] for name in _stored(reference) if name in inside]
    returned = [inside[name] for name in _returned(reference) if name in inside]
    buffers = _buffers(inputs)
    outputs = tuple(dict.fromkeys([*filled, *(n for n in returned if n in buffers)]))
    if not outputs and len(buffers) == 1 and parameters:
        outputs = buffers  # what is returned is new; the one buffer that nobody reads is there for it
    results = tuple(name for name in returned if name in outputs) or outputs
    return Facts(_tolerance(tree, functions), inputs, outputs, results, reference, parameters)


def _tolerance(tree: ast.Module, functions: dict[str, ast.FunctionDef]) -> Tolerance | None:
    """Of ``check_implementation``: a call of ``make_match_reference``, or a function that compares in one place."""
    places: list[ast.AST] = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == CHECK for t in node.targets)
    ]
    places += [functions[CHECK]] if CHECK in functions else []
    found = [tolerance for place in places for tolerance in _compared(place)]
    return found[0] if len(found) == 1 else None


def _compared(place: ast.AST) -> Iterator[Tolerance | None]:
    for node in ast.walk(place):
        name = _called(node)
        if isinstance(node, ast.Call) and name in _MATCH:
            given = {k.arg: _literal(k.value) for k in node.keywords}
            rtol, atol = given.get("rtol", DEFAULT_RTOL), given.get("atol", DEFAULT_ATOL)
            known = rtol is not None and atol is not None and 0 <= rtol < 1 and atol >= 0
            yield Tolerance(rtol, atol) if known and rtol is not None and atol is not None else None
        elif name in _EXACT:
            yield Tolerance(0.0, 0.0)


def _called(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def _literal(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
    return None


def _parameters(reference: ast.FunctionDef, inputs: Returned) -> tuple[str, ...]:
    """The items' names inside the reference: unpacked from its one parameter, or that parameter itself."""
    arguments = reference.args.args
    if len(arguments) != 1:
        return tuple(a.arg for a in arguments) if len(arguments) == len(inputs.names) else ()
    data = arguments[0].arg
    if inputs.style == "single":
        return (data,)
    for node in ast.walk(reference):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name(id=source)) if source == data:
                if len(names) == len(inputs.names) and all(isinstance(name, ast.Name) for name in names):
                    return tuple(name.id for name in names if isinstance(name, ast.Name))
    return ()


def _stored(reference: ast.FunctionDef) -> Iterator[str]:
    """Names whose content the reference writes: ``out[...] =``, ``out.copy_()``, ``out=out``."""
    for node in ast.walk(reference):
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="copy_")):
                yield name
            case ast.keyword(arg="out", value=ast.Name(id=name)):
                yield name


def _returned(reference: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(reference):
        match node:
            case ast.Return(value=ast.Name(id=name)):
                yield name
            case ast.Return(value=ast.Tuple(elts=items)):
                yield from (item.id for item in items if isinstance(item, ast.Name))


def _buffers(inputs: Returned) -> tuple[str, ...]:
    """Items that nothing was drawn for."""
    pairs = zip(inputs.names, inputs.values, strict=True)
    return tuple(name for name, value in pairs if isinstance(value, Tensor) and value.fill is None)
