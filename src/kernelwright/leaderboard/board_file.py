"""``board.toml``: what a problem's folder keeps of the board that it comes from, beside ``problem.toml``.

The board's own files lie untouched in ``board/``; ``sources`` holds their SHA-256. Nothing here is executed.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kernelwright.core.errors import NoSuchFile, UserError
from kernelwright.core.files import decoded, read_bytes, read_text
from kernelwright.core.toml import TomlFault, parse_toml
from kernelwright.core.toml_words import in_words, strictly
from kernelwright.leaderboard.abi import Abi, Axis
from kernelwright.leaderboard.base import Limits, Ranking

BOARD_FILE: Final = "board.toml"
SOURCES_FOLDER: Final = "board"
MAX_BYTES: Final = 4 * 2**20
SUBMISSION: Final = "submission.py"
_SOURCE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")

Value = bool | int | float | str | tuple[int | float | str | bool, ...]
"""What a board's case may hold."""
Arguments = Mapping[str, Value]
"""A case as the board has it, such as ``size`` and ``seed``. Compared as dictionaries: the order means nothing."""


@dataclass(frozen=True)
class BoardCase:
    """A case of the board that counts, and the id of ours that stands for it (empty: none of ours does)."""

    arguments: Arguments
    case: str = ""


@dataclass(frozen=True)
class BoardFile:
    """A whole ``board.toml``. Cases are in the board's order: of ``last``, the last one alone counts.

    ``sources`` has the SHA-256 of every file in ``board/``; empty where the board's files were not kept, and then
    there is no official timing on this machine. ``language`` is the board's (``py``, ``cu``). ``limits`` in seconds
    and bytes. ``abi`` is ``None`` where nobody has said yet how arguments are handed over.
    """

    leaderboard: str
    ranking: Ranking
    cases: tuple[BoardCase, ...]
    gpus: tuple[str, ...] = ()
    tests: tuple[Arguments, ...] = ()
    abi: Abi | None = None
    limits: Limits = field(default_factory=Limits)
    benchmark_timeout_s: float | None = None
    language: str = "py"
    main: str = "eval.py"
    multi_gpu: bool = False
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def scored(self) -> tuple[BoardCase, ...]:
        """The cases of which the score is made."""
        return self.cases[-1:] if self.ranking is Ranking.LAST else self.cases


_ADAPTER: Final = TypeAdapter(BoardFile)


def read_board_file(folder: Path) -> BoardFile:
    """The ``board.toml`` of a problem's folder. Raises UserError: one line with file, key, fault."""
    path = folder / BOARD_FILE
    table = _table(path)
    _no_unknown(path, table, "", BoardFile)
    _no_unknown(path, table.get("abi"), "abi.", Abi)
    _no_unknown(path, table.get("limits"), "limits.", Limits)
    cases = table.get("cases")
    for index, entry in enumerate(cases if isinstance(cases, list) else []):
        _no_unknown(path, entry, f"cases[{index}].", BoardCase)
    try:
        board = strictly(_ADAPTER, table)
    except ValidationError as error:
        raise UserError(f"{path}: {in_words(error, table)}") from None
    if found := board_faults(board):
        raise UserError(f"{path}: {found[0][0]}: {found[0][1]}")
    return board


def read_sources(folder: Path, board: BoardFile) -> dict[str, str]:
    """The board's own files, by name, as they were imported. Raises UserError for the first that is not."""
    if not board.sources:
        raise UserError(f"{folder / BOARD_FILE}: sources: the board's files were not kept: import it again")
    return {name: _source(folder / SOURCES_FOLDER / name, digest) for name, digest in board.sources.items()}


def _source(path: Path, digest: str) -> str:
    try:
        data = read_bytes(path, MAX_BYTES)
    except NoSuchFile:
        raise UserError(f"{path}: is missing: import the board's problem again") from None
    if sha256(data).hexdigest() != digest:
        raise UserError(f"{path}: is not the file that was imported: import the board's problem again")
    return decoded(path, data)


def board_faults(board: BoardFile) -> list[tuple[str, str]]:
    """What the types of a board's file cannot say: keys, each with what is wrong there."""
    found = []
    if not board.leaderboard.strip() or not board.leaderboard.isprintable():
        found.append(("leaderboard", "is empty, or cannot be seen: give the board's name"))
    times = {
        "benchmark_timeout_s": board.benchmark_timeout_s,
        "limits.test_timeout_s": board.limits.test_timeout_s,
        "limits.ranked_timeout_s": board.limits.ranked_timeout_s,
    }
    for key, seconds in times.items():
        if seconds is not None and not 0 < seconds < math.inf:  # false for nan, too
            found.append((key, f"must be a time above 0 in seconds, not {seconds}"))
    if not board.cases:
        found.append(("cases", "is empty: a board has at least one"))
    if board.abi and not (board.abi.items and board.abi.returns and board.abi.entry.isidentifier()):
        found.append(("abi", "needs items, returns, and a function's name as entry"))
    for name, digest in board.sources.items():
        if not _SOURCE_NAME.match(name) or not re.fullmatch(r"[0-9a-f]{64}", digest):
            found.append((f"sources.{name!r}", "must be a plain file name with its SHA-256 in hex"))
    return found


def _table(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_text(path, MAX_BYTES))
    except NoSuchFile:
        raise UserError(
            f"{path}: there is none: this problem is of no board ('kernelwright board import' makes one)"
        ) from None
    except TomlFault as fault:
        raise UserError(f"{path}: {fault}") from None


def _no_unknown(
    path: Path, table: object, prefix: str, kind: type[BoardFile | Abi | Limits | BoardCase]
) -> None:
    """Dataclasses pass over what they do not know; a misspelt key would be lost without a word."""
    known = {f.name for f in fields(kind)}
    if isinstance(table, dict) and (unknown := sorted(set(table) - known)):
        raise UserError(f"{path}: {prefix}{unknown[0]}: is an unknown key: remove it")


def format_board_file(board: BoardFile) -> str:
    """The text that :func:`read_board_file` reads as ``board``."""
    top = {
        "leaderboard": board.leaderboard,
        "ranking": board.ranking.value,
        "gpus": board.gpus,
        "language": board.language,
        "main": board.main,
        "multi_gpu": board.multi_gpu,
        "benchmark_timeout_s": board.benchmark_timeout_s,
    }
    lines = [
        "# The board that this problem comes from. Its own files lie in board/, as they were.",
        *toml_pairs(top),
    ]
    lines += ["tests = [", *(f"  {toml_value(case)}," for case in board.tests), "]"] if board.tests else []
    if board.abi:
        abi = {f.name: getattr(board.abi, f.name) for f in fields(Abi)}
        lines += ["", "[abi]", *toml_pairs({**abi, "sizes": abi["sizes"] or None})]
    if limits := toml_pairs({f.name: getattr(board.limits, f.name) for f in fields(Limits)}):
        lines += ["", "[limits]", *limits]
    for case in board.cases:
        lines += ["", "[[cases]]", *toml_pairs({"case": case.case or None, "arguments": case.arguments})]
    if board.sources:
        lines += ["", "[sources]", *(f"{toml_key(n)} = {toml_value(d)}" for n, d in board.sources.items())]
    return "\n".join(lines) + "\n"


def toml_pairs(table: Mapping[str, object]) -> list[str]:
    """Lines of a table; what is ``None`` is left out."""
    return [f"{toml_key(name)} = {toml_value(value)}" for name, value in table.items() if value is not None]


def toml_key(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: object) -> str:
    """A value on one line: strings, numbers, booleans, sequences, tables, sizes of tensors."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Axis):
        return f"{{ argument = {_string(value.argument)}, axis = {value.axis} }}"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{toml_key(str(k))} = {toml_value(v)}" for k, v in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)


def _string(text: str) -> str:
    """A basic string; what TOML allows nowhere (halves of surrogate pairs) becomes a question mark."""
    names = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    shown = (
        names.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c)
        for c in text.encode("utf-8", "replace").decode()
    )
    return f'"{"".join(shown)}"'
