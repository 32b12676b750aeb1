"""What a plan makes of sizes: values of its expressions, and the names that a kernel finds."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kernelwright.core.errors import ExpressionError
from kernelwright.core.expression_nodes import Binary, Call, Choice, Compare, Logic, Name, Node, Unary
from kernelwright.core.expressions import Expression
from kernelwright.core.plan import Launch, Plan
from kernelwright.harness.rules.evaluate import Value
from kernelwright.harness.rules.neighbours import Column

DEVICE: Final = {"num_sms": 132, "max_shared_bytes": 232448, "warp_size": 32}
GRID: Final = "gridDim"
WHEN: Final = "(when)"
"""Not a name: where a launch's ``when`` is found."""


class Ground:
    """Sizes, values of tunables, and what the plan makes of them."""

    def __init__(
        self, plan: Plan | None, columns: Mapping[str, Column], setting: Mapping[str, int | float]
    ) -> None:
        self.asked = columns
        self.columns: dict[str, Column | int | float] = {**DEVICE, **setting, **columns}
        self.uses = {name: frozenset({name}) for name in (*setting, *columns)}
        self.macros = dict.fromkeys(setting)
        self.lost: dict[str, npt.NDArray[np.bool_]] = {}
        for name, expression in plan.let if plan else ():
            if (value := self.value(expression)) is not None:
                self.columns[name], self.uses[name] = value.data, value.uses
                self.lost |= {name: value.lost} if value.lost is not None else {}
        self.macros |= dict.fromkeys(name for name, _ in (plan.fixed_let if plan else ()))

    def value(self, expression: Expression) -> Value | None:
        """Value of an expression of the plan; ``None`` where it uses what is no number."""
        try:
            data, valid = expression.evaluate_where(self.columns)
        except ExpressionError:
            return None
        uses = frozenset().union(*(self.uses.get(name, frozenset()) for name in expression.names))
        masks = [~valid, *(self.lost[name] for name in expression.names & self.lost.keys())]
        lost = np.logical_or.reduce(np.broadcast_arrays(*masks))
        return Value(data, uses, lost if lost.any() else None)

    def known(self, launch: Launch | None) -> dict[str, Value]:
        """Names that a kernel finds: macros, and the launch's dimensions."""
        found = {
            n: Value(_narrow(self.columns[n]), self.uses[n], self.lost.get(n))
            for n in self.macros
            if n in self.columns
        }
        for what, sides in ((GRID, launch.grid), ("blockDim", launch.block)) if launch else ():
            for axis, side in zip("xyz", sides, strict=False):
                if (value := self.value(side)) is not None:
                    uses = value.uses | ({GRID} if what == GRID else set())
                    found[f"{what}.{axis}"] = Value(value.data.astype(np.uint32), uses, value.lost)
        if launch and launch.when and (when := self.value(launch.when)):
            found[WHEN] = when
        return found


def _narrow(value: object) -> npt.NDArray[Any]:
    data = np.asarray(value)
    fits = data.dtype.kind == "i" and bool((np.abs(data) < 1 << 31).all())
    return data.astype(np.int32) if fits else data


def names_of(node: Node) -> frozenset[str]:
    """Names in a part of a plan's expression."""
    found: set[str] = set()
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, Name):
            found.add(part.name)
        todo.extend(children(part))
    return frozenset(found)


def children(node: Node) -> tuple[Node, ...]:
    """Parts of a plan's expression."""
    match node:
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Compare():
            return node.operands
        case Logic():
            return node.parts
        case Choice():
            return (node.condition, node.then, node.other)
        case Call():
            return node.args
        case _:
            return ()
