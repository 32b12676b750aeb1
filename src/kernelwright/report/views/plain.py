"""The report as JSON."""

import json
from dataclasses import asdict
from math import isfinite
from typing import Any

from kernelwright.report.models import Report


def as_json(report: Report) -> str:
    """One object, fields as in :mod:`kernelwright.report.models`; what is no number is null."""
    return json.dumps(_finite(asdict(report)), indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
