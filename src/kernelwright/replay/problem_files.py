"""A recorded problem as a folder again. Nothing but the memory is needed for it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kernelwright.core.errors import UserError
from kernelwright.memory.records import ProblemRecord
from kernelwright.problems.loader import LIBRARY_FILE, Problem, load_problem

_DELETE: Final = "\x7f"


def write_problem(
    record: ProblemRecord, folder: Path, catalogue: Mapping[str, str] | None = None, *, library: str = ""
) -> Problem:
    """Write the problem's files into a new folder; the problem they load as.

    A ``catalogue`` of sources by name and the text of a ``library`` come beside them: they are no part of the problem.

    Raises UserError, one line, when this version reads another problem out of them than was recorded.
    """
    folder.mkdir(parents=True)
    (folder / "problem.toml").write_text(as_toml(json.loads(record.spec)), encoding="utf-8")
    (folder / "reference.py").write_text(record.reference, encoding="utf-8", newline="")
    (folder / "baseline.cu").write_text(record.baseline, encoding="utf-8", newline="")
    if library:
        (folder / LIBRARY_FILE).write_text(library, encoding="utf-8", newline="")
    for name, source in (catalogue or {}).items():
        (folder / "catalogue").mkdir(exist_ok=True)
        (folder / "catalogue" / f"{name}.cu").write_text(source, encoding="utf-8", newline="")
    problem = load_problem(folder)
    if problem.id != record.id:
        raise UserError(
            f"{record.name}: this version of kernelwright reads the recorded problem {record.id} as {problem.id}: "
            "replay it with the version that recorded it"
        )
    return problem


def as_toml(table: Mapping[str, Any]) -> str:
    """A JSON object as TOML, one key a line; ``null`` is a key that is not there."""
    return "".join(f"{_text(key)} = {_value(value)}\n" for key, value in table.items() if value is not None)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_text(key)} = {_value(each)}" for key, each in value.items() if each is not None)
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def _text(text: str) -> str:
    """JSON's strings are TOML's but for the control character that only TOML forbids."""
    return json.dumps(text, ensure_ascii=False).replace(_DELETE, "\\u007f")
