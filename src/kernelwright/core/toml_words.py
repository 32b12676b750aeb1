"""What pydantic finds wrong with a table of TOML (or an object of JSON), in TOML's words: the key as it was written, what is wanted there."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Final, TypeVar

from pydantic import Strict, TypeAdapter, ValidationError
from pydantic_core import from_json

T = TypeVar("T")
Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Real = Annotated[float, Strict()]
"""TOML has types: a number in quotes is a text, and true is no number. A whole number is a number, too."""

Place = tuple[int | str, ...]
"""Keys and numbers that lead to a value from the whole table."""

_WANTED: Final = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "finite": "a number that is neither nan nor infinite",
    "string": "a text in quotes",
    "tuple": "a list",
    "list": "a list",
    "dict": "a table",
    "mapping": "a table",
    "model": "a table",
    "dataclass": "a table",
}
_KIND: Final = re.compile(
    r"(bool|int|float|finite|string|tuple|list|dict|mapping|model|dataclass)"
    r"(_type|_number|_parsing|_parsing_size|_from_float|_attributes_type|_exact_type)"
)
_BOUNDS: Final = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_BY_HAND: Final = {"extra_forbidden": "is an unknown key", "missing": "is missing"}
"""What people mend by removing or adding a key."""
_FIRST: Final = ("value_error", "union_tag_invalid", "union_tag_not_found")
"""Of several things that are wrong at one place, what says most."""
_NOTHING: Final = object()
_MOST_SHOWN: Final = 60
MOST_SAID: Final = 300


@dataclass(frozen=True)
class _Wrong:
    """One finding. ``choice`` is where several kinds of values are allowed, each with findings of its own."""

    place: Place
    choice: Place
    detail: Any


def strictly(adapter: TypeAdapter[T], table: Mapping[str, Any]) -> T:
    """The table as what the adapter is for, no value taken for one of another type. Raises ValidationError.

    Read as JSON, where a list may be a tuple, and a text a member of an enumeration, but nothing else is loose.
    """
    text = json.dumps(table, default=lambda date: {"date": str(date)})
    return adapter.validate_json(text, strict=True)


def in_words(error: ValidationError, table: Any, keys: str | None = "", whole: str = "file") -> str:
    """The first fault as ``KEY: what is wrong``, and how many more there are.

    ``keys`` says where keys are told, ``None`` that a program wrote the table, whose keys nobody mends by hand;
    ``whole`` is what the table is.
    """
    place, what = first_fault(error, table, keys)
    return f"{key_text(place, table) or whole}: {what}"


def first_fault(error: ValidationError, table: Any, keys: str | None = "") -> tuple[Place, str]:
    """:func:`in_words` apart: where it is, and what is told of it."""
    details = [detail for detail in error.errors(include_url=False) if not _follows(detail)]
    findings = [_placed(detail, table) for detail in details]
    faults = [list(group) for _, group in groupby(findings, key=lambda wrong: wrong.choice)]
    # A misspelt key is also a missing one: its own name says more.
    first = min(faults, key=lambda fault: all(wrong.detail["type"] != "extra_forbidden" for wrong in fault))
    place, what = _told(first, keys)
    return place, what + more(len(faults) - 1)


def in_json_words(
    error: ValidationError, text: str | bytes, keys: str | None = "", whole: str = "file"
) -> str:
    """:func:`in_words` for a text that should be JSON."""
    if fault := json_fault(error):
        return f"{whole}: is no JSON ({fault})"
    value = from_json(text)
    if not isinstance(value, dict):
        return f"{whole}: must be an object, not {shown(value)}"
    return in_words(error, value, keys, whole)


def json_fault(error: ValidationError) -> str:
    """Why a text is no JSON and where, empty where it is."""
    first = error.errors(include_url=False)[0]
    return brief(str(first["ctx"]["error"])) if first["type"] == "json_invalid" else ""


def brief(message: str) -> str:
    """One line that ends before it is a page, whatever it quotes."""
    line = " ".join(message.split())
    return line if len(line) <= MOST_SAID else f"{line[:MOST_SAID]}..."


def more(count: int) -> str:
    """What stands behind the first of several faults."""
    return f" (and {count} more)" if count else ""


def key_text(place: Place, table: Any) -> str:
    """A place for people: lists are counted from 0, and what has a name or an id is told by it too."""
    text = ""
    for part in place:
        table = _inside(table, part)
        if isinstance(part, int):
            text += f"[{part}]{_label(table)}"
        else:
            text += ("." if text else "") + _key(part)
    return text


def _key(part: str) -> str:
    short = part if len(part) <= _MOST_SHOWN else f"{part[:_MOST_SHOWN]}..."
    return short if re.fullmatch(r"[A-Za-z0-9_-]+", short) else json.dumps(short)


def shown(value: Any) -> str:
    """A value as TOML writes it; what is long or has parts is called by its kind."""
    if isinstance(value, str) and len(value) > _MOST_SHOWN:
        return "such a long text"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        text = repr(value)
        return text if len(text) <= _MOST_SHOWN else "such a large number"
    kinds: dict[type, str] = {dict: "a table", list: "a list", type(None): "nothing"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), "a date or a time")


def _label(entry: Any) -> str:
    names = [entry.get(key) for key in ("name", "id")] if isinstance(entry, Mapping) else []
    fit = (n for n in names if isinstance(n, str) and n.isprintable() and 0 < len(n) <= _MOST_SHOWN)
    return next((f' "{name}"' for name in fit), "")


def _inside(table: Any, part: int | str) -> Any:
    """What a key or a number leads to, :data:`_NOTHING` where it leads nowhere."""
    if isinstance(table, dict):
        return table.get(part, _NOTHING)
    inside: bool = isinstance(table, list | tuple) and isinstance(part, int) and part < len(table)
    return table[part] if inside else _NOTHING


def _follows(detail: Any) -> bool:
    """Whether a list is too short only because what stands in it is wrong."""
    if detail["type"] != "too_short":
        return False
    return bool(len(detail["input"]) >= detail["ctx"]["min_length"])


def _placed(detail: Any, table: Any) -> _Wrong:
    """Pydantic's place without the names of its own kinds of values, which nobody wrote."""
    path: Place = tuple(detail["loc"])
    missing = path[-1:] if detail["type"] == "missing" else ()
    if missing or path[-1:] == ("[key]",):
        path = path[:-1]
    place: list[int | str] = []  # with what is there in the table: pydantic may have seen it changed
    choice: Place | None = None
    for index, part in enumerate(path):
        inside = _inside(table, part)
        if inside is _NOTHING:
            choice = path[:index] if choice is None else choice
            continue
        place.append(part)
        table = inside
    return _Wrong(
        (*place, *missing), (*path, *missing) if choice is None else choice, {**detail, "input": table}
    )


def _told(fault: list[_Wrong], keys: str | None) -> tuple[Place, str]:
    """Of the kinds that a value could have been, the one that it comes nearest to."""
    depth = max(len(wrong.place) for wrong in fault)
    nearest = [wrong for wrong in fault if len(wrong.place) == depth]
    place = nearest[0].place
    for wrong in nearest:
        if wrong.detail["type"] in _FIRST:
            return place, _message(wrong.detail, keys)
    wanted = list(dict.fromkeys(_kinds(nearest)))
    if _WANTED["float"] in wanted:
        wanted = [kind for kind in wanted if kind != _WANTED["int"]]  # it is a number, too
    if len(wanted) > 1:
        return place, f"must be {' or '.join(wanted)}, not {shown(nearest[0].detail['input'])}"
    given = nearest[0].detail["input"]
    if wanted == ["a list"]:
        return place, _list_wanted(place, given)
    return place, _message(nearest[0].detail, keys)


def _kinds(found: list[_Wrong]) -> Iterator[str]:
    for wrong in found:
        if match := _KIND.fullmatch(wrong.detail["type"]):
            yield _WANTED[match[1]]


def _list_wanted(place: Place, given: Any) -> str:
    if isinstance(given, str) and len(given) <= _MOST_SHOWN:
        items = ", ".join(json.dumps(item.strip()) for item in given.split(","))
        return f"must be a list such as [{items}], not {shown(given)}"
    if isinstance(given, dict) and len(place) == 1:
        return f"must be a list of tables (in TOML [[{place[0]}]] above each), not a table"
    return f"must be a list, not {shown(given)}"


def _message(detail: Any, keys: str | None) -> str:
    found = (words(detail) for words in (_own_words, _of_value, _of_tag, _of_length))
    if keys is None and detail["type"] in _BY_HAND:
        return _BY_HAND[detail["type"]]
    if detail["type"] == "extra_forbidden":
        return "is an unknown key: remove it" + (f", or see {keys} for the keys there are" if keys else "")
    return next(filter(None, found), f"has a value that is not allowed here: {shown(detail['input'])}")


def _own_words(detail: Any) -> str:
    if detail["type"] == "missing":
        return "is missing: add it"
    return brief(str(detail["ctx"]["error"])) if detail["type"] == "value_error" else ""


def _of_value(detail: Any) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    wanted = ""
    if match := _KIND.fullmatch(kind):
        wanted = _WANTED[match[1]]
    elif kind in _BOUNDS:
        words, limit = _BOUNDS[kind]
        wanted = f"{words} {context[limit]}"
    elif kind == "string_pattern_mismatch":
        wanted = f"a text like {context['pattern']}"
    elif kind in {"literal_error", "enum"}:
        wanted = context["expected"]
    return f"must be {wanted}, not {shown(detail['input'])}" if wanted else ""


def _of_tag(detail: Any) -> str:
    context = detail.get("ctx", {})
    key = str(context.get("discriminator", "")).strip("'")
    if detail["type"] == "union_tag_invalid":
        names = str(context["expected_tags"]).replace("'", "")
        return f"{str(context['tag'])[:_MOST_SHOWN]!r} is no {key}: use {names}"
    return f"lacks the key {key!r}: add it" if detail["type"] == "union_tag_not_found" else ""


def _of_length(detail: Any) -> str:
    context = detail.get("ctx", {})
    if detail["type"] in {"too_short", "string_too_short"}:
        least = context["min_length"]
        return "is empty: put something there" if least == 1 else f"is too short: {least} are needed"
    if detail["type"] in {"too_long", "string_too_long"}:
        return f"is too long: at most {context['max_length']} are allowed"
    return ""
