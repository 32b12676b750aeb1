"""``problems``: what can be solved, and the format of a problem of one's own."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kernelwright.cli.options import JsonOption, ProblemArgument
from kernelwright.problems.loader import bundled_names, load_problem
from kernelwright.problems.spec import problem_schema

app = typer.Typer(help="Bundled problems, and the format of your own.", no_args_is_help=True)


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
    Console().print(table)


@app.command("show")
def show_problem(problem: ProblemArgument, as_json: JsonOption = False) -> None:
    """One problem: arguments, cases, tolerance, rules; checks the folder on the way."""
    loaded = load_problem(problem)
    if as_json:
        typer.echo(loaded.spec.model_dump_json())
        return
    console = Console()
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


@app.command("schema")
def schema(indent: Annotated[int, typer.Option(min=0, max=8)] = 2) -> None:
    """JSON schema of problem.toml."""
    typer.echo(json.dumps(problem_schema(), indent=indent))
