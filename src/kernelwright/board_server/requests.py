"""What clients send, checked before anything looks at it."""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelwright.board_server.text import plain
from kernelwright.core.errors import KernelwrightError
from kernelwright.core.rules import MAX_SOURCE_BYTES
from kernelwright.core.toml_words import in_json_words, json_fault
from kernelwright.leaderboard.base import TAG, Mode

MAX_BODY_BYTES: Final = 2 * MAX_SOURCE_BYTES + 64 * 1024
"""A source whose every line break and quote is escaped, and the rest."""
MAX_ENTRY_NAME: Final = 60
USER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")


class Denied(KernelwrightError):  # noqa: N818 - reads as what happened
    """A request that is answered with an HTTP ``status`` and one line."""

    def __init__(self, status: int, message: str, retry_s: float | None = None) -> None:
        super().__init__(plain(message, 500))
        self.status = status
        self.retry_s = retry_s


class NewSubmission(BaseModel):
    """Body of a submission. ``configuration`` may leave tunables out: the first valid values are taken."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    source: str = Field(min_length=1)
    mode: Mode
    tag: str = Field(pattern=f"^{TAG.pattern}$")
    configuration: dict[Annotated[str, Field(max_length=100)], bool | int | float | str] = Field(
        default_factory=dict, max_length=64
    )
    file: str = Field(default="candidate.cu", pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,79}$")
    device: str = Field(default="", max_length=40)
    entry: str = Field(default="", max_length=MAX_ENTRY_NAME)


def read_submission(body: bytes) -> NewSubmission:
    """Raises Denied: 400 for what is no JSON, 413 for a large source, 422 for anything else."""
    try:
        sent = NewSubmission.model_validate_json(body)
    except ValidationError as error:
        status = 400 if json_fault(error) else 422
        raise Denied(status, in_json_words(error, body, "docs/boards.md", whole="body")) from None
    if len(sent.source.encode()) > MAX_SOURCE_BYTES:
        raise Denied(413, f"source: has more than {MAX_SOURCE_BYTES} bytes")
    return sent


def wants_every(query: Mapping[str, str]) -> bool:
    """Whether the table is to hold every ranked submission. Raises Denied for a word that means nothing."""
    entries = query.get("entries", "")
    if entries not in {"", "all"}:
        raise Denied(422, "entries: 'all' is the only word, for every ranked submission")
    return entries == "all"
