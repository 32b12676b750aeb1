"""A report from what the memory holds."""

import json
import shlex

from kernelwright import __version__
from kernelwright.memory.records import CampaignRecord
from kernelwright.memory.store import Memory
from kernelwright.report.accounts import duels, failures, profiles, resources, spending
from kernelwright.report.board import board
from kernelwright.report.bottleneck import bottleneck
from kernelwright.report.cases import cases
from kernelwright.report.evidence import certificate_summary, sandbox_layers
from kernelwright.report.lineage import lineage
from kernelwright.report.models import SCHEMA_VERSION, Fact, Report
from kernelwright.report.overview import overview
from kernelwright.report.records import Records
from kernelwright.report.tuning import tuning


def build_report(memory: Memory, campaign: CampaignRecord) -> Report:
    """Everything. Raises MemoryFileError, one line, when the file cannot be used."""
    records = Records.read(memory, campaign)
    first = overview(records)
    fought, left_out = duels(records)
    return Report(
        schema_version=SCHEMA_VERSION,
        kernelwright=__version__,
        headline=first.headline,
        certificate=certificate_summary(memory, records),
        milestones=first.milestones,
        board=board(records),
        trajectory=first.trajectory,
        cases=cases(memory, records),
        lineage=lineage(records, first.milestones),
        tuning=tuning(records),
        bottleneck=bottleneck(memory, records),
        resources=resources(memory, records, first.milestones),
        profiles=profiles(records),
        failures=failures(records),
        duels=fought,
        duels_left_out=left_out,
        spending=spending(records),
        sandbox=sandbox_layers(records),
        environment=_environment(records),
        commands=_commands(records),
        source=_source(records),
    )


def _environment(records: Records) -> tuple[Fact, ...]:
    device = records.device
    facts = {
        "device": f"{device.get('name', 'unknown')}, {device.get('model', 'unknown')}",
        "compile target": device.get("arch") or "none",
        "toolchain": device.get("toolchain") or "not recorded",
        "kernelwright": records.notes.get("kernelwright", "not recorded"),
        "problem": records.campaign.problem_id,
        "settings": json.dumps(dict(records.settings)),
        "timing": records.notes.get("timing", "not recorded"),
    }
    return tuple(Fact(name, f"{value}") for name, value in facts.items())


def _commands(records: Records) -> tuple[Fact, ...]:
    name, settings = records.campaign.id, records.settings
    again = ["run", f"{settings.get('problem', records.campaign.problem_id)}"]
    for key in ("device", "seconds", "evaluations", "seed"):
        if settings.get(key) is not None:
            again += [f"--{key}", f"{settings[key]}"]
    commands = {
        "the winner with its numbers": ["show", name, "--source"],
        "the certificate with all raw samples": ["certificate", name, "--json"],
        "every experiment with its reason": ["show", name, "--experiments"],
        "the win again, from the memory alone": ["replay", name],
        "search again from the beginning": again,
    }
    return tuple(Fact(what, shlex.join(["kernelwright", *words])) for what, words in commands.items())


def _source(records: Records) -> str:
    if records.incumbent is None:
        return ""
    return records.templates[records.incumbent.template].source
