"""Structure without a model: the templates that come with a problem, from naive to strong."""

import re

from kernelwright.core.candidate import Template
from kernelwright.core.plan import split_source
from kernelwright.core.text import one_line
from kernelwright.generation.base import Proposal
from kernelwright.problems.loader import Problem

_COMMENT = re.compile(r"\s*((?://[^\n]*\n\s*)+)")


class Catalogue:
    """Proposes every template of a problem's ``catalogue`` folder once, in order of their names."""

    def __init__(self, problem: Problem) -> None:
        self._left = list(problem.templates())

    async def propose(self) -> Proposal | None:
        """Next template of the catalogue."""
        if not self._left:
            return None
        template = self._left.pop(0)
        return Proposal(
            template=template,
            direction=template.name,
            proposer="catalogue",
            rationale=opening_comment(template),
        )


def opening_comment(template: Template) -> str:
    """The `//` comment that opens the code: what the template's author says of it, on one line."""
    _, _, body = split_source(template.source, template.name)
    match = _COMMENT.match(body)
    if match is None:
        return ""
    return one_line(" ".join(line.strip().lstrip("/").strip() for line in match[1].splitlines()))
