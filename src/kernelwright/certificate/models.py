"""The document. Times in ms; ratios are time over time, under 1 is faster."""

import hashlib
import json
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from kernelwright.core.configuration import Value
from kernelwright.core.outcome import Conditions

SCHEMA_VERSION: Final = 1


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Hashes(_Model):
    """``problem``, ``template`` and ``candidate`` are the project's content ids, the others SHA-256 in hex.

    ``plan`` is of the launches resolved for every case, ``artifact`` of the binary that was measured. ``rules`` is
    of the problem's rules as JSON.
    """

    problem: str
    rules: str
    template: str
    source: str
    configuration: str
    plan: str
    candidate: str
    artifact: str


class Subject(_Model):
    """The candidate, and how its binary came about."""

    name: str
    configuration: dict[str, Value]
    kernels: tuple[str, ...]
    macros: dict[str, int]
    compiler_options: dict[str, bool | int]
    proposer: str
    experiment: int
    twin_of: str


class DevicePart(_Model):
    """The device and what it was driven with."""

    name: str
    kind: str
    model: str
    arch: str
    uuid: str
    toolchain: str


class LayerPart(_Model):
    """One layer of the sandbox in the worker that ran the candidate."""

    name: str
    holds: bool
    detail: str


class CheckPart(_Model):
    """A check by its name; ``evidence`` has the numbers, or why it was not run."""

    check: str
    result: Literal["passed", "not run"]
    evidence: str


class CasePart(_Model):
    """Raw samples of one case. ``floor_ms`` is the physical floor, ``None`` where the ceilings are not known.

    ``max_error`` is the worst error of all runs in multiples of the tolerance.
    """

    case: str
    method: str
    median_ms: float
    samples_ms: tuple[float, ...]
    discarded: int
    max_error: float | None
    floor_ms: float | None
    share_of_floor: float | None
    conditions: Conditions | None


class Ratio(_Model):
    """Time of the candidate over that of another; the interval where one was measured, and where it comes from."""

    against: str
    ratio: float
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    source: str = ""


class DuelPart(_Model):
    """A duel of the candidate, with its raw samples by case: pairs of (candidate, other)."""

    number: int
    challenger: str
    incumbent: str
    verdict: str
    reason: str
    ratio: float | None
    low: float | None
    high: float | None
    bound: float | None
    alpha: float | None
    rounds: int
    samples_ms: dict[str, tuple[tuple[float, float], ...]]


class Statistics(_Model):
    """How the incumbent was chosen."""

    objective: str
    experiments: int
    duels: int
    promotions: int
    rule: str


class Certificate(_Model):
    """Everything; ``content_sha256`` is over the canonical JSON of all the rest."""

    schema_version: Literal[1] = SCHEMA_VERSION
    kernelwright: str
    campaign: str
    problem: str
    hashes: Hashes
    subject: Subject
    device: DevicePart
    sandbox: tuple[LayerPart, ...]
    rules: dict[str, Any]
    checks: tuple[CheckPart, ...]
    cases: tuple[CasePart, ...]
    baseline: str
    baseline_cases: tuple[CasePart, ...]
    ratio_to_baseline: Ratio
    ratio_to_strongest: Ratio | None
    promotion: DuelPart | None
    confirmation: DuelPart | None
    statistics: Statistics
    warnings: tuple[str, ...]
    seeds: str
    content_sha256: str = ""

    @field_validator("schema_version", mode="before")
    @classmethod
    def _is_a_number(cls, value: object) -> object:
        if type(value) is not int:  # true and 1.0 are equal to 1
            raise ValueError(f"must be the number {SCHEMA_VERSION}")
        return value

    def sealed(self) -> "Certificate":
        """With the hash of its content."""
        return self.model_copy(update={"content_sha256": self.content_hash()})

    def content_hash(self) -> str:
        """SHA-256 of the canonical JSON: keys sorted, no spaces, without the hash itself."""
        content = self.model_dump(mode="json", exclude={"content_sha256"})
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def as_json(self) -> str:
        """For a file."""
        return json.dumps(self.model_dump(mode="json"), indent=2, allow_nan=False) + "\n"
