"""``profile FILE``: what limits one hand-written candidate on one case. Needs no campaign and no model."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kernelwright.cli.check import choose, read_template
from kernelwright.cli.faults import in_file, refuse_plan
from kernelwright.cli.options import (
    DeviceOption,
    JsonOption,
    SlowOption,
    StrictOption,
    path,
    pick_device,
    use_slow_cases,
)
from kernelwright.cli.telling import teller
from kernelwright.core.candidate import Candidate, Template
from kernelwright.core.errors import UserError
from kernelwright.core.outcome import StaticMetrics, Status
from kernelwright.devices.base import TimingProtocol
from kernelwright.devices.traffic import read_traffic
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import CompileResult, ProfileResult
from kernelwright.harness.wire import Ceilings
from kernelwright.profiling import Digest, Roofline, make_digest, modelled, roofline

BRIEF: Final = TimingProtocol(runs=5)
"""Times pick a case and place it under the roofline; they rank nothing."""


@dataclass(frozen=True)
class Profile:
    """Everything there is to show."""

    candidate: Candidate
    case: str
    result: ProfileResult
    digest: Digest
    static: StaticMetrics | None
    ceilings: Ceilings
    rooflines: dict[str, Roofline]
    findings: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """What a look at the candidate told before any counters: times in ms by case, findings, why it has no times."""

    times_ms: Mapping[str, float]
    findings: tuple[str, ...] = ()
    reason: str = ""


def profile(
    file: Annotated[Path, typer.Argument(parser=path, help="A .cu file that starts with a plan.")],
    problem: Annotated[str, typer.Option("--problem", "-p", help="A bundled problem's name, or a folder.")],
    case: Annotated[
        str,
        typer.Option(
            "--case",
            "-c",
            help="A case of the problem; by default the one farthest from its floor, without a GPU the largest.",
        ),
    ] = "",
    device: DeviceOption = "auto",
    level: Annotated[
        int, typer.Option("--level", min=0, max=2, help="0 static, 1 counters, 2 also the hottest lines.")
    ] = 1,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A tunable's value; others take their first."),
    ] = None,
    slow_cases: SlowOption = None,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> int:
    """Name the bottleneck of one candidate on one case, with the numbers behind it and known moves.

    Exit code 0 when there is a digest (from static metrics where counters cannot be had), 2 when it does not compile.
    """
    template, name = read_template(file), pick_device(device)
    slow = use_slow_cases(name, chosen=slow_cases)
    found = asyncio.run(
        _profile(template, problem, name, values or [], case, level, slow=slow, strict=strict)
    )
    if as_json:
        typer.echo(json.dumps(_json(found)))
    else:
        _print(found)
    return 0


async def _profile(
    template: Template,
    problem: str,
    device: str,
    values: list[str],
    case: str,
    level: int,
    *,
    slow: bool,
    strict: bool,
) -> Profile:
    async with LocalHarness(
        problem, device, compile_workers=1, slow_cases=slow, strict=strict, timing=BRIEF, notify=teller()
    ) as harness:
        if case and case not in {known.id for known in harness.cases}:
            raise UserError(f"--case {case}: the cases are {', '.join(c.id for c in harness.cases)}")
        candidate = Candidate(template, choose(template, harness.facts, values))
        compiled = await harness.compile(candidate)
        refuse_plan(candidate, compiled, harness)
        if compiled.status is not None:
            told = in_file(compiled.as_outcome(), template.name).reason
            raise UserError(f"{template.name}: {compiled.status}: {told.removeprefix(f'{template.name}: ')}")
        seen = Seen({}) if case else await _look(harness, candidate, compiled)
        chosen = case or _farthest(harness, seen.times_ms)
        if level:
            result = await harness.profile(candidate, chosen, compiled=compiled, level=level)
        else:
            result = ProfileResult("not_available", "level 0 asks for none")
        if case and result.kernels:  # quicker than to time every case: cold caches, clocks as they are
            seen = Seen({case: sum(kernel.time_ns for kernel in result.kernels) * 1e-6})
        elif case:
            seen = await _look(harness, candidate, compiled)
        rooflines = _rooflines(harness, seen.times_ms)
        digest = make_digest(
            result.kernels,
            static=compiled.static,
            roofline=rooflines.get(chosen),
            case=chosen,
            lines=result.lines,
            model=modelled(seen.findings),
            source=template.source,
        )
        if seen.reason:
            result = replace(result, notes=(*result.notes, seen.reason))
        return Profile(
            candidate, chosen, result, digest, compiled.static, harness.ceilings, rooflines, seen.findings
        )


async def _look(harness: LocalHarness, candidate: Candidate, compiled: CompileResult) -> Seen:
    """A brief benchmark on a GPU. Times of the cpu say nothing of one: there its checked mode is asked."""
    if harness.facts.kind == "cuda":
        outcome = await harness.benchmark(candidate, compiled)
        reason = (
            f"not timed: {outcome.status}: {outcome.reason}" if outcome.status is not Status.MEASURED else ""
        )
        return Seen(outcome.times_ms(), outcome.findings, reason)
    checked = await harness.sanitize(candidate, compiled)
    reason = checked.reason if checked.status is not Status.MEASURED else ""
    return Seen({}, checked.findings, reason)


def _farthest(harness: LocalHarness, times_ms: Mapping[str, float]) -> str:
    """The case that takes most times its floor; the largest one where times or floors are not known."""
    relative = {
        case.id: times_ms[case.id] / floor
        for case in harness.cases
        if (floor := harness.floor_ms(case)) and case.id in times_ms
    }
    return max(relative, key=lambda case: relative[case]) if relative else harness.cases[-1].id


def _rooflines(harness: LocalHarness, times_ms: Mapping[str, float]) -> dict[str, Roofline]:
    """Of every case, where ceilings are known."""
    best = harness.ceilings
    found = {
        case.id: roofline(
            *harness.problem.work(case),
            bytes_per_s=best.bytes_per_s,
            operations_per_s=best.operations_per_s,
            time_ms=times_ms.get(case.id),
        )
        for case in harness.cases
    }
    return {case: roof for case, roof in found.items() if roof}


def _json(found: Profile) -> dict[str, Any]:
    return {
        "candidate": found.candidate.id,
        "case": found.case,
        "status": found.result.status,
        "reason": found.result.reason,
        "seconds": found.result.seconds,
        "bottleneck": found.digest.bottleneck,
        "digest": found.digest.text,
        "numbers": dict(found.digest.numbers),
        "kernels": [
            {"kernel": k.kernel, "grid": k.grid, "block": k.block, "metrics": dict(k.metrics.values)}
            for k in found.result.kernels
        ],
        "lines": [asdict(line) for line in found.result.lines],
        "ceilings": asdict(found.ceilings),
        "cases": {
            case: {
                "floor_ms": roof.floor_ms,
                "bound": roof.bound,
                "share": roof.share,
                "distance": roof.distance,
            }
            for case, roof in found.rooflines.items()
        },
        "modelled": [asdict(traffic) for traffic in read_traffic(found.findings)],
        "notes": found.result.notes,
        "static": asdict(found.static) if found.static else None,
    }


def _print(found: Profile) -> None:
    typer.echo(found.digest.text)
    if found.result.status != "profiled":
        typer.echo(f"No counters ({found.result.status}): {found.result.reason}")
    for case, roof in found.rooflines.items():
        share = (
            f", {roof.share:.0%} of it attained, {roof.distance:.3g} times the floor" if roof.share else ""
        )
        typer.echo(f"- case {case}: bound by {roof.bound}, floor {roof.floor_ms:.4g} ms{share}")
    for note in found.result.notes:
        typer.echo(f"- {note}")
