"""One problem of GPU MODE as a record, from ``task.yml`` or from an entry of ``GET /leaderboards``.

Both hold the same keys; early task files lack some (no ``ranking_by`` means ``last``). Unknown keys are passed
over: the format grows. ``secret_seed``, which the board hands out to anybody, is never read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kernelwright.core.errors import UserError
from kernelwright.core.toml_words import in_words
from kernelwright.leaderboard.base import Ranking
from kernelwright.leaderboard.board_file import SUBMISSION, Arguments, Value
from kernelwright.leaderboard.kernelbot.facts import RANKINGS

UPLOAD: Final = "@SUBMISSION@"
"""Stands for the file that a user sends."""
MAX_CASES: Final = 1000
MAX_FILES: Final = 64
MAX_ITEMS: Final = 256
TASK_FILE: Final = "task.yml"
OWN_NAMES: Final = frozenset({TASK_FILE, "cases.txt", "cases.json"})
"""What lies beside a board's files: its task in board/, the asked cases when they run (``harness.official``)."""
FILE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z")
_DATES: Final = ("%Y-%m-%d %H:%M", "%Y-%m-%d")
_UNSAFE: Final = re.compile(r"[;\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Task:
    """A problem of a board: its cases, limits, ranking and files.

    ``sources`` maps names to texts, without the submission. ``tests`` and ``benchmarks`` in the board's order; times
    in seconds, ``None`` where the board does not say. ``deadline`` is Unix time. ``origin`` is for people.
    """

    origin: str
    name: str
    description: str
    language: str
    main: str
    sources: Mapping[str, str]
    tests: tuple[Arguments, ...]
    benchmarks: tuple[Arguments, ...]
    ranking: Ranking
    test_timeout_s: float | None = None
    benchmark_timeout_s: float | None = None
    ranked_timeout_s: float | None = None
    gpus: tuple[str, ...] = ()
    multi_gpu: bool = False
    deadline: float | None = None


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", text):
        raise ValueError("is no name: letters, digits and _ are")
    return text


def _case_value(value: Any) -> Value:
    items = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(item, bool | int | float | str) for item in items) or len(items) > MAX_ITEMS:
        raise ValueError("must be a number, a text, true or false, or a flat list of these")
    if any(isinstance(item, str) and _UNSAFE.search(item) for item in items):
        raise ValueError("holds ';' or control characters, which a case's line cannot")
    return items if isinstance(value, list | tuple) else value


def _file_name(text: str) -> str:
    if not FILE_NAME.match(text):
        raise ValueError("is no plain file name")
    if text.lower() in OWN_NAMES:
        raise ValueError(
            f"{text} is the name of a file of ours: the board's would be taken for it, or it for the board's"
        )
    return text


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


Seconds = Annotated[float, Field(gt=0, le=86_400)]
Case = Annotated[
    dict[Annotated[str, AfterValidator(_name)], Annotated[Any, AfterValidator(_case_value)]],
    Field(min_length=1, max_length=64),
]
FileName = Annotated[str, AfterValidator(_file_name)]
Gpu = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.+ -]+$")]


class SourceEntry(_Model):
    """One line of ``files``: the name at the runner, and where its text comes from."""

    name: FileName
    source: str = Field(min_length=1, max_length=400)


class _Config(_Model):
    main: FileName = "eval.py"


class TaskKeys(_Model):
    """The keys that a ``task.yml`` and ``task`` in the board's JSON have in common."""

    lang: Literal["py", "cu"] = "py"
    description: str = Field("", max_length=100_000)
    config: _Config = _Config()
    tests: tuple[Case, ...] = Field((), max_length=MAX_CASES)
    benchmarks: tuple[Case, ...] = Field((), max_length=MAX_CASES)
    test_timeout: Seconds | None = None
    benchmark_timeout: Seconds | None = None
    ranked_timeout: Seconds | None = None
    ranking_by: Literal["last", "mean", "geom", "geomean"] = "last"
    gpus: tuple[Gpu, ...] = ()
    multi_gpu: bool = False


class TaskEntry(TaskKeys):
    """A ``task.yml``: files lie beside it."""

    files: tuple[SourceEntry, ...] = Field(max_length=MAX_FILES)


class SentTask(TaskKeys):
    """``task`` in the board's JSON: files by name, with their texts."""

    files: dict[FileName, str] = Field(max_length=MAX_FILES)


class LeaderboardEntry(_Model):
    """One item of ``GET /leaderboards``."""

    name: str = Field(min_length=1, max_length=200)
    task: SentTask
    deadline: str | date | None = None
    gpu_types: tuple[Gpu, ...] = ()
    description: str = Field("", max_length=100_000)


def parse_entry(kind: type[BaseModel], value: Any, origin: str) -> Any:
    """``value`` as a record of ``kind``. Raises UserError: one line with file, key, fault."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise UserError(f"{origin}: {in_words(error, value)}") from None


def make_task(
    entry: TaskKeys,
    origin: str,
    *,
    name: str,
    sources: Mapping[str, str],
    gpus: tuple[str, ...] = (),
    deadline: float | None = None,
    description: str = "",
) -> Task:
    """A task of its checked keys. Raises UserError where files or cases make no sense together."""
    if not entry.benchmarks:
        raise UserError(f"{origin}: benchmarks: is empty: a board ranks by at least one case")
    if not name.isprintable() or not name.strip():
        raise UserError(f"{origin}: name: must be printable text")
    if odd := [file for file, text in sources.items() if not _encodes(text)]:
        raise UserError(f"{origin}: files.{odd[0]}: is no text that UTF-8 can hold")
    if entry.lang == "py" and entry.config.main not in sources:
        raise UserError(f"{origin}: config.main: {entry.config.main!r} is not among the files")
    return Task(
        origin=origin,
        name=name,
        description=_plain(description or entry.description),
        language=entry.lang,
        main=entry.config.main,
        sources=MappingProxyType(dict(sources)),
        tests=tuple(map(MappingProxyType, entry.tests)),
        benchmarks=tuple(map(MappingProxyType, entry.benchmarks)),
        ranking=_ranking(entry.ranking_by),
        test_timeout_s=entry.test_timeout,
        benchmark_timeout_s=entry.benchmark_timeout,
        ranked_timeout_s=entry.ranked_timeout,
        gpus=gpus or entry.gpus,
        multi_gpu=entry.multi_gpu,
        deadline=deadline,
    )


def _ranking(word: str) -> Ranking:
    """Task files also write ``geomean``."""
    return Ranking.GEOMEAN if word == "geomean" else RANKINGS[word]


def task_of_leaderboard(value: Any, origin: str) -> Task:
    """A task of one item of ``GET /leaderboards``, which holds everything. Raises UserError."""
    board: LeaderboardEntry = parse_entry(LeaderboardEntry, value, origin)
    sources = {name: text for name, text in board.task.files.items() if text != UPLOAD and name != SUBMISSION}
    return make_task(
        board.task,
        origin,
        name=board.name,
        sources=sources,
        gpus=board.gpu_types,
        deadline=unix_time(board.deadline, origin),
        description=board.description,
    )


def unix_time(value: str | date | None, origin: str) -> float | None:
    """Unix time of a deadline as boards write it; without a time zone it is UTC. Raises UserError."""
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, date):
        return _utc(datetime.combine(value, time()))
    if not value or not value.strip():
        return None
    try:
        return _utc(datetime.fromisoformat(value.strip()))
    except ValueError:
        pass
    for form in _DATES:
        try:
            return _utc(datetime.strptime(value.strip(), form).replace(tzinfo=UTC))
        except ValueError:
            continue
    raise UserError(f"{origin}: deadline: {_plain(value)[:60]!r} is no date such as 2026-02-21 7:30")


def _utc(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _plain(text: str) -> str:
    """Without what a terminal would obey."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def _encodes(text: str) -> bool:
    """Halves of surrogate pairs can be written nowhere."""
    return not any("\ud800" <= c <= "\udfff" for c in text)
