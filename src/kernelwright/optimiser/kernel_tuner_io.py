"""Kernel Tuner's exchange files: T1 (a search space) in, T4 (results) in and out.

Formats: the JSON schemas that Kernel Tuner 1.x ships (``schema/T1/1.0.0``, ``schema/T4/1.0.0``); times are in ms.
"""

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from kernelwright.core.configuration import Configuration, Value
from kernelwright.core.errors import UserError
from kernelwright.core.expressions import parse
from kernelwright.core.files import place, read_text
from kernelwright.core.outcome import Status
from kernelwright.core.space import Constraint, SearchSpace, Tunable
from kernelwright.core.toml_words import in_json_words

MAX_BYTES = 256 << 20
T4_VERSION = "1.0.0"
OBJECTIVE = "time"
_STATUS_OF = {
    "correct": Status.MEASURED,
    "timeout": Status.TIMED_OUT,
    "compile": Status.COMPILE_FAILED,
    "runtime": Status.LAUNCH_FAILED,
    "correctness": Status.WRONG,
    "constraints": Status.NOT_RUN,
}
_INVALIDITY_OF = {
    **{status: name for name, status in _STATUS_OF.items()},
    Status.CRASHED: "runtime",
    Status.UNSTABLE: "correctness",
    Status.TOO_FAST: "correctness",
    Status.RULE_BROKEN: "constraints",
}


@dataclass(frozen=True)
class TuningResult:
    """What became of a configuration; ``times_ms`` are its runs (of all cases alike), empty where it failed.

    ``value_ms`` is the objective, None where it failed.
    """

    configuration: Configuration
    status: Status
    times_ms: tuple[float, ...] = ()
    value_ms: float | None = None


class _TuningParameter(BaseModel):
    name: str = Field(alias="Name")
    type: str = Field(alias="Type")
    values: str = Field(alias="Values")


class _Condition(BaseModel):
    expression: str = Field(alias="Expression")


class _ConfigurationSpace(BaseModel):
    parameters: list[_TuningParameter] = Field(alias="TuningParameters", min_length=1)
    conditions: list[_Condition] = Field(alias="Conditions", default=[])


class _T1(BaseModel):
    space: _ConfigurationSpace = Field(alias="ConfigurationSpace")


class _Times(BaseModel):
    runtimes: list[float] = []


class _Measurement(BaseModel):
    name: str
    value: Any = None
    unit: str = ""


class _T4Result(BaseModel):
    configuration: dict[str, Value]
    times: _Times
    invalidity: str
    objectives: list[str] = []
    measurements: list[_Measurement] = []


class _T4(BaseModel):
    results: list[_T4Result]


_Model = TypeVar("_Model", bound=BaseModel)


def read_t1(path: Path) -> SearchSpace:
    """Search space of a T1 file. Raises UserError naming the parameter or condition that cannot be used."""
    space = _read(path, _T1).space
    tunables = tuple(Tunable(p.name, _values(path, p)) for p in space.parameters)
    constraints = []
    for number, condition in enumerate(space.conditions):
        try:
            constraints.append(Constraint(f"condition {number + 1}", parse(condition.expression)))
        except UserError as error:
            raise UserError(f"{path}: condition {number + 1}: {error}") from None
    return SearchSpace(tunables, tuple(constraints))


def read_t4(path: Path) -> tuple[TuningResult, ...]:
    """Results of a T4 file, in its order. Raises UserError for a file that is none."""
    return tuple(_result(path, number, entry) for number, entry in enumerate(_read(path, _T4).results))


def write_t4(results: Sequence[TuningResult], path: Path) -> None:
    """Write results as a T4 file; every status has its nearest ``invalidity``. Raises UserError."""
    document = {
        "schema_version": T4_VERSION,
        "metadata": {"timeunit": "milliseconds"},
        "results": [_entry(result) for result in results],
    }
    place(path, f"{json.dumps(document, indent=1)}\n".encode())


def _read(path: Path, model: type[_Model]) -> _Model:
    text = read_text(path, MAX_BYTES)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise UserError(f"{path}: {in_json_words(error, text)}") from None


def _values(path: Path, parameter: _TuningParameter) -> tuple[Value, ...]:
    """``Values`` is a Python list in a string."""
    try:
        values = ast.literal_eval(parameter.values)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        values = None
    if not isinstance(values, list | tuple) or not all(
        isinstance(v, int | float | bool | str) for v in values
    ):
        raise UserError(
            f"{path}: parameter {parameter.name!r}: Values {parameter.values[:60]!r} is no list of values"
        )
    if parameter.type == "bool":
        return tuple(bool(value) for value in values)
    return tuple(values)


def _result(path: Path, number: int, entry: _T4Result) -> TuningResult:
    status = _STATUS_OF.get(entry.invalidity)
    if status is None:
        raise UserError(
            f"{path}: results[{number}].invalidity: {entry.invalidity!r} is not one of {', '.join(_STATUS_OF)}"
        )
    configuration = Configuration(entry.configuration)
    if status is not Status.MEASURED:
        return TuningResult(configuration, status)
    times = tuple(entry.times.runtimes)
    objective = entry.objectives[0] if entry.objectives else OBJECTIVE
    measured = [
        m.value for m in entry.measurements if m.name == objective and isinstance(m.value, int | float)
    ]
    if not measured and not times:
        raise UserError(
            f"{path}: results[{number}]: correct, but neither {objective!r} nor runtimes is there"
        )
    value = float(measured[0]) if measured else sum(times) / len(times)
    return TuningResult(configuration, status, times, value)


def _entry(result: TuningResult) -> dict[str, Any]:
    measured = result.value_ms is not None and result.status is Status.MEASURED
    return {
        "configuration": dict(result.configuration),
        "times": {"runtimes": list(result.times_ms)},
        "invalidity": _INVALIDITY_OF[result.status],
        "correctness": int(result.status is Status.MEASURED),
        "objectives": [OBJECTIVE],
        "measurements": [{"name": OBJECTIVE, "value": result.value_ms, "unit": "ms"}] if measured else [],
    }
