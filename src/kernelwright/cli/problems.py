"""``problem``: what can be solved, the format of a problem of one's own, and whether it can be trusted."""

import json
import sys
from dataclasses import asdict
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kernelwright.cli.options import (
    DeviceOption,
    JsonOption,
    ProblemArgument,
    SlowOption,
    StrictOption,
    pick_device,
    use_slow_cases,
)
from kernelwright.cli.plain import PlainConsole
from kernelwright.cli.telling import teller
from kernelwright.core.text import one_line
from kernelwright.harness.problem_test import run_self_test
from kernelwright.harness.self_test import SelfTest, SelfTestRow, Verdict
from kernelwright.problems.loader import LIBRARY_FILE, Problem, bundled_names, load_problem
from kernelwright.problems.spec import problem_schema

app = typer.Typer(help="Bundled problems, the format of your own, and its self-test.", no_args_is_help=True)
STYLES: Final = {
    Verdict.OK: "green",
    Verdict.NOTE: "",
    Verdict.WARNING: "yellow",
    Verdict.FAILED: "bold red",
    Verdict.SKIPPED: "dim",
}


@app.command("list")
def list_problems(as_json: JsonOption = False) -> None:
    """The bundled problems."""
    problems = [load_problem(name) for name in bundled_names()]
    if as_json:
        typer.echo(json.dumps([{"name": p.name, "title": p.spec.title, "id": p.id} for p in problems]))
        return
    table = Table("problem", "title", "cases", "small cases", "templates", box=None, pad_edge=False)
    for p in problems:
        counts = (str(len(p.cases(slow=False))), str(len(p.cases(slow=True))), str(len(p.catalogue())))
        table.add_row(p.name, p.spec.title, *counts)
    PlainConsole().print(table)


@app.command("show")
def show_problem(problem: ProblemArgument, as_json: JsonOption = False) -> None:
    """One problem: arguments, cases, tolerance, rules; checks the folder on the way."""
    loaded = load_problem(problem)
    _see_to_templates(loaded)
    for fault in loaded.script_faults().values():
        print(f"kernelwright: warning: {one_line(fault)}", file=sys.stderr)
    if as_json:
        typer.echo(loaded.spec.model_dump_json())
        return
    console = PlainConsole()
    console.print(f"{loaded.name}: {loaded.spec.title}", style="bold", markup=False)
    console.print(loaded.spec.description, markup=False)
    arguments = Table("argument", "dtype", "role", "shape or value", box=None, pad_edge=False)
    for a in loaded.spec.arguments:
        arguments.add_row(a.name, a.dtype, a.role, ", ".join(a.shape) if a.shape else str(a.value))
    console.print(arguments, markup=False)
    tolerance = loaded.spec.tolerance
    console.print(
        f"right where |out - ref| <= {tolerance.atol:g} + {tolerance.rms:g} RMS(ref) + {tolerance.rtol:g} |ref|",
        markup=False,
    )
    rules = [name for name, value in loaded.spec.rules.model_dump().items() if value]
    console.print(f"rules: {', '.join(rules) or 'none'}; objective {loaded.objective}", markup=False)
    table = Table("case", "bytes", "flops", box=None, pad_edge=False)
    for slow in (False, True):
        for case in loaded.cases(slow=slow):
            work = loaded.work(case)
            table.add_row(case.id + (" (slow devices)" if slow else ""), f"{work[0]:,}", f"{work[1]:,}")
    console.print(table)


def _see_to_templates(problem: Problem) -> None:
    """What is wrong with the problem's ``.cu`` files is told before a campaign meets it. Raises ProblemError."""
    problem.baseline()
    problem.templates()


@app.command("test")
def examine_problem(
    problem: ProblemArgument,
    device: DeviceOption = "auto",
    slow_cases: SlowOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the inputs.")] = 0,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> int:
    """Whether a problem can be fooled: wrong outputs that pass, a reference that ignores inputs, a baseline that fails.

    Exit code 1 when something failed.
    """
    loaded = load_problem(problem)
    name = pick_device(device)
    slow = use_slow_cases(name, chosen=slow_cases)
    _see_to_templates(loaded)
    result = run_self_test(loaded, name, slow=slow, seed=seed, strict=strict, notify=teller())
    result = SelfTest((*result.rows, *_of_scripts(loaded)))
    if as_json:
        rows = [asdict(row) for row in result.rows]
        typer.echo(json.dumps({"problem": loaded.name, "id": loaded.id, "device": name, "passed": result.passed,
                               "warnings": result.warnings, "rows": rows}))  # fmt: skip
    else:
        _print_self_test(PlainConsole(), loaded.name, result)
    return 0 if result.passed else 1


def _of_scripts(problem: Problem) -> list[SelfTestRow]:
    """What can be told of library.py where no GPU executes it; reference.py has been executed."""
    fault = problem.script_faults().get(LIBRARY_FILE)
    return [SelfTestRow("library", "", Verdict.WARNING, fault)] if fault else []


def _print_self_test(console: Console, problem: str, result: SelfTest) -> None:
    """Checks by case; below it what is not of one case, and in words whatever is wrong."""
    cells = {(row.name, row.case): row for row in result.rows}
    cases = list(dict.fromkeys(row.case for row in result.rows if row.name == "right output"))
    table = Table("check", *cases, box=None, pad_edge=False)
    for name in dict.fromkeys(row.name for row in result.rows if row.case in cases):
        table.add_row(Text(name), *(_cell(cells.get((name, case))) for case in cases))
    console.print(table)
    for row in result.rows:
        if row.case not in cases or row.verdict in {Verdict.WARNING, Verdict.FAILED}:
            place = f"{row.name}{f' on {row.case}' if row.case else ''}"
            text = ": ".join(filter(None, (place, row.detail, row.mend)))
            console.print(Text.assemble((f"{row.verdict}  ", STYLES[row.verdict]), text))
    failed = sum(row.verdict is Verdict.FAILED for row in result.rows)
    console.print(
        Text(f"{problem} {'failed ' + str(failed) + ' checks' if failed else 'passed'}", style="bold")
    )


def _cell(row: SelfTestRow | None) -> Text:
    if row is None:
        return Text("")
    short = row.detail.partition(";")[0] if row.verdict is Verdict.NOTE else row.verdict
    return Text(short, style=STYLES[row.verdict])


@app.command("schema")
def schema(indent: Annotated[int, typer.Option(min=0, max=8, help="Spaces a level.")] = 2) -> None:
    """JSON schema of problem.toml."""
    typer.echo(json.dumps(problem_schema(), indent=indent))
