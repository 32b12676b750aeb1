"""Records to rows and back. Numbers come back exactly as they were given.

Whoever has the file can write anything into it: every ``to_`` here raises ValueError for a row that was never written
so, and its readers need not look again. Columns have the types of their tables already (STRICT).
"""

import json
import math
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from kernelwright.core.configuration import Configuration
from kernelwright.core.configuration import Value as Number
from kernelwright.core.device import DeviceFacts
from kernelwright.core.objective import ObjectiveName
from kernelwright.core.outcome import CaseTiming, Conditions, Outcome, StaticMetrics, Status
from kernelwright.core.statistics import Decision
from kernelwright.devices.base import DuelCase
from kernelwright.memory.database import Value
from kernelwright.memory.notes import adapter_of
from kernelwright.memory.records import CampaignRecord, Duel, Experiment, Milestone, TemplateRecord


@dataclass(frozen=True)
class _Beside:
    """What a duel's verdict holds beside the decision."""

    at_fault: str
    confirmation: bool


LATEST: Final = 1e11
"""Unix time that no calendar has to show."""
_T = TypeVar("_T")
_SAMPLES: Final = TypeAdapter(
    Annotated[tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...], Field(min_length=1)]
)
_CONDITIONS: Final = TypeAdapter(Conditions)
_STATIC: Final = TypeAdapter(StaticMetrics)
_CONFIGURATION: Final = TypeAdapter(dict[str, Number])
_SPENT: Final = TypeAdapter(dict[str, float])
_TEXTS: Final = TypeAdapter(tuple[str, ...])
_DECISION: Final = TypeAdapter(Decision)
_BESIDE: Final = TypeAdapter(_Beside)
_DUEL_CASES: Final = TypeAdapter(tuple[DuelCase, ...])
_DEVICE: Final = TypeAdapter(DeviceFacts)
_OBJECT: Final = TypeAdapter(dict[str, Any])


def campaign_row(campaign: CampaignRecord) -> dict[str, Value]:
    """Row of ``campaigns``."""
    row = asdict(campaign)
    row["problem"] = row.pop("problem_id")
    return row


def to_campaign(row: sqlite3.Row) -> CampaignRecord:
    """Inverse of :func:`campaign_row`; what is inside is looked at by :func:`check_campaign`."""
    values = dict(row)
    return CampaignRecord(problem_id=values.pop("problem"), **values)


def check_campaign(campaign: CampaignRecord) -> None:
    """ValueError for device facts, settings or numbers that nobody wrote so."""
    _read(_DEVICE, "device", campaign.device)
    _read(_OBJECT, "settings", campaign.settings)
    ObjectiveName(campaign.objective)
    _finite(seconds=campaign.seconds)
    if not 0 <= campaign.started < LATEST:
        raise ValueError("started: is no time of day")


def _brief(value: object) -> str:
    """JSON without blanks and without fields that stand at their defaults, which every reader fills in."""
    return json.dumps(value, default=_not_default, separators=(",", ":"))


def _not_default(record: Any) -> dict[str, object]:
    values = {each.name: (getattr(record, each.name), each.default) for each in fields(record)}
    return {name: value for name, (value, default) in values.items() if value != default}


def template_row(template: TemplateRecord) -> dict[str, Value]:
    """Row of ``templates``."""
    return {"id": template.id, "name": template.name, "source": template.source}


def proposal_row(template: TemplateRecord, campaign: str) -> dict[str, Value]:
    """Row of ``proposals``."""
    return {
        "campaign": campaign,
        "template": template.id,
        "proposer": template.proposer,
        "direction": template.direction,
        "rationale": template.rationale,
        "predicted": template.predicted,
        "parents": json.dumps(template.parents),
    }


def to_template(row: sqlite3.Row) -> TemplateRecord:
    """From a row of ``templates`` joined with ``proposals``."""
    values = dict(row)
    return TemplateRecord(parents=_read(_TEXTS, "parents", values.pop("parents")), **values)


def experiment_row(experiment: Experiment, recorded: float) -> dict[str, Value]:
    """Row of ``experiments``."""
    outcome = experiment.outcome
    return {
        "campaign": experiment.campaign,
        "candidate": experiment.candidate,
        "template": experiment.template,
        "configuration": experiment.configuration.key,
        "status": outcome.status,
        "reason": outcome.reason,
        "cost_ms": experiment.cost_ms,
        "score": experiment.score,
        "eligible": int(experiment.eligible),
        "why": experiment.why,
        "digest": outcome.artifact_digest,
        "twin_of": experiment.twin_of,
        "static": None if outcome.static is None else _brief(outcome.static),
        "spent": _brief(outcome.seconds),
        "findings": _brief(outcome.findings),
        "seconds": experiment.seconds,
        "recorded": recorded,
        "check_name": outcome.check,
    }


def measurement_row(number: int, position: int, timing: CaseTiming) -> dict[str, Value]:
    """Row of ``measurements``. SQLite turns nan into NULL by itself; the columns allow it."""
    return {
        "experiment": number,
        "position": position,
        "case_id": timing.case,
        "method": timing.method,
        "median_ms": timing.median_ms,
        "samples_ms": _brief(timing.samples_ms),
        "max_error": timing.max_error,
        "conditions": None if timing.conditions is None else _brief(timing.conditions),
        "discarded": timing.discarded,
    }


def duel_row(duel: Duel, recorded: float) -> dict[str, Value]:
    """Row of ``duels``; the whole decision is in ``verdict``."""
    verdict = {
        **asdict(duel.decision),
        "at_fault": duel.at_fault,
        "confirmation": duel.confirmation,
    }
    return {
        "campaign": duel.campaign,
        "challenger": duel.challenger,
        "incumbent": duel.incumbent,
        "promoted": int(duel.promoted),
        "verdict": json.dumps(verdict),
        "samples": json.dumps([asdict(case) for case in duel.cases]),
        "seconds": duel.seconds,
        "recorded": recorded,
    }


def to_duel(row: sqlite3.Row) -> Duel:
    """Inverse of :func:`duel_row`."""
    verdict = row["verdict"]
    beside = _read(_BESIDE, "verdict", verdict)
    _finite(seconds=row["seconds"], recorded=row["recorded"])
    return Duel(
        campaign=row["campaign"],
        challenger=row["challenger"],
        incumbent=row["incumbent"],
        decision=_decision(verdict),
        cases=_read(_DUEL_CASES, "samples", row["samples"]),
        seconds=row["seconds"],
        at_fault=beside.at_fault,
        confirmation=beside.confirmation,
        number=row["number"],
        recorded=row["recorded"],
    )


def _decision(text: str) -> Decision:
    decision = _read(_DECISION, "verdict", text)
    if len({number is None for number in (decision.ratio, decision.low, decision.high)}) > 1:
        raise ValueError("verdict: a ratio has an interval, and an interval a ratio")
    return decision


def to_milestone(row: sqlite3.Row) -> Milestone:
    """From a row of ``milestones``."""
    _finite(seconds=row["seconds"], ratio=row["ratio"])
    if row["ratio"] <= 0:
        raise ValueError("ratio: is no ratio of times")
    return Milestone(**dict(row))


def to_experiment(rows: Iterable[sqlite3.Row]) -> Experiment:
    """From the rows of one experiment joined with its measurements, in order, and whether its template is there."""
    row, *others = rows
    if not row["has_template"]:
        raise ValueError(f"its template {row['template']!r} is not recorded")
    _finite(seconds=row["seconds"], recorded=row["recorded"])
    timings = [_timing(each) for each in (row, *others) if each["case_id"] is not None]
    if row["status"] == Status.MEASURED and any(_takes_no_time(timing.samples_ms) for timing in timings):
        raise ValueError("samples_ms: its median is 0")
    static = row["static"]
    outcome = Outcome(
        status=Status(row["status"]),
        reason=row["reason"],
        static=None if static is None else _read(_STATIC, "static", static),
        cases=tuple(timings),
        artifact_digest=row["digest"],
        seconds=_read(_SPENT, "spent", row["spent"]),
        findings=_read(_TEXTS, "findings", row["findings"]),
        check=row["check_name"],
    )
    return Experiment(
        campaign=row["campaign"],
        candidate=row["candidate"],
        template=row["template"],
        configuration=Configuration(_read(_CONFIGURATION, "configuration", row["configuration"])),
        outcome=outcome,
        why=row["why"],
        seconds=row["seconds"],
        cost_ms=row["cost_ms"],
        score=row["score"],
        eligible=bool(row["eligible"]),
        twin_of=row["twin_of"],
        number=row["number"],
        recorded=row["recorded"],
    )


def _takes_no_time(samples_ms: tuple[float, ...]) -> bool:
    """Whether the median is 0, which readers divide by."""
    return sorted(samples_ms)[len(samples_ms) // 2] == 0


def _timing(row: sqlite3.Row) -> CaseTiming:
    error = math.nan if row["max_error"] is None else row["max_error"]
    samples = _read(_SAMPLES, "samples_ms", row["samples_ms"])
    text = row["conditions"]
    conditions = None if text is None else _read(_CONDITIONS, "conditions", text)
    return CaseTiming(row["case_id"], samples, row["method"], error, conditions, row["discarded"])


def read_note(key: str, value: str) -> str:
    """A note's text as it is; ValueError for one that was never written so."""
    adapter = adapter_of(key)
    if adapter is not None:
        _read(adapter, key, value)
    return value


def _read(adapter: TypeAdapter[_T], column: str, text: str) -> _T:
    """The JSON of a column, which has to be what was written: no type is made to fit."""
    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join([column, *(str(part) for part in first["loc"])])
        raise ValueError(f"{where}: {first['msg']}") from None


def _finite(**numbers: float) -> None:
    for name, number in numbers.items():
        if not math.isfinite(number):
            raise ValueError(f"{name}: is no finite number")
