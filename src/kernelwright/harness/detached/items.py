"""What a detached campaign asks the other machine, as items of its batches, and what of an answer is given out when."""

from dataclasses import replace

from kernelwright.core.candidate import Candidate
from kernelwright.devices.base import DuelResult, TimingProtocol
from kernelwright.harness.detached.records import (
    Item,
    ProblemFiles,
    Side,
    Source,
    Terms,
    canonical,
    source_id,
)
from kernelwright.problems.loader import Problem


def split_rounds(result: DuelResult, rounds: int) -> tuple[DuelResult, DuelResult]:
    """The first rounds of a duel, and the others: without cases when one of them has none left."""
    first = [
        replace(c, challenger_ms=c.challenger_ms[:rounds], incumbent_ms=c.incumbent_ms[:rounds])
        for c in result.cases
    ]
    rest = [
        replace(c, challenger_ms=c.challenger_ms[rounds:], incumbent_ms=c.incumbent_ms[rounds:], discarded=0)
        for c in result.cases
    ]
    left = all(c.challenger_ms and c.incumbent_ms for c in rest)
    return replace(result, cases=tuple(first)), replace(
        result, cases=tuple(rest if left else ()), seconds=0.0
    )


def subject_of(item: Item) -> bytes:
    """What a request about one candidate is about."""
    return canonical(item.sides[0].model_dump(mode="json"))


def item_about(kind: str, *candidates: Candidate, **values: object) -> tuple[Item, dict[str, Source]]:
    """A request about candidates, and their sources by id."""
    sources = {
        source_id(c.template.source): Source(name=c.template.name[:200], text=c.template.source)
        for c in candidates
    }
    sides = tuple(
        Side(template=source_id(c.template.source), configuration=dict(c.configuration)) for c in candidates
    )
    return Item.model_validate({"kind": kind, "sides": sides, **values}), sources


def terms_of(problem: Problem, *, slow_cases: bool, seed: int, timing: TimingProtocol) -> Terms:
    """What a batch says of its problem, with the problem's files."""
    files = ProblemFiles(
        id=problem.id,
        name=problem.name,
        toml=problem.toml,
        reference=problem.reference_source,
        baseline=problem.baseline_source,
    )
    cases = tuple(case.id for case in problem.cases(slow=slow_cases))
    return Terms(problem=files, slow_cases=slow_cases, seed=seed, timing=timing, cases=cases)
