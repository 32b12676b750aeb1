"""One file of a gauntlet: a candidate, and what is said of it in its lines ``// gauntlet: KEY = VALUE``."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from kernelwright.core.errors import UserError
from kernelwright.core.files import read_text, unreadable
from kernelwright.core.looking import is_folder, is_there
from kernelwright.core.outcome import Check
from kernelwright.core.toml import TomlFault, parse_toml
from kernelwright.core.toml_words import in_words, strictly
from kernelwright.problems.loader import load_problem

Kind = Literal["cheat", "honest"]
MAX_FILE_BYTES: Final = 4 * 2**20
_LINE = re.compile(r"^// gauntlet:[ \t]*(.*)$", re.MULTILINE)


class Header(BaseModel):
    """What a file says of itself; together its lines are one TOML table.

    ``checks`` are the checks that may catch a cheat: another one catches it by accident. ``needs = "cuda"`` marks
    device code that the cpu device cannot run, ``needs = "cpu"`` what would be no cheat on a GPU.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    problem: str = Field(min_length=1)
    kind: Kind
    row: str = ""
    checks: tuple[Check, ...] = ()
    needs: Literal["", "cuda", "cpu"] = ""

    @model_validator(mode="after")
    def _cheats_name_what_they_play(self) -> Self:
        if self.kind == "cheat" and not (self.row and self.checks):
            raise ValueError("a cheat needs 'row' (what it plays) and 'checks' (what may catch it)")
        if self.kind == "honest" and self.checks:
            raise ValueError("no check may catch an honest candidate: leave out 'checks'")
        return self


_ADAPTER: Final = TypeAdapter(Header)


@dataclass(frozen=True)
class Entry:
    """A candidate of a gauntlet. ``file`` is relative to the gauntlet's folder; ``problem`` a name or a folder.

    ``path`` is the file as messages name it.
    """

    file: str
    problem: str
    kind: Kind
    row: str
    checks: tuple[Check, ...]
    needs: str
    text: str = field(repr=False)
    path: str = ""


def load_entries(folder: Path) -> tuple[Entry, ...]:
    """All entries below a folder, ordered by file. Problem folders (with a ``problem.toml``) hold none.

    Raises UserError: one line with the file, what is wrong and how to mend it.
    """
    if not is_folder(folder):
        raise UserError(f"{folder}: there is no such folder")
    files = sorted(_files(folder))
    if not files:
        raise UserError(f"{folder}: holds no .cu file with lines '// gauntlet: KEY = VALUE'")
    return tuple(_load(path, folder) for path in files)


def _files(folder: Path) -> Iterator[Path]:
    """Everything below that is called a ``.cu`` file, through links too.

    Raises UserError for what cannot be looked into: a cheat that nobody reads would count as none.
    """

    def refuse(error: OSError) -> None:
        raise UserError(f"{error.filename}: {unreadable(error)}")

    seen = set()
    for where, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        here, real = Path(where), os.path.realpath(where)
        if real in seen or (here != folder and "problem.toml" in names):
            folders.clear()
            continue
        seen.add(real)
        for path in (here / name for name in (*names, *folders)):
            if not is_there(path):
                raise UserError(f"{path}: its link leads nowhere that can be read: mend or remove it")
            if path.suffix == ".cu":
                yield path


def check_problems(entries: Sequence[Entry]) -> None:
    """Raises UserError for a problem that cannot be loaded: one line with the file that names it."""
    for problem, entry in {entry.problem: entry for entry in entries}.items():
        try:
            load_problem(problem)
        except UserError as error:
            raise UserError(f"{entry.path or entry.file}: gauntlet: problem: {error}") from None


def _load(path: Path, folder: Path) -> Entry:
    text = read_text(path, MAX_FILE_BYTES)
    header = _header(text, path)
    own = folder / header.problem
    return Entry(
        file=path.relative_to(folder).as_posix(),
        problem=str(own.resolve()) if is_there(own / "problem.toml") else header.problem,
        kind=header.kind,
        row=header.row,
        checks=header.checks,
        needs=header.needs,
        text=text,
        path=str(path),
    )


def _header(text: str, path: Path) -> Header:
    lines = list(_LINE.finditer(text))
    if not lines:
        raise UserError(
            f"{path}: lacks its lines '// gauntlet: KEY = VALUE' (problem, kind; a cheat: row, checks)"
        )
    try:
        table = parse_toml("".join(f"{line[1]}\n" for line in lines))
    except TomlFault as fault:
        if not 0 < fault.line <= len(lines):
            raise UserError(f"{path}: gauntlet: {fault}") from None
        line = lines[fault.line - 1]
        place = f"{path}:{text.count(chr(10), 0, line.start()) + 1}"
        raise UserError(f"{place}: gauntlet: not valid TOML: {fault.message}: {line[1][:80]}") from None
    try:
        return strictly(_ADAPTER, table)
    except ValidationError as error:
        raise UserError(f"{path}: gauntlet: {in_words(error, table)}") from None
