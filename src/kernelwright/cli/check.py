"""``check FILE``: one hand-written candidate through rules, compile, check and timing. Needs no campaign."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kernelwright.cli.faults import in_file, refuse_arguments, refuse_plan
from kernelwright.cli.options import (
    DeviceOption,
    JsonOption,
    SlowOption,
    StrictOption,
    path,
    pick_device,
    use_slow_cases,
)
from kernelwright.cli.plain import PlainConsole
from kernelwright.cli.telling import teller
from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.files import read_text
from kernelwright.core.outcome import KILLED, Outcome, Status
from kernelwright.core.plan_faults import placed
from kernelwright.core.text import one_line
from kernelwright.harness.local import LocalHarness

MAX_FILE_BYTES = 4 * 2**20


def check(
    file: Annotated[Path, typer.Argument(parser=path, help="A .cu file that starts with a plan.")],
    problem: Annotated[str, typer.Option("--problem", "-p", help="A bundled problem's name, or a folder.")],
    device: DeviceOption = "auto",
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A tunable's value; others take their first."),
    ] = None,
    slow_cases: SlowOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the inputs.")] = 0,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> int:
    """Compile, check and time one candidate on every case. Exit code 0 when right, 1 when not, 2 for an unusable plan."""
    template = read_template(file)
    name = pick_device(device)
    slow = use_slow_cases(name, chosen=slow_cases)
    candidate, facts, outcome = asyncio.run(
        _evaluate(template, problem, name, values or [], slow=slow, seed=seed, strict=strict)
    )
    if as_json:
        typer.echo(json.dumps(outcome_json(candidate, facts, outcome)))
    else:
        _print(PlainConsole(), candidate, facts, outcome)
    return 0 if outcome.status is Status.MEASURED else 1


def read_template(file: Path) -> Template:
    """Template from a file of the user's, named as the user wrote it."""
    return parse_template(read_text(file, MAX_FILE_BYTES), str(file))


async def _evaluate(
    template: Template, problem: str, device: str, values: list[str], *, slow: bool, seed: int, strict: bool
) -> tuple[Candidate, DeviceFacts, Outcome]:
    async with LocalHarness(
        problem, device, seed=seed, compile_workers=1, slow_cases=slow, strict=strict, notify=teller()
    ) as harness:
        candidate = Candidate(template, choose(template, harness.facts, values))
        compiled = await harness.compile(candidate)
        refuse_plan(candidate, compiled, harness)
        outcome = compiled.as_outcome() if compiled.status else await harness.benchmark(candidate, compiled)
        refuse_arguments(candidate, outcome)
        if outcome.check == KILLED:
            raise HarnessError(f"{template.name} could not be measured: {outcome.reason}")
        return candidate, harness.facts, in_file(outcome, template.name)


def choose(template: Template, facts: DeviceFacts, values: list[str]) -> Configuration:
    """The first valid configuration that has the given values (``NAME=VALUE``)."""
    with placed(template):
        return _choose(template, facts, values)


def _choose(template: Template, facts: DeviceFacts, values: list[str]) -> Configuration:
    space = template.plan.space(facts)
    wanted = dict(_split(value) for value in values)
    for name in wanted:
        if name not in space.names:
            raise UserError(
                f"--set {name}: {template.name} has no such tunable (it has: {', '.join(space.names) or 'none'})"
            )
    if not space.enumerable:
        raise UserError(
            f"{template.name} has too many configurations to list ({space.cartesian} without constraints; most values:"
            f" {space.widest}): give it fewer values, or use 'run'"
        )
    for index in range(len(space)):
        configuration = space.configuration(index)
        if all(int(configuration[name]) == value for name, value in wanted.items()):
            return configuration
    raise UserError(f"{template.name} has no valid configuration with {' '.join(values)}")


def _split(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    words = {"true": 1, "false": 0}
    try:
        return name, words[value.lower()] if value.lower() in words else int(value)
    except ValueError:
        raise UserError(f"--set {text}: NAME=INTEGER is needed, such as --set BM=64") from None


def outcome_json(candidate: Candidate, facts: DeviceFacts, outcome: Outcome) -> dict[str, Any]:
    """An outcome for scripts."""
    return {
        "candidate": candidate.id,
        "configuration": dict(candidate.configuration),
        "device": facts.name,
        "device_model": facts.model,
        "status": outcome.status,
        "reason": outcome.reason,
        "static": asdict(outcome.static) if outcome.static else None,
        "cases": {
            t.case: {
                "median_ms": t.median_ms,
                "samples_ms": t.samples_ms,
                "method": t.method,
                "max_error": t.max_error,
            }
            for t in outcome.cases
        },
        "findings": outcome.findings,
        "seconds": outcome.seconds,
    }


def _print(console: Console, candidate: Candidate, facts: DeviceFacts, outcome: Outcome) -> None:
    console.print(one_line(f"{candidate} on {facts.name} ({facts.model})"), style="bold", markup=False)
    style = "green" if outcome.status is Status.MEASURED else "red"
    console.print(f"{outcome.status}  {outcome.reason}", style=style, markup=False)
    for kernel in outcome.static.kernels if outcome.static else ():
        known = {k: v for k, v in asdict(kernel).items() if v is not None and k != "name"}
        console.print(f"{kernel.name}: " + ", ".join(f"{k} {v}" for k, v in known.items()), markup=False)
    if outcome.cases:
        table = Table("case", "median ms", "spread", "method", "error / tolerance", box=None, pad_edge=False)
        for t in outcome.cases:
            spread = (max(t.samples_ms) - min(t.samples_ms)) / t.median_ms
            table.add_row(t.case, f"{t.median_ms:.4g}", f"{spread:.1%}", t.method, f"{t.max_error:.2g}")
        console.print(table)
    for finding in outcome.findings:
        console.print(f"- {finding}", markup=False, style="dim")
