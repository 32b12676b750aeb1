"""Texts of a server are data: one bounded line without control characters, and never the credential."""

from typing import Final

from pydantic import JsonValue
from pydantic_core import from_json

from kernelwright.leaderboard.base import BoardError
from kernelwright.leaderboard.kernelbot.credentials import Secret

WHERE: Final = "GPU MODE"
LINE: Final = 300
NOT_READ: Final = frozenset({"secret_seed"})
"""Fields that nobody may know: the server gives the seed of its hidden cases to anyone."""


def line(text: str, limit: int = LINE) -> str:
    """One line of at most ``limit`` characters; what cannot be seen becomes a blank, so that nothing joins up."""
    shown = "".join(c if c.isprintable() else " " for c in text[: 4 * limit])
    short = " ".join(shown.split())
    return short if len(short) <= limit else f"{short[: limit - 1]}…"


def parse_json(data: bytes, secret: Secret | None) -> JsonValue:
    """JSON of a stranger, without the credential and :data:`NOT_READ`. Raises BoardError; it quotes nothing."""
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError:
        value = NotImplemented
    if value is NotImplemented:
        raise BoardError(f"{WHERE}: the answer is no JSON")
    return _scrub(value, secret)


def _scrub(value: JsonValue, secret: Secret | None) -> JsonValue:
    """The parser bounds the depth."""
    match value:
        case str():
            return secret.hide(value) if secret else value
        case list():
            return [_scrub(item, secret) for item in value]
        case dict():
            items = ((secret.hide(k) if secret else k, v) for k, v in value.items())
            return {k: _scrub(v, secret) for k, v in items if k not in NOT_READ}
        case _:
            return value
