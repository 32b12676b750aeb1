"""A template made of others: for every case the candidate that was best there.

The best configuration differs from size to size, and the ``seed`` objective forbids to sacrifice a size. So the
search ends each round by putting its specialists together: each keeps its code, in a namespace of its own, and
its launches get a condition on the case's work.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Final

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.expressions import Expression, parse
from kernelwright.core.plan import COMPILER_PREFIX, Launch, Plan, Scratch, split_source
from kernelwright.core.plan_format import format_plan
from kernelwright.core.space import Tunable
from kernelwright.generation.base import Proposal

DISPATCH: Final = "dispatch"
MAX_PARTS: Final = 4
_INCLUDE: Final = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)
_DEFINE: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_WORD: Final = re.compile(r"\b[A-Za-z_]\w*\b")


@dataclass(frozen=True)
class Part:
    """A candidate for the cases whose work is above ``above`` and at most ``up_to`` (``None``: no limit)."""

    candidate: Candidate
    above: int | None
    up_to: int | None


def divide(work: Mapping[str, int], times: Mapping[str, Mapping[str, float]]) -> list[tuple[str, list[str]]]:
    """Cut the cases, sorted by work, into at most four runs and give each to the candidate that is fastest there.

    ``work`` is by case, ``times`` in ms by candidate and case. Minimises the sum of the times; a part has to pay
    for itself with half a percent. Cases of equal work are never parted.
    """
    cases = sorted(work, key=lambda case: work[case])
    cuts = [0] + [i for i in range(1, len(cases)) if work[cases[i]] > work[cases[i - 1]]] + [len(cases)]
    segments = {
        (a, b): min(((sum(t[c] for c in cases[a:b]), name) for name, t in times.items()), default=(inf, ""))
        for a in cuts
        for b in cuts
        if a < b
    }
    best: list[dict[int, tuple[float, tuple[int, ...]]]] = [{0: (0.0, (0,))}]
    for _ in range(MAX_PARTS):
        found: dict[int, tuple[float, tuple[int, ...]]] = {}
        for (a, b), (time, _name) in segments.items():
            if a in best[-1]:
                total, path = best[-1][a]
                found[b] = min(found.get(b, (inf, ())), (total + time, (*path, b)))
        best.append(found)
    ways = [layer[len(cases)] for layer in best[1:] if len(cases) in layer]
    chosen = ways[0]
    for way in ways[1:]:
        if way[0] < 0.995 * chosen[0]:
            chosen = way
    return [(segments[a, b][1], cases[a:b]) for a, b in pairwise(chosen[1])]


def dispatch(
    candidates: Mapping[str, Candidate],
    work: Mapping[str, int],
    work_expression: str,
    division: Sequence[tuple[str, Sequence[str]]],
) -> Proposal | None:
    """The proposal for a division; ``None`` where the parts cannot live in one file."""
    parts = []
    above: int | None = None
    for position, (name, cases) in enumerate(division):
        up_to = None
        if position + 1 < len(division):
            following = min(work[case] for case in division[position + 1][1])
            up_to = (max(work[case] for case in cases) + following) // 2
        parts.append(Part(candidates[name], above, up_to))
        above = up_to
    template = compose(parts, work_expression)
    if template is None:
        return None
    described = "; ".join(
        f"{part.candidate}" + (f" up to {part.up_to} of work" if part.up_to else "") for part in parts
    )
    return Proposal(
        template=template,
        direction=DISPATCH,
        proposer=DISPATCH,
        rationale=f"the fastest candidate for each range of sizes: {described}",
        predicted="the best known time on every case",
        parents=tuple(part.candidate.id for part in parts),
    )


def compose(parts: Sequence[Part], work_expression: str) -> Template | None:
    """One template of several candidates; ``None`` when their compiler settings or includes cannot be joined."""
    settings = {_settings(part.candidate) for part in parts}
    bodies = [split_source(p.candidate.template.source, p.candidate.template.name)[2] for p in parts]
    if len(settings) != 1 or any(not _can_hoist(body) for body in bodies):
        return None
    plans = [_plan(part, f"P{n}_", work_expression) for n, part in enumerate(parts)]
    plan = Plan(
        tunables=(),
        compiler=tuple(Tunable(name, (value,)) for name, value in next(iter(settings))),
        constraints=(),
        let=tuple(entry for p in plans for entry in p.let),
        scratch=tuple(entry for p in plans for entry in p.scratch),
        launches=tuple(launch for p in plans for launch in p.launches),
        atomic_noise=any(p.atomic_noise for p in plans),
    )
    includes = dict.fromkeys(line.strip() for body in bodies for line in _INCLUDE.findall(body))
    text = [
        format_plan(plan),
        "// Made of other candidates: each has the range of sizes in which it is the fastest.",
        *includes,
    ]
    text += [_code(part, body, n) for n, (part, body) in enumerate(zip(parts, bodies, strict=True))]
    return parse_template("\n".join(text) + "\n", DISPATCH)


def _settings(candidate: Candidate) -> tuple[tuple[str, int | bool], ...]:
    items = candidate.configuration.items()
    return tuple((k, v) for k, v in items if k.startswith(COMPILER_PREFIX) and isinstance(v, int))


def _can_hoist(body: str) -> bool:
    """Includes can be moved to the top when none stands inside an ``#if``."""
    depth = 0
    for line in body.splitlines():
        word = line.strip().removeprefix("#").strip()
        if line.strip().startswith("#"):
            depth += word.startswith("if")
            depth -= word.startswith("endif")
            if word.startswith("include") and depth:
                return False
    return True


def _plan(part: Part, prefix: str, work: str) -> Plan:
    """The part's plan with its names prefixed, its tunables fixed, its launches under a condition."""
    plan, configuration = part.candidate.template.plan, part.candidate.configuration
    own = {t.name for t in plan.tunables} | {name for name, _ in plan.let} | {s.name for s in plan.scratch}

    def renamed(expression: Expression) -> Expression:
        return parse(_WORD.sub(lambda m: prefix + m[0] if m[0] in own else m[0], expression.text))

    def all_renamed(expressions: tuple[Expression, ...]) -> tuple[Expression, ...]:
        return tuple(renamed(expression) for expression in expressions)

    def launch(entry: Launch) -> Launch:
        limits = [f"({work}) > {part.above}"] if part.above is not None else []
        limits += [f"({work}) <= {part.up_to}"] if part.up_to is not None else []
        limits += [f"({renamed(entry.when).text})"] if entry.when is not None else []
        return replace(
            entry,
            kernel=prefix + entry.kernel,
            grid=all_renamed(entry.grid),
            block=all_renamed(entry.block),
            args=all_renamed(entry.args),
            cluster=all_renamed(entry.cluster),
            dynamic_shared_bytes=renamed(entry.dynamic_shared_bytes),
            when=parse(" and ".join(limits)) if limits else None,
        )

    fixed = [(prefix + t.name, parse(str(int(configuration[t.name])))) for t in plan.tunables]
    return Plan(
        tunables=(),
        compiler=(),
        constraints=(),
        let=(*fixed, *((prefix + name, renamed(expression)) for name, expression in plan.let)),
        scratch=tuple(Scratch(prefix + s.name, s.dtype, all_renamed(s.shape)) for s in plan.scratch),
        launches=tuple(launch(entry) for entry in plan.launches),
        atomic_noise=plan.atomic_noise,
    )


def _code(part: Part, body: str, number: int) -> str:
    """The part's code in a namespace; its macros and kernel names stand for the prefixed ones there."""
    prefix = f"P{number}_"
    template = part.candidate.template
    macros = [t.name for t in template.plan.tunables] + [name for name, _ in template.plan.fixed_let]
    renames = [*macros, *template.kernels]
    code = _INCLUDE.sub("", body).strip()
    defined = dict.fromkeys([*renames, *_DEFINE.findall(code)])
    return "\n".join(
        [
            f"namespace part{number} {{",
            *(f"#define {name} {prefix}{name}" for name in renames),
            code,
            *(f"#undef {name}" for name in defined),
            "}",
            *(f"using part{number}::{prefix}{kernel};" for kernel in template.kernels),
        ]
    )
