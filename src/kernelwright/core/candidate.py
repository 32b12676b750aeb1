"""Template + Configuration = Candidate."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import PlanError
from kernelwright.core.identity import content_id
from kernelwright.core.plan import Plan, parse_plan, split_source
from kernelwright.core.plan_format import format_plan

_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Template:
    """One ``.cu`` file: device code, launch plan and declared tunables.

    ``name`` is for people; identity is the content: ``id`` hashes the whole text.
    """

    name: str
    source: str
    plan: Plan = field(compare=False, repr=False)

    @cached_property
    def id(self) -> str:
        """Content hash of the source text."""
        return content_id("template", self.source)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels that the plan launches, each once, in order."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.plan.launches))


def parse_template(text: str, name: str = "candidate.cu") -> Template:
    """Template from the text of a ``.cu`` file. Raises PlanError with the line and column in the file."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if odd := _NO_TEXT.search(text):
        raise PlanError(
            "the source holds a character that is no text (NUL, or half of a surrogate pair)",
            name,
            text.count("\n", 0, odd.start()) + 1,
            odd.start() - text.rfind("\n", 0, odd.start()),
        )
    return Template(name=name, source=text, plan=parse_plan(text, name))


def format_template(template: Template) -> str:
    """Text with the plan in canonical form; parsing it gives the same plan and the same code."""
    _, _, body = split_source(template.source, template.name)
    return format_plan(template.plan) + body


@dataclass(frozen=True)
class Candidate:
    """What is compiled and measured. Equal content has an equal id, in every campaign."""

    template: Template
    configuration: Configuration

    @cached_property
    def id(self) -> str:
        """Content hash of the template's source and the configuration."""
        return content_id("candidate", self.template.source, self.configuration.key)

    def __str__(self) -> str:
        values = str(self.configuration)
        return f"{self.template.name} [{values}]" if values else self.template.name
