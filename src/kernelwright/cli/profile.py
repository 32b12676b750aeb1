"""``profile FILE``: what limits one hand-written candidate on one case. Needs no campaign and no model."""

import asyncio
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelwright.cli.check import choose, read_template
from kernelwright.cli.options import (
    DeviceOption,
    JsonOption,
    SlowOption,
    StrictOption,
    pick_device,
    use_slow_cases,
)
from kernelwright.core.candidate import Candidate, Template
from kernelwright.core.errors import UserError
from kernelwright.core.outcome import StaticMetrics
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import CompileResult, ProfileResult
from kernelwright.profiling import Digest, Roofline, make_digest, roofline


@dataclass(frozen=True)
class Profile:
    """Everything there is to show."""

    candidate: Candidate
    case: str
    result: ProfileResult
    digest: Digest
    static: StaticMetrics | None


def profile(
    file: Annotated[Path, typer.Argument(help="A .cu file that starts with a plan.")],
    problem: Annotated[str, typer.Option("--problem", "-p", help="A bundled problem's name, or a folder.")],
    case: Annotated[
        str, typer.Option("--case", "-c", help="A case of the problem; by default its largest.")
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
    async with LocalHarness(problem, device, compile_workers=1, slow_cases=slow, strict=strict) as harness:
        chosen = case or harness.cases[-1].id
        if chosen not in {known.id for known in harness.cases}:
            raise UserError(f"--case {chosen}: the cases are {', '.join(c.id for c in harness.cases)}")
        candidate = Candidate(template, choose(template, harness.facts, values))
        compiled = await harness.compile(candidate)
        if compiled.status is not None:
            raise UserError(f"{template.name}: {compiled.status}: {compiled.reason}")
        if level:
            result = await harness.profile(candidate, chosen, compiled=compiled, level=level)
        else:
            result = ProfileResult("not_available", "level 0 asks for none")
        time_ms = await _time_ms(harness, candidate, compiled, chosen, result)
        roof = _roofline(harness, chosen, time_ms)
        digest = make_digest(
            result.kernels, static=compiled.static, roofline=roof, case=chosen, lines=result.lines
        )
        return Profile(candidate, chosen, result, digest, compiled.static)


async def _time_ms(
    harness: LocalHarness, candidate: Candidate, compiled: CompileResult, case: str, result: ProfileResult
) -> float | None:
    """Under the profiler where there is one (cold caches, unlocked clocks); else as the harness measures it."""
    if result.kernels:
        return sum(kernel.time_ns for kernel in result.kernels) * 1e-6
    if harness.facts.kind != "cuda":
        return None
    return (await harness.benchmark(candidate, compiled)).times_ms().get(case)


def _roofline(harness: LocalHarness, case: str, time_ms: float | None) -> Roofline | None:
    work = next(harness.problem.work(known) for known in harness.cases if known.id == case)
    best = harness.ceilings
    return roofline(*work, bytes_per_s=best.bytes_per_s, operations_per_s=best.flops_per_s, time_ms=time_ms)


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
        "notes": found.result.notes,
        "static": asdict(found.static) if found.static else None,
    }


def _print(found: Profile) -> None:
    typer.echo(found.digest.text)
    if found.result.status != "profiled":
        typer.echo(f"No counters ({found.result.status}): {found.result.reason}")
    for note in found.result.notes:
        typer.echo(f"- {note}")
