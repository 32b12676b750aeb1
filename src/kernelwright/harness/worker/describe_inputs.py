"""Calls a board's ``generate_input`` and says what it returns. Runs as a confined script, beside ``reference.py``.

``python -m kernelwright.harness.worker.describe_inputs CASES``: a JSON list of arguments; the answer, JSON too, goes to
the descriptor ``POPCORN_FD`` (read by ``leaderboard.gpumode.described``). Errors are Python's own on stderr.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main(arguments: list[str]) -> None:
    """Describe every case."""
    sys.path.insert(0, "")
    cases = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    generate: Callable[..., Any] = importlib.import_module("reference").generate_input
    answer = json.dumps([_described(generate(**case)) for case in cases]).encode()
    with os.fdopen(int(os.environ["POPCORN_FD"]), "wb") as said:
        said.write(answer)


def _described(data: Any) -> dict[str, Any]:
    if isinstance(data, dict):
        return {"style": "dict", "names": list(map(str, data)), "items": [_item(v) for v in data.values()]}
    if isinstance(data, tuple | list):
        return {"style": "tuple", "items": [_item(value) for value in data]}
    return {"style": "single", "items": [_item(data)]}


def _item(value: Any) -> dict[str, Any]:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dense = value.is_contiguous() if hasattr(value, "is_contiguous") else value.flags["C_CONTIGUOUS"]
        return {"dtype": str(value.dtype), "shape": list(value.shape), "dense": bool(dense)}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"number": value}
    return {"other": type(value).__name__[:100]}


if __name__ == "__main__":
    main(sys.argv[1:])
