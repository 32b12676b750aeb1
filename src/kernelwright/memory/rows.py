"""Records to rows and back. Numbers come back exactly as they were given."""

import json
import math
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import CaseTiming, Conditions, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.core.statistics import Decision, Verdict
from kernelwright.devices.base import DuelCase
from kernelwright.memory.database import Value
from kernelwright.memory.records import CampaignRecord, Duel, Experiment, TemplateRecord


def campaign_row(campaign: CampaignRecord) -> dict[str, Value]:
    """Row of ``campaigns``."""
    row = asdict(campaign)
    row["problem"] = row.pop("problem_id")
    return row


def to_campaign(row: sqlite3.Row) -> CampaignRecord:
    """Inverse of :func:`campaign_row`."""
    values = dict(row)
    return CampaignRecord(problem_id=values.pop("problem"), **values)


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
    return TemplateRecord(parents=tuple(json.loads(values.pop("parents"))), **values)


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
        "static": None if outcome.static is None else json.dumps(asdict(outcome.static)),
        "spent": json.dumps(outcome.seconds),
        "findings": json.dumps(outcome.findings),
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
        "samples_ms": json.dumps(timing.samples_ms),
        "max_error": timing.max_error,
        "conditions": None if timing.conditions is None else json.dumps(asdict(timing.conditions)),
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
    verdict = json.loads(row["verdict"])
    at_fault, confirmation = verdict.pop("at_fault"), verdict.pop("confirmation")
    decision = Decision(verdict=Verdict(verdict.pop("verdict")), **verdict)
    return Duel(
        campaign=row["campaign"],
        challenger=row["challenger"],
        incumbent=row["incumbent"],
        decision=decision,
        cases=tuple(_duel_case(case) for case in json.loads(row["samples"])),
        seconds=row["seconds"],
        at_fault=at_fault,
        confirmation=confirmation,
        number=row["number"],
        recorded=row["recorded"],
    )


def _duel_case(values: dict[str, Any]) -> DuelCase:
    conditions = values.pop("conditions")
    return DuelCase(
        challenger_ms=tuple(values.pop("challenger_ms")),
        incumbent_ms=tuple(values.pop("incumbent_ms")),
        conditions=None if conditions is None else _conditions(json.dumps(conditions)),
        **values,
    )


def to_experiment(rows: Iterable[sqlite3.Row]) -> Experiment:
    """From the rows of one experiment joined with its measurements, in order."""
    row, *others = rows
    timings = [_timing(each) for each in (row, *others) if each["case_id"] is not None]
    outcome = Outcome(
        status=Status(row["status"]),
        reason=row["reason"],
        static=None if row["static"] is None else _static(row["static"]),
        cases=tuple(timings),
        artifact_digest=row["digest"],
        seconds=json.loads(row["spent"]),
        findings=tuple(json.loads(row["findings"])),
        check=row["check_name"],
    )
    return Experiment(
        campaign=row["campaign"],
        candidate=row["candidate"],
        template=row["template"],
        configuration=Configuration.from_key(row["configuration"]),
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


def _timing(row: sqlite3.Row) -> CaseTiming:
    error = math.nan if row["max_error"] is None else row["max_error"]
    samples = tuple(json.loads(row["samples_ms"]))
    conditions = None if row["conditions"] is None else _conditions(row["conditions"])
    return CaseTiming(row["case_id"], samples, row["method"], error, conditions, row["discarded"])


def _conditions(text: str) -> Conditions:
    values = json.loads(text)
    return Conditions(throttle=tuple(values.pop("throttle")), **values)


def _static(text: str) -> StaticMetrics:
    values = json.loads(text)
    kernels = tuple(KernelStatics(**kernel) for kernel in values.pop("kernels"))
    return StaticMetrics(kernels=kernels, **values)
