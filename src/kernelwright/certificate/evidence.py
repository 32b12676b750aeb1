"""What a campaign notes of a candidate that leads, read back for its certificate.

Notes of the memory, by key: ``sanitizer:ID`` (JSON of a :class:`~kernelwright.harness.protocol.SanitizerResult`),
``trials:ID`` (JSON list of the trials that ran and passed, see :func:`trials_note`), ``disqualified:ID``.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from kernelwright.core.outcome import Check
from kernelwright.harness.protocol import SanitizerResult

SANITIZER: Final = "sanitizer:"
TRIALS: Final = "trials:"
FAULT: Final = "disqualified:"

T = TypeVar("T")


@dataclass(frozen=True)
class TrialRun:
    """A trial that ran and passed, and the check that it belongs to."""

    id: str
    check: Check


@dataclass(frozen=True)
class Evidence:
    """``None`` is not recorded; an empty ``trials`` says that the problem has none."""

    trials: tuple[TrialRun, ...] | None = None
    sanitizer: SanitizerResult | None = None


_TRIALS: Final = TypeAdapter(tuple[TrialRun, ...])
_SANITIZER: Final = TypeAdapter(SanitizerResult)


def trials_note(trials: Iterable[tuple[str, Check]]) -> str:
    """Value of the note ``trials:ID`` from ids and checks of the trials that ran and passed."""
    return json.dumps([{"id": name, "check": check} for name, check in trials])


def read_evidence(notes: Mapping[str, str], candidates: Iterable[str]) -> Evidence:
    """What is noted of the first of the candidates that has a note; one that cannot be read counts as none."""
    names = [name for name in candidates if name]
    trials = _read(_TRIALS, notes, TRIALS, names)
    sanitizer = _read(_SANITIZER, notes, SANITIZER, names)
    return Evidence(trials, sanitizer)


def _read(adapter: TypeAdapter[T], notes: Mapping[str, str], kind: str, names: list[str]) -> T | None:
    note = next((notes[kind + name] for name in names if kind + name in notes), None)
    try:
        return None if note is None else adapter.validate_json(note)
    except ValidationError:
        return None
