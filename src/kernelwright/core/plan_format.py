"""Plans as text: the inverse of :func:`kernelwright.core.plan.parse_plan`."""

import re
from collections.abc import Sequence
from typing import Any

from kernelwright.core.expressions import Expression
from kernelwright.core.plan import COMPILER_PREFIX, Plan
from kernelwright.core.space import Constraint, Tunable


def format_sections(tunables: Sequence[Tunable], constraints: Sequence[Constraint]) -> str:
    """The ``[tune]`` and ``[constraints]`` of a plan."""
    out = ["[tune]", *(f"{t.name} = {_literal(list(t.values))}" for t in tunables)] if tunables else []
    if constraints:
        out += ["[constraints]", *(f"{_key(c.name)} = {_literal(c.expression)}" for c in constraints)]
    return "\n".join(out)


def format_plan(plan: Plan) -> str:
    """The plan as the comment that starts a template; ``parse_plan`` gives the same plan back."""
    out = ["/* kernelwright", *(["atomic_noise = true"] if plan.atomic_noise else [])]
    if plan.tunables:
        out += ["[tune]", *(f"{t.name} = {_literal(list(t.values))}" for t in plan.tunables)]
    if plan.compiler:
        out.append("[tune.compiler]")
        out += [f"{t.name.removeprefix(COMPILER_PREFIX)} = {_literal(list(t.values))}" for t in plan.compiler]
    if plan.constraints:
        out += ["[constraints]", *(f"{_key(c.name)} = {_literal(c.expression)}" for c in plan.constraints)]
    if plan.let:
        out += ["[let]", *(f"{name} = {_literal(expression)}" for name, expression in plan.let)]
    if plan.scratch:
        out.append("[scratch]")
        out += [
            f"{s.name} = {{ dtype = {_literal(s.dtype)}, shape = {_literal(list(s.shape))} }}"
            for s in plan.scratch
        ]
    for launch in plan.launches:
        out += ["[[launch]]", f"kernel = {_literal(launch.kernel)}"]
        out += [f"grid = {_literal(list(launch.grid))}", f"block = {_literal(list(launch.block))}"]
        if launch.cluster:
            out.append(f"cluster = {_literal(list(launch.cluster))}")
        if launch.cooperative:
            out.append("cooperative = true")
        if launch.when is not None:
            out.append(f"when = {_literal(launch.when)}")
        out.append(f"dynamic_shared_bytes = {_literal(launch.dynamic_shared_bytes)}")
        out.append(f"args = {_literal(list(launch.args))}")
    return "\n".join([*out, "*/"])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _literal(name)


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = value.text if isinstance(value, Expression) else str(value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
