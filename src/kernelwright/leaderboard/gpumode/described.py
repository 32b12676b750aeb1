"""What a run of ``generate_input`` showed, for some cases, as expressions over the cases' arguments.

The run itself is the harness's (``harness.official.describe_inputs``): here is only its answer, which a stranger's code had a hand in.
"""

import json
import keyword
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kernelwright.core.errors import UserError
from kernelwright.leaderboard.board_file import Arguments
from kernelwright.leaderboard.gpumode.inputs_read import (
    DTYPES,
    UNKNOWN_FILL,
    Returned,
    Size,
    Tensor,
    Unknown,
    Value,
)

Extent = Annotated[int, Field(ge=0, le=2**40)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Item(_Model):
    """A tensor has a ``dtype``; an integer has a ``number``; anything else its type's name as ``other``."""

    dtype: str = ""
    shape: tuple[Extent, ...] = Field((), max_length=8)
    dense: bool = True
    number: int | None = None
    other: str = ""


class _Shown(_Model):
    style: Literal["tuple", "single", "dict"]
    names: tuple[str, ...] = Field((), max_length=64)
    items: tuple[_Item, ...] = Field(max_length=64)


_ADAPTER: Final = TypeAdapter(tuple[_Shown, ...])


def read_described(text: str, cases: Sequence[Arguments]) -> Returned:
    """What the run said of every case, as one. Raises UserError: the answer makes no sense, or cases differ."""
    try:
        shown = _ADAPTER.validate_python(json.loads(text))
    except (ValueError, ValidationError, RecursionError):
        raise UserError("generate_input's run gave no description: give --arguments FILE") from None
    if not shown or len(shown) != len(cases):
        raise UserError(f"generate_input's run described {len(shown)} of {len(cases)} cases")
    first = shown[0]
    names = first.names or tuple(f"item{index}" for index in range(len(first.items)))
    for other in shown:
        same = other.style == first.style and len(other.items) == len(first.items) == len(names)
        if not same or not all(map(_is_name, names)):
            raise UserError(
                "generate_input returns other kinds of items for other cases: give --arguments FILE"
            )
    values = tuple(_value([each.items[index] for each in shown], cases) for index in range(len(names)))
    return Returned(names, values, first.style)


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


def _value(items: Sequence[_Item], cases: Sequence[Arguments]) -> Value:
    first = items[0]
    if first.number is not None:
        text = _expression([item.number for item in items], cases)
        return Size(text) if text else Unknown()
    dtype = DTYPES.get(first.dtype.removeprefix("torch."))
    alike = all(i.dtype == first.dtype and i.dense and len(i.shape) == len(first.shape) for i in items)
    if not alike or dtype is None or not first.shape:
        return Unknown()
    extents = [_expression([i.shape[axis] for i in items], cases) for axis in range(len(first.shape))]
    shape = tuple(text for text in extents if text)
    return Tensor(dtype, shape, UNKNOWN_FILL) if len(shape) == len(extents) else Unknown()


def _expression(values: Sequence[int | None], cases: Sequence[Arguments]) -> str:
    """The simplest expression that gives these values in these cases; empty when none is found."""
    for text, results in _candidates(cases):
        if list(results) == list(values):
            return text
    distinct = set(values)
    return str(values[0]) if len(distinct) == 1 and values[0] is not None and values[0] > 0 else ""


def _candidates(cases: Sequence[Arguments]) -> Iterator[tuple[str, Sequence[int]]]:
    """An argument, times or divided by a small number, plus or minus 1, and products of two."""
    columns = dict(_columns(cases))
    varying = {name: column for name, column in columns.items() if len(set(column)) > 1 or len(cases) == 1}
    yield from varying.items()
    yield from ((f"{a} * {b}", _products(varying, a, b)) for a in varying for b in varying if a <= b)
    for name, column in varying.items():
        for factor in (2, 3, 4, 8, 16, 32, 64, 128, 256):
            yield f"{name} // {factor}", [value // factor for value in column]
            yield f"{name} * {factor}", [value * factor for value in column]
        yield f"{name} + 1", [value + 1 for value in column]
        yield f"{name} - 1", [value - 1 for value in column]
    for name, column in varying.items():
        for other, divisors in columns.items():
            if other != name and min(divisors) > 0:
                yield f"{name} // {other}", [a // b for a, b in zip(column, divisors, strict=True)]


def _products(columns: Mapping[str, Sequence[int]], left: str, right: str) -> list[int]:
    return [a * b for a, b in zip(columns[left], columns[right], strict=True)]


def _columns(cases: Sequence[Arguments]) -> Iterator[tuple[str, list[int]]]:
    """Arguments that are integers in every case; a seed sizes nothing."""
    for name in cases[0]:
        column: list[Any] = [case.get(name) for case in cases]
        if name != "seed" and all(isinstance(v, int) and not isinstance(v, bool) for v in column):
            yield name, column
