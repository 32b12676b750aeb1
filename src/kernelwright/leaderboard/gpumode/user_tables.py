"""What a user says of an imported problem (``--arguments FILE.toml``): keys of ``problem.toml``, and the entry's."""

from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kernelwright.core.errors import UserError
from kernelwright.core.files import read_text
from kernelwright.core.homes import expanded
from kernelwright.core.toml import TomlFault, parse_toml
from kernelwright.core.toml_words import in_words, strictly
from kernelwright.leaderboard.abi import Axis
from kernelwright.problems.spec import (
    Argument,
    CaseSpec,
    Identifier,
    Rules,
    ToleranceSpec,
    TrialsSpec,
    Work,
)

MAX_BYTES: Final = 2**20


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class UserAbi(_Model):
    """``[abi]``: what of :class:`~kernelwright.leaderboard.abi.Abi` the user knows better."""

    items: tuple[str, ...] = ()
    returns: str = ""
    style: Literal["tuple", "single", "dict"] | None = None
    sizes: dict[str, Axis] = Field(default_factory=dict)
    entry: str = "custom_kernel"


class UserTables(_Model):
    """All of it is optional; what is given goes before what was read off the board's files.

    ``sizes`` names the integer arguments of the cases of which shapes are made. ``inputs`` as in ``problem.toml``.
    """

    title: str = ""
    arguments: tuple[Argument, ...] = ()
    sizes: tuple[Identifier, ...] = ()
    inputs: dict[str, Any] = Field(default_factory=dict)
    tolerance: ToleranceSpec | None = None
    work: Work | None = None
    rules: Rules | None = None
    trials: TrialsSpec | None = None
    goal: dict[str, Any] = Field(default_factory=dict)
    slow_cases: tuple[CaseSpec, ...] = ()
    abi: UserAbi = UserAbi()


_ADAPTER: Final = TypeAdapter(UserTables)


def read_user_tables(path: Path) -> UserTables:
    """A user's file. Raises UserError: one line with file, key, fault."""
    text = read_text(expanded(path), MAX_BYTES)
    try:
        table = parse_toml(text)
    except TomlFault as fault:
        raise UserError(f"{path}: {fault}") from None
    try:
        return strictly(_ADAPTER, table)
    except ValidationError as error:
        raise UserError(f"{path}: {in_words(error, table, 'docs/boards.md')}") from None
