"""Faults of a plan that show after it was read, with their place in the file like those of reading it."""

import contextlib
from collections.abc import Iterator

from kernelwright.core.candidate import Template
from kernelwright.core.errors import ExpressionError, PlanError
from kernelwright.core.places import Places, shown
from kernelwright.core.plan import split_source
from kernelwright.core.space_rules import ORIGIN


@contextlib.contextmanager
def placed(template: Template, key: str = "") -> Iterator[None]:
    """What is raised inside about the plan is a PlanError with file, line and key.

    ``key`` is where an expression stands that cannot be used; without one its text is looked for.
    """
    try:
        yield
    except ExpressionError as error:
        found = _of_expression(template, error, key)
    except PlanError as error:
        if error.origin != ORIGIN:
            raise
        found = (
            plan_fault(template, error.message, error.key)
            if error.key
            else PlanError(error.message, template.name)
        )
    else:
        return
    raise found


def plan_fault(template: Template, message: str, key: str, needle: str = "") -> PlanError:
    """A fault of what ``key`` holds, at ``needle`` in it."""
    places = _places(template)
    line, column = places.find(key, needle) if places else (0, 0)
    return PlanError(f"{shown(key)}: {message}", template.name, line, column, key)


def first_line(template: Template) -> int:
    """Where the source behind the plan begins, from 1."""
    _, _, body = split_source(template.source, template.name)
    return template.source.count("\n", 0, len(template.source) - len(body)) + 1


def _of_expression(template: Template, error: ExpressionError, key: str) -> PlanError:
    places = _places(template)
    line, column = places.find(key, error.text) if places else (0, 0)
    if places and column:
        key = key or places.key_at(line)
        column += error.column - 1 if error.column else 0
    where = f"{shown(key)}: " if key else ""
    return PlanError(f"{where}{error.message} in {error.shown!r}", template.name, line, column, key)


def _places(template: Template) -> Places | None:
    """None for a template that was not made from a file."""
    try:
        plan, line, _ = split_source(template.source, template.name)
    except PlanError:
        return None
    return Places(plan, line)
