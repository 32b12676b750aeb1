"""Faults of an export with their place in the candidate's file, as every other fault of a plan has it."""

import contextlib
from collections.abc import Iterator

from kernelwright.core.candidate import Template
from kernelwright.core.errors import ExpressionError, PlanError
from kernelwright.core.plan import split_source


@contextlib.contextmanager
def placed(template: Template) -> Iterator[None]:
    """An expression of the plan that cannot be used is a PlanError with line and column."""
    try:
        yield
    except ExpressionError as error:
        line, column = _place(template, error.text)
        column += error.column - 1 if column and error.column else 0
        what = f"{error.message} in {error.text!r}"
    else:
        return
    raise PlanError(what, template.name, line, column)


def first_line(template: Template) -> int:
    """Where the source behind the plan begins, from 1."""
    _, _, body = split_source(template.source, template.name)
    return template.source.count("\n", 0, len(template.source) - len(body)) + 1


def _place(template: Template, text: str) -> tuple[int, int]:
    """Line and column of the expression as it stands in the plan; the plan's first line where it is not found."""
    plan, begin, _ = split_source(template.source, template.name)
    lines = plan.split("\n")
    for wanted in (f'"{text}"', f"'{text}'", text):
        for number, content in enumerate(lines):
            if wanted in content:
                quote = int(wanted != text)
                return begin + number, content.index(wanted) + quote + 1
    return begin, 0
