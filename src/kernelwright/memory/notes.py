"""Shapes of the noted facts of a campaign: what its readers may rely on.

A note of a kind that is not known here is text. What a newer version adds to an object is let through.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from kernelwright.core.outcome import Status
from kernelwright.devices.base import TimingProtocol

_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class _Layer:
    name: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class _Sandbox:
    layers: list[_Layer]


@dataclass(frozen=True)
class _Ceilings:
    bytes_per_s: _Rate = 0.0
    flops_per_s: _Rate = 0.0
    tensor_flops_per_s: _Rate = 0.0
    on_tensor_units: bool = False


@dataclass(frozen=True)
class _Confirmation:
    baseline_ms: _Positive
    incumbent_ms: _Positive
    ratio: _Rate = 0.0
    low: float | None = None
    high: float | None = None
    rounds: int = 0


@dataclass(frozen=True)
class _Strongest:
    name: str
    ratio: _Positive
    candidate: str = ""
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    source: str = ""
    cases: dict[str, _Positive] = field(default_factory=dict)


@dataclass(frozen=True)
class _Fault:
    reason: str
    seconds: _Rate


@dataclass(frozen=True)
class _Sanitizer:
    status: Status
    reason: str = ""
    tools: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: _Rate = 0.0


@dataclass(frozen=True)
class _Calibration:
    text: str


NOTES: Final[dict[str, TypeAdapter[Any]]] = {
    "sandbox": TypeAdapter(_Sandbox),
    "ceilings": TypeAdapter(_Ceilings),
    "timing": TypeAdapter(TimingProtocol),
    "confirmation": TypeAdapter(_Confirmation),
    "strongest": TypeAdapter(_Strongest),
    "selftest": TypeAdapter(list[str]),
    "calibration": TypeAdapter(_Calibration),
    "disqualified": TypeAdapter(_Fault),
    "sanitizer": TypeAdapter(_Sanitizer),
}
"""By the key up to a colon; a candidate's id follows that."""


def adapter_of(key: str) -> TypeAdapter[Any] | None:
    """How the note is read; ``None`` where it is text."""
    return NOTES.get(key.partition(":")[0])
