"""Reads tasks of GPU MODE: a folder with ``task.yml`` beside its sources, or the board's JSON in a file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from kernelwright.core.errors import MissingError, UserError
from kernelwright.core.files import read_text
from kernelwright.core.homes import expanded
from kernelwright.core.toml import MAX_BITS, holds_long_integer
from kernelwright.leaderboard.board_file import SUBMISSION
from kernelwright.leaderboard.gpumode.task import (
    TASK_FILE,
    UPLOAD,
    Gpu,
    SourceEntry,
    Task,
    TaskEntry,
    make_task,
    parse_entry,
    task_of_leaderboard,
    unix_time,
)
from kernelwright.leaderboard.known import known_credentials
from kernelwright.leaderboard.untrusted import scrubbed

MAX_YAML_BYTES: Final = 2**20
MAX_JSON_BYTES: Final = 64 * 2**20
MAX_SOURCE_BYTES: Final = 4 * 2**20
_INSTALL: Final = "reading task.yml needs PyYAML: pip install 'kernelwright[board]'"


class _Listed(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    directory: str = ""
    name: str = Field(min_length=1, max_length=200)
    deadline: str | date | None = None
    gpus: tuple[Gpu, ...] = ()


class _Competition(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    problems: tuple[_Listed, ...] = Field((), max_length=10_000)


@dataclass(frozen=True)
class _Place:
    """What a competition's file says of a folder."""

    name: str
    gpus: tuple[str, ...] = ()
    deadline: float | None = None


def read_task_folder(path: Path, *, root: Path | None = None, name: str = "") -> Task:
    """The task in a folder (or its ``task.yml``), with the texts of its files.

    Files lie inside ``root``: by default the repository that the folder is in, else its parent. ``name`` is the
    leaderboard's, by default what the competition's file beside the parent says, else the folder's name.
    Raises UserError (one line with file and key), MissingError without PyYAML.
    """
    path = expanded(path)
    file = path if path.suffix in {".yml", ".yaml"} else path / TASK_FILE
    if file is not path and path.exists() and not path.is_dir():
        raise UserError(
            f"{path}: is no folder with a {TASK_FILE}, and no .yml or .json file: give one of these"
        )
    entry: TaskEntry = parse_entry(TaskEntry, _yaml(file), str(file))
    folder = file.resolve().parent
    sources = {TASK_FILE: read_text(file, MAX_YAML_BYTES)}
    sources |= _sources(file, entry.files, root or _root(folder))
    place = _place(folder, name)
    return make_task(
        entry, str(file), name=place.name, sources=sources, gpus=place.gpus, deadline=place.deadline
    )


def read_task_json(path: Path, *, name: str = "") -> Task:
    """The task of that name in a saved answer of ``GET /leaderboards`` (or of the only one). Raises UserError."""
    text = read_text(expanded(path), MAX_JSON_BYTES)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None
    return pick_task(scrubbed(value, known_credentials(None)), str(path), name)


def pick_task(value: Any, origin: str, name: str = "") -> Task:
    """The task of that name in an answer of ``GET /leaderboards``. Raises UserError."""
    entries = value if isinstance(value, list) else [value]
    found = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
    named = {entry["name"][:200]: entry for entry in found}
    if not named and not name:
        raise UserError(f"{origin}: names no leaderboard: give an answer of /leaderboards")
    if not name and len(named) == 1:
        name = next(iter(named))
    if name not in named:
        known = ", ".join(sorted(filter(str.isprintable, named))) or "none"
        raise UserError(f"{origin}: there is no leaderboard {name!r} (there are: {known[:500]})")
    return task_of_leaderboard(named[name], f"{origin}: {name!r}")


def _sources(file: Path, files: tuple[SourceEntry, ...], root: Path) -> Mapping[str, str]:
    root = expanded(root).resolve()
    texts: dict[str, str] = {}
    for index, entry in enumerate(files):
        key = f"{file}: files[{index}]"
        if entry.source == UPLOAD or entry.name == SUBMISSION:
            continue
        if entry.name in texts:
            raise UserError(f"{key}.name: {entry.name!r} is there twice: remove one")
        source = (file.parent / entry.source).resolve()
        if not source.is_relative_to(root):
            raise UserError(
                f"{key}.source: {entry.source!r} lies outside {root}: give --root if that is meant"
            )
        if not source.exists():
            raise UserError(f"{key}.source: there is no file {source}")
        if not source.is_file():
            raise UserError(f"{key}.source: {source} is no ordinary file")
        texts[entry.name] = read_text(source, MAX_SOURCE_BYTES)
    return texts


def _root(folder: Path) -> Path:
    """The repository around a folder; else its parent, where shared files lie."""
    for above in (folder, *folder.parents):
        if (above / ".git").exists():
            return above
    return folder.parent


def _place(folder: Path, name: str) -> _Place:
    """Of ``set/problem`` the file ``set.yaml`` beside ``set`` tells the leaderboard's name, GPUs and deadline."""
    competition = folder.parent.parent / f"{folder.parent.name}.yaml"
    if not competition.is_file():
        return _Place(name or folder.name)
    listed: _Competition = parse_entry(_Competition, _yaml(competition), str(competition))
    directory = f"{folder.parent.name}/{folder.name}"
    for entry in listed.problems:
        if entry.directory.strip("/") == directory and name in {"", entry.name}:
            return _Place(entry.name, entry.gpus, unix_time(entry.deadline, str(competition)))
    return _Place(name or folder.name)


def _yaml(path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingError(_INSTALL) from None
    text = read_text(path, MAX_YAML_BYTES)
    try:
        value = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid YAML: {' '.join(str(error).split())[:200]}") from None
    if holds_long_integer(value):
        raise UserError(f"{path}: not valid YAML: an integer of more than {MAX_BITS} bits")
    if not isinstance(value, dict):
        raise UserError(f"{path}: not a task: the file must hold keys such as files, tests, benchmarks")
    return value
