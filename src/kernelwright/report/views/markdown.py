"""The report as Markdown, for a pull request or a mail."""

import re
from typing import Any, Final

from markupsafe import Markup

from kernelwright.report.models import DiffLine, Report
from kernelwright.report.text import visible
from kernelwright.report.views.environment import environment

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|#~])")


def as_markdown(report: Report) -> str:
    """The same as the HTML, without the pictures."""
    env = environment(_inline)
    env.filters.update(block=_block, patch=_patch, code=_code)
    return env.get_template("report.md.j2").render(report=report)


def _inline(value: Any) -> Any:
    """One line in which nothing of the text counts as markup."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    escaped = _SPECIAL.sub(r"\\\1", " ".join(visible(value).split()))
    return Markup(escaped)  # noqa: S704 - Markdown, not HTML


def _code(text: str) -> Markup:
    """A code span; ``Markup`` marks what is ready."""
    line = " ".join(visible(text).replace("|", "\\|").split())
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    pad = " " if "`" in line else ""
    return Markup(f"{fence}{pad}{line}{pad}{fence}")  # noqa: S704 - Markdown, not HTML


def _block(text: str, language: str = "") -> Markup:
    """A fenced block, its fence longer than any within."""
    shown = visible(text).strip("\n")
    fence = "`" * max(3, max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1)
    return Markup(f"{fence}{language}\n{shown}\n{fence}")  # noqa: S704 - Markdown, not HTML


def _patch(lines: tuple[DiffLine, ...]) -> Markup:
    return _block("\n".join(" ".join(line.text.splitlines()) for line in lines), "diff")
