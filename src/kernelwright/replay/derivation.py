"""Where a template may come from: the baseline, the catalogue, other candidates put together, a recorded reply."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Final

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.errors import PlanError, UserError
from kernelwright.core.identity import content_id
from kernelwright.generation.dispatch import DISPATCH, dispatch
from kernelwright.generation.reply import Proposed, apply_edits, parse_reply
from kernelwright.generation.source_text import without_comments
from kernelwright.memory.records import RequestRecord, TemplateRecord
from kernelwright.problems.loader import Problem, load_problem

CATALOGUE: Final = "catalogue"
BASELINE: Final = "baseline"


class Derivation:
    """Says of each template of a campaign whether it follows from what is recorded."""

    def __init__(
        self,
        problem: Problem,
        problem_name: str,
        *,
        slow: bool,
        templates: Iterable[TemplateRecord],
        requests: Sequence[RequestRecord],
    ) -> None:
        self._problem = problem
        self._slow = slow
        self._catalogue = _catalogue_ids(problem_name)
        self._templates = {record.id: record for record in templates}
        self._written: dict[str, list[tuple[str, str, str]]] = {}
        for request in requests:
            self._take(request)

    def fault(self, template: TemplateRecord, candidates: Mapping[str, Candidate]) -> str:
        """Why it does not follow, empty when it does. ``candidates`` are those that were known by then."""
        if template.proposer == BASELINE:
            own = content_id("template", _parsed(self._problem.baseline_source) or "")
            return "" if own == template.id else "it is not the problem's baseline"
        if template.proposer == CATALOGUE:
            known = self._catalogue is None or template.id in self._catalogue
            return "" if known else "the problem's catalogue has no such text (any more)"
        if template.proposer == DISPATCH:
            return self._dispatch_fault(template, candidates)
        written = self._written.get(template.id, [])
        if all(model != template.proposer for model, _, _ in written):
            return f"no recorded reply of {template.proposer} gives it"
        told = (template.proposer, template.rationale, template.predicted)
        return "" if told in written else "its rationale or prediction is not that of its reply"

    def _take(self, request: RequestRecord) -> None:
        """Note what a reply gives, with who wrote it and why."""
        for found in parse_reply(request.reply) if request.reply else ():
            if isinstance(found, Proposed):
                for name in self._texts(found):
                    told = (request.model, found.rationale, found.predicted)
                    self._written.setdefault(name, []).append(told)

    def _texts(self, found: Proposed) -> Iterator[str]:
        """Ids of what a proposal says; an edit is tried on every template that its parent may mean."""
        if found.kind == "template" and (text := _parsed(found.code)):
            yield content_id("template", text)
        if found.kind == "edit":
            for record in self._templates.values():
                if record.id.startswith(found.parent):
                    parent = parse_template(record.source, record.name)
                    code = apply_edits(without_comments(parent), found.edits)
                    if isinstance(code, str) and (text := _parsed(code)):
                        yield content_id("template", text)

    def _dispatch_fault(self, template: TemplateRecord, candidates: Mapping[str, Candidate]) -> str:
        missing = [parent for parent in template.parents if parent not in candidates]
        if missing:
            return f"its part {missing[0]} was not known yet"
        cases = self._problem.cases(slow=self._slow)
        expression, work = self._problem.size_of(cases)
        for division in _divisions(work, template.parents):
            proposal = dispatch(candidates, work, expression, division)
            if proposal is not None and proposal.template.id == template.id:
                return ""
        return "it is not its parts put together"


def _divisions(work: Mapping[str, int], names: Sequence[str]) -> Iterator[list[tuple[str, list[str]]]]:
    """Every way to give the named candidates, in their order, a run of the cases each."""
    cases = sorted(work, key=lambda case: work[case])
    for cuts in combinations(range(1, len(cases)), len(names) - 1):
        runs = pairwise((0, *cuts, len(cases)))
        yield [(name, cases[a:b]) for name, (a, b) in zip(names, runs, strict=True)]


def _parsed(text: str) -> str | None:
    """The text as a template keeps it; ``None`` when it is none."""
    try:
        return parse_template(text).source
    except PlanError:
        return None


def _catalogue_ids(problem: str) -> frozenset[str] | None:
    """Templates of the problem's catalogue here; ``None`` where it cannot be read."""
    try:
        texts = [source for _, source in load_problem(problem).catalogue()]
    except UserError:
        return None
    return frozenset(content_id("template", text) for source in texts if (text := _parsed(source)))
