"""Rules on a launch plan: with ``no_size_branches`` no comparison may single out the sizes of a case.

Thresholds (``N <= 512``) and divisibility stay free: they hold for sizes off the list too. A comparison singles a
case out when it answers differently one below, one above, a power of two away from and
at halves and doubles of a size of the case.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from kernelwright.core.expression_nodes import (
    Compare,
    Fault,
    Node,
    Scalar,
    evaluate_node,
)
from kernelwright.core.expressions import Expression
from kernelwright.core.plan import Plan
from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.broken import Broken
from kernelwright.harness.rules.grounds import DEVICE, children, names_of

Lets = tuple[tuple[str, Expression], ...]

_AWAY: Final = (-1, 1, *(1 << k for k in range(1, 14)))
_SCALES: Final = (1, 2, 4, 16, 32, 64)
"""Eighths: conditions on powers of two hold again at half and double the size."""
_LEAST_SIZE: Final = 2
_MAX_VALUES: Final = 64
_MAX_STEPS: Final = 1_000_000


def check_plan(plan: Plan, rules: CandidateRules) -> Broken | None:
    """Declared noise where results must repeat; the first expression that singles out a case of ``rules.sizes``."""
    if rules.deterministic and plan.atomic_noise:
        return Broken(
            "the plan declares atomic_noise, but the rules ask for equal bits in equal runs: sum in a fixed order"
        )
    if not rules.no_size_branches or not rules.sizes:
        return None
    steps = 0
    for place, expression in expressions(plan):
        settings = list(_settings(plan, expression))
        for node in _tests(expression, whole=place == "when"):
            steps += expression.size * len(settings) * (len(_AWAY) + len(_SCALES)) * _count(rules)
            if steps > _MAX_STEPS:
                return Broken(f"{place}: the plan has too many comparisons to be looked through: simplify it")
            cases = [_singled_out(node, plan, rules, each) for each in settings]
            # A range that only some tunables narrow to one size is a range; an equality is one at once.
            equality = isinstance(node, Compare) and not {"==", "!="}.isdisjoint(node.ops)
            if any(cases) if equality else all(cases):
                return Broken(
                    f"{place}: {expression.text[:80]!r} singles out the case with {next(filter(None, cases))}, but the"
                    " rules forbid code that tells the cases' sizes apart: use thresholds or divisibility"
                )
    return None


def _count(rules: CandidateRules) -> int:
    return sum(map(len, rules.sizes.values()))


def expressions(plan: Plan) -> Iterator[tuple[str, Expression]]:
    """All expressions that may depend on sizes, each with its place."""
    for name, expression in plan.let:
        yield f"let.{name}", expression
    for scratch in plan.scratch:
        yield from ((f"scratch.{scratch.name}", expression) for expression in scratch.shape)
    for launch in plan.launches:
        if launch.when is not None:
            yield "when", launch.when
        parts = (*launch.grid, *launch.block, *launch.args, *launch.cluster, launch.dynamic_shared_bytes)
        yield from ((f"launch of {launch.kernel}", expression) for expression in parts)


def _tests(expression: Expression, *, whole: bool) -> Iterator[Node]:
    """Comparisons in an expression, and all of it where its truth decides."""
    todo = [expression.tree]
    if whole:
        yield expression.tree
    while todo:
        node = todo.pop()
        if isinstance(node, Compare) and (node is not expression.tree or not whole):
            yield node
        todo.extend(children(node))


def _settings(plan: Plan, expression: Expression) -> Iterator[dict[str, int]]:
    """Values of the tunables: the first of each, and every value of those that the expression uses."""
    first = {t.name: int(t.values[0]) for t in plan.tunables}
    yield first
    names = set(expression.names)
    for name, meaning in reversed(plan.let):
        if name in names:
            names |= meaning.names
    for tunable in plan.tunables:
        if tunable.name in names:
            yield from ({**first, tunable.name: int(value)} for value in tunable.values[1:_MAX_VALUES])


def _needed(node: Node, plan: Plan) -> tuple[frozenset[str], Lets]:
    """The names that a part of an expression depends on, and those of them that are a ``let``, in order."""
    names = set(names_of(node))
    lets = []
    for name, meaning in reversed(plan.let):
        if name in names:
            names |= meaning.names
            lets.append((name, meaning))
    return frozenset(names), tuple(reversed(lets))


def _singled_out(node: Node, plan: Plan, rules: CandidateRules, settings: Mapping[str, int]) -> str:
    used, lets = _needed(node, plan)
    names = list(rules.sizes)
    for values in zip(*rules.sizes.values(), strict=False):
        case = dict(zip(names, values, strict=True))
        here = _value(node, lets, {**settings, **case})
        for name, size in case.items():
            if here is None or size < _LEAST_SIZE or name not in used:
                continue
            sizes = [*(size + away for away in _AWAY), *(size * by // 8 for by in _SCALES)]
            others = [_value(node, lets, {**settings, **case, name: other}) for other in sizes]
            if all(other is not None and bool(other) != bool(here) for other in others):
                return f"{name} = {size}"
    return ""


def _value(node: Node, lets: Lets, known: Mapping[str, int]) -> Scalar | None:
    values: dict[str, int | bool] = {**DEVICE, **known}
    for name, expression in lets:
        try:
            found = evaluate_node(expression.tree, values)
        except (Fault, KeyError):
            continue
        if isinstance(found, int):
            values[name] = found
    try:
        return evaluate_node(node, values)
    except (Fault, KeyError):
        return None
