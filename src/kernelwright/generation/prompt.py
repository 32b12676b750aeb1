"""Prompts: few true numbers, rendered from what the notebook holds. Bounded in tokens, flat in time."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from kernelwright.core.candidate import Candidate, Template
from kernelwright.core.device import DeviceFacts
from kernelwright.core.objective import ELIGIBLE_RATIO, Objective, ObjectiveName
from kernelwright.generation.author import Broken, Prompt
from kernelwright.generation.notebook import Failure, Lineage, Notebook, Seen
from kernelwright.generation.source_text import without_comments
from kernelwright.problems.loader import Case, Problem

LIMIT_CHARS: Final = 60_000
"""About 17,000 tokens: code has some 3.5 characters a token."""
LEAST_ROWS: Final = 6
_LINE: Final = re.compile(r"\bline (\d+)\b")
_AROUND: Final = 3
_WIDTH: Final = 300
_CUT: Final = "\n[cut]\n"


@dataclass(frozen=True)
class BoardPlace:
    """Where we stand on a leaderboard. Gaps are shares of our score that have to go; ``None`` is not known.

    ``wanted`` is the place that the goal asks for, unless it is the next one anyway. ``case`` is the one with the
    largest ``ratio`` of our time ``against`` its floor, or the best known.
    """

    rank: int
    entries: int
    score_ms: float
    next_gap: float | None = None
    wanted: int | None = None
    wanted_gap: float | None = None
    case: str = ""
    ratio: float = 1.0
    against: str = ""


@dataclass(frozen=True)
class Ask:
    """What a prompt for structure says besides the problem: all of it facts, none of it decided by a model.

    ``floors_ms`` is the physical floor by case; ``reference`` another implementation's times (a vendor library).
    ``fastest`` has the best medians; it is the incumbent, or has still to beat that in paired runs. ``start`` is the
    candidate to work from, ``parents`` are others shown with their source, each with its cost over that of the fastest;
    ``emphasis`` says what is asked for.
    """

    wanted: int
    baseline_ms: Mapping[str, float]
    fastest: Candidate
    fastest_ms: Mapping[str, float]
    is_incumbent: bool
    start: tuple[Candidate, float]
    left: str
    floors_ms: Mapping[str, float] = field(default_factory=dict)
    reference_name: str = ""
    reference_ms: Mapping[str, float] = field(default_factory=dict)
    parents: Sequence[tuple[Candidate, float]] = ()
    findings: Sequence[str] = ()
    digest: str = ""
    goal: str = ""
    place: BoardPlace | None = None
    emphasis: str = ""
    paused: frozenset[str] = frozenset()


class PromptBuilder:
    """Renders prompts for one campaign. ``rules`` are the problem's rules in words."""

    def __init__(
        self,
        problem: Problem,
        facts: DeviceFacts,
        objective: Objective,
        cases: Sequence[Case],
        *,
        rules: Sequence[str] = (),
        ceilings: str = "",
        limit_chars: int = LIMIT_CHARS,
    ) -> None:
        self._problem = problem
        self._facts = facts
        self._objective = objective
        self._cases = cases
        self._rules = rules
        self._ceilings = ceilings
        self._limit = limit_chars
        self._stripped: dict[str, str] = {}
        # Text for a language model, not for a browser: nothing is escaped.
        self._environment = Environment(
            loader=PackageLoader("kernelwright.generation", "prompts"),
            undefined=StrictUndefined,
            autoescape=False,  # noqa: S701
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    @cached_property
    def instructions(self) -> str:
        """The part that stays the same in a campaign."""
        return self._render(
            "instructions.md.j2",
            device=self._device,
            sizes=self._problem.spec.size_names,
            rules=self._rules,
        )

    def structure(self, notebook: Notebook, ask: Ask) -> Prompt:
        """Ask for structure; what matters least is left out where the text would grow too long."""
        for parents, rows in ((len(ask.parents), 16), (1, 12), (0, 10), (0, LEAST_ROWS)):
            text = self._structure(notebook, ask, parents, rows)
            if len(text) <= self._limit:
                break
        return Prompt(self.instructions, text)

    def repair(self, broken: Broken) -> Prompt:
        """Ask to mend a draft: the reason, the lines it names, the draft as far as there is room."""
        lines = excerpt(broken.code, broken.reason + "\n" + broken.log)
        text = self._repair(broken, lines)
        if (more := len(text) - self._limit) > 0:
            text = self._repair(replace(broken, code=broken.code[: -more - len(_CUT)] + _CUT), lines)
        return Prompt(self.instructions, text[: self._limit])

    # -- parts ----------------------------------------------------------------------------------------

    def _repair(self, broken: Broken, lines: str) -> str:
        return self._render(
            "repair.md.j2",
            broken=broken,
            excerpt=lines,
            problem={"title": self._problem.spec.title, "signature": self._signature()},
        )

    def _structure(self, notebook: Notebook, ask: Ask, parents: int, rows: int) -> str:
        name = _name(ask)
        return self._render(
            "structure.md.j2",
            problem=self._problem_view,
            device=self._device,
            objective=_OBJECTIVES[self._objective.name],
            stand={"experiments": notebook.experiments, "left": ask.left},
            goal=ask.goal,
            place=ask.place,
            cases=[self._case(case, ask) for case in self._cases],
            has_floor=any(ask.floors_ms.values()),
            reference={"name": ask.reference_name} if ask.reference_ms else None,
            digest=ask.digest,
            fastest={"name": name, "is_incumbent": ask.is_incumbent},
            start={
                "name": name if ask.start[0] == ask.fastest else "the template to work from",
                **self._parent(*ask.start),
            },
            parents=[self._parent(*parent) for parent in ask.parents[:parents]],
            rows=self._rows(notebook, ask, rows),
            findings=ask.findings,
            directions=[self._direction(each, ask) for each in notebook.directions(16)],
            wanted=ask.wanted,
            emphasis=ask.emphasis,
        )

    def _render(self, name: str, **values: Any) -> str:
        return self._environment.get_template(name).render(**values)

    def _source(self, template: Template) -> str:
        if template.id not in self._stripped:
            if len(self._stripped) > 64:
                self._stripped.clear()
            self._stripped[template.id] = without_comments(template)
        return self._stripped[template.id]

    @cached_property
    def _device(self) -> dict[str, Any]:
        facts = self._facts
        return {
            "model": facts.model,
            "arch": facts.arch,
            "num_sms": facts.num_sms,
            "shared_kib": facts.max_shared_bytes >> 10,
            "l2_mib": facts.l2_bytes >> 20,
            "ceilings": f"; measured ceilings: {self._ceilings}" if self._ceilings else "",
        }

    @cached_property
    def _problem_view(self) -> dict[str, Any]:
        spec = self._problem.spec
        tolerance = {k: v for k, v in spec.tolerance.model_dump().items() if v}
        return {
            "title": spec.title,
            "description": spec.description.strip(),
            "arguments": [
                {
                    "name": a.name,
                    "dtype": a.dtype,
                    "shape": f"[{', '.join(a.shape)}]" if a.shape else f"= {a.value}",
                    "role": a.role,
                }
                for a in spec.arguments
            ],
            "tolerance": ", ".join(f"{k} {v:g}" for k, v in tolerance.items()) or "exact",
            "work": f"{spec.work.bytes} bytes, {spec.work.flops} flops",
        }

    def _signature(self) -> str:
        spec = self._problem.spec
        arrays = [f"{a.name}: {a.dtype} {a.role}" for a in spec.arguments]
        return ", ".join([*arrays, *(f"{size}: int32 size" for size in spec.size_names)])

    def _case(self, case: Case, ask: Ask) -> dict[str, str]:
        base, now = ask.baseline_ms.get(case.id), ask.fastest_ms.get(case.id)
        floor = ask.floors_ms.get(case.id) or None
        return {
            "id": case.id,
            "baseline": _ms(base),
            "fastest": _ms(now),
            "ratio": _ratio(now, base),
            "floor": _ms(floor),
            "to_floor": _ratio(now, floor),
            "reference": _ms(ask.reference_ms.get(case.id)),
        }

    def _parent(self, candidate: Candidate, ratio: float) -> dict[str, str]:
        return {
            "id": candidate.template.id[:10],
            "configuration": str(candidate.configuration),
            "ratio": f"{ratio:.3g}",
            "source": self._source(candidate.template),
        }

    def _rows(self, notebook: Notebook, ask: Ask, most: int) -> list[dict[str, str]]:
        cost = self._objective.cost(ask.fastest_ms)
        best = notebook.best(most // 3)
        different = notebook.different(most // 6, best)
        failures = notebook.instructive(most // 4)
        shown = {(seen.template, seen.configuration) for seen in (*best, *different)}
        shown |= {(f.example.template, f.example.configuration) for f in failures}
        left = max(1, most - len(best) - len(different) - len(failures))
        recent = [s for s in reversed(notebook.recent) if (s.template, s.configuration) not in shown]
        rows = [_row("best", seen, cost) for seen in best]
        rows += [_row("different", seen, cost) for seen in different]
        rows += [_failure_row(failure) for failure in failures]
        return rows + [_row("recent", seen, cost) for seen in recent[:left]]

    def _direction(self, lineage: Lineage, ask: Ask) -> dict[str, str]:
        parts = [f"{lineage.templates} templates, {lineage.experiments} experiments"]
        if lineage.best_ms < inf:
            ratio = lineage.best_ms / self._objective.cost(ask.fastest_ms)
            parts.append(f"best {ratio:.3g}x {_name(ask)}")
        elif lineage.experiments:
            parts.append("none passed")
        if lineage.dropped:
            parts.append(f"{lineage.dropped} proposals dropped")
        if lineage.tag in ask.paused:
            parts.append("paused after repeated failures: propose something else")
        return {"tag": lineage.tag, "text": ", ".join(parts)}


def _name(ask: Ask) -> str:
    """What the fastest candidate is called."""
    if not ask.is_incumbent:
        return "the fastest so far"
    return "the baseline" if ask.fastest_ms == ask.baseline_ms else "the incumbent"


_OBJECTIVES: Final = {
    ObjectiveName.SEED: "mean time over the cases plus a tenth of their standard deviation; a candidate that is more "
    f"than {ELIGIBLE_RATIO} times slower than the best known on any case is not eligible",
    ObjectiveName.GEOMEAN: "geometric mean of the times over the cases",
    ObjectiveName.MEAN: "mean time over the cases",
    ObjectiveName.LAST: "time of the last case",
}


def excerpt(code: str, reason: str, around: int = _AROUND) -> str:
    """The lines that a reason names, with some around them, numbered as the compiler counts."""
    lines = code.splitlines()
    named = sorted({int(n) for n in _LINE.findall(reason)} & set(range(1, len(lines) + 1)))[:4]
    wanted = sorted({n for line in named for n in range(line - around, line + around + 1)})
    return "\n".join(f"{n:4d}  {lines[n - 1][:_WIDTH]}" for n in wanted if 1 <= n <= len(lines))


def _row(kind: str, seen: Seen, cost_ms: float) -> dict[str, str]:
    if seen.cost_ms is None:
        return _failure_row(Failure(seen))
    result = f"{seen.cost_ms / cost_ms:.3f}x"
    if seen.static and seen.static.registers:
        result += f", {seen.static.registers} registers"
        occupancy = [
            k.theoretical_occupancy for k in seen.static.kernels if k.theoretical_occupancy is not None
        ]
        result += f", occupancy {min(occupancy):.0%}" if occupancy else ""
        result += f", {seen.static.spill_bytes} bytes spilled" if seen.static.spill_bytes else ""
    return _cells(kind, seen, result)


def _failure_row(failure: Failure) -> dict[str, str]:
    seen = failure.example
    times = f" ({failure.count} times)" if failure.count > 1 else ""
    return _cells("failed", seen, f"{seen.status}{times}: {seen.reason}")


def _cells(kind: str, seen: Seen, result: str) -> dict[str, str]:
    cells = {
        "kind": kind,
        "id": seen.template[:10],
        "name": seen.name,
        "direction": seen.direction,
        "configuration": seen.configuration or "-",
        "result": result,
    }
    return {name: text.replace("|", "/").replace("\n", " ") for name, text in cells.items()}


def _ms(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"


def _ratio(value: float | None, base: float | None) -> str:
    return "?" if not value or not base else f"{value / base:.3g}"
