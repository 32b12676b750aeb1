"""What the templates of all views share."""

from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kernelwright.report import numbers


def environment(finalize: Callable[[Any], Any]) -> Environment:
    """Undefined names are errors; every value passes ``finalize`` before it is written."""
    env = Environment(
        loader=PackageLoader("kernelwright.report.views"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(
        ms=numbers.milliseconds,
        duration=numbers.duration,
        percent=numbers.percent,
        ratio=numbers.ratio,
        plain=numbers.plain,
    )
    return env
