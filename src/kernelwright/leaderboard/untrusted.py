"""What a board's server says is data: bounded lines, JSON without the credential, and records or one error."""

from collections.abc import Sequence
from typing import Final, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import from_json

from kernelwright.leaderboard.base import BoardError
from kernelwright.leaderboard.secret import Secret

LINE: Final = 300
NOT_READ: Final = frozenset({"secret_seed"})
"""Fields that nobody may know: GPU MODE's server gives the seed of its hidden cases to anyone."""

_FAULTS: Final = {
    "missing": "is missing",
    "list": "is no list",
    "tuple": "is no list",
    "dict": "is no object",
    "model": "is no object",
    "dataclass": "is no object",
    "string_type": "is no text",
    "int": "is no whole number",
    "float": "is no number",
    "finite": "is no number",
    "bool": "is neither true nor false",
    "greater": "is too small",
    "less": "is too large",
    "string_too": "has not the right length",
    "too": "has not the right length",
}
"""What kinds of faults are called, by their beginning; what was sent is not quoted."""

T = TypeVar("T")


def line(text: str, limit: int = LINE) -> str:
    """One line of at most ``limit`` characters; what cannot be seen becomes a blank, so that nothing joins up."""
    shown = "".join(c if c.isprintable() else " " for c in text[: 4 * limit])
    short = " ".join(shown.split())
    return short if len(short) <= limit else f"{short[: limit - 1]}…"


def parse_json(data: bytes, hidden: Sequence[Secret], where: str) -> JsonValue:
    """JSON of a stranger, without credentials and :data:`NOT_READ`. Raises BoardError; it quotes nothing."""
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError:
        value = NotImplemented
    if value is NotImplemented:
        raise BoardError(f"{where}: the answer is no JSON")
    return scrubbed(value, hidden)


def scrubbed(value: JsonValue, hidden: Sequence[Secret]) -> JsonValue:
    """Without credentials and :data:`NOT_READ`; the parser bounds the depth."""
    match value:
        case str():
            for secret in hidden:
                value = secret.hide(value)
            return value
        case list():
            return [scrubbed(item, hidden) for item in value]
        case dict():
            items = ((str(scrubbed(k, hidden)), v) for k, v in value.items())
            return {k: scrubbed(v, hidden) for k, v in items if k not in NOT_READ}
        case _:
            return value


def read(kind: type[T], value: JsonValue, where: str) -> T:
    """The value as ``kind``. Raises BoardError that names the field, never its content."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = line(".".join(str(part) for part in first["loc"]), 80)
        fault = first["type"]
    words = next(
        (words for kind, words in _FAULTS.items() if fault.startswith(kind)), "is not what it should be"
    )
    raise BoardError(f"{where}: the answer makes no sense: {field or 'all of it'} {words}")
