"""``run`` and ``resume``: a campaign from the command line."""

import asyncio
import json
import re
import secrets
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from kernelwright.campaign.attaching import need_board, need_submit
from kernelwright.campaign.events import Listener
from kernelwright.campaign.result import CampaignResult
from kernelwright.campaign.settings import MAX_SUBMISSIONS, NO_GOAL, PROBLEM_GOAL, Settings
from kernelwright.campaign.sitting import resume_campaign, start_campaign
from kernelwright.cli.live import LiveView, PatientConsole
from kernelwright.cli.options import (
    DEFAULT_DIR,
    BoardOption,
    CampaignArgument,
    CampaignDeviceOption,
    DirOption,
    GoalOption,
    JsonOption,
    MaxCostOption,
    MaxRequestsOption,
    MaxSubmissionsOption,
    ModelsOption,
    ModelTimeoutOption,
    NewTimeoutOption,
    ProblemArgument,
    SlowOption,
    StrictOption,
    SubmitOption,
    UncalibratedOption,
    number_between,
    pick_device,
    use_slow_cases,
)
from kernelwright.cli.telling import Noting
from kernelwright.core.goal import parse_goal
from kernelwright.core.objective import ObjectiveName
from kernelwright.generation.models.opening import CATALOGUE
from kernelwright.leaderboard.opening import check_board

Sitting = Callable[[Listener], Coroutine[Any, Any, CampaignResult]]
SecondsOption = Annotated[
    float,
    typer.Option(
        "--seconds", "-t", parser=number_between(1, 86400), help="Time budget of the search, at most 86400."
    ),
]
EvaluationsOption = Annotated[
    int | None, typer.Option(min=1, help="Budget in experiments, baseline included.")
]
ObjectiveOption = Annotated[ObjectiveName | None, typer.Option(help="By default the problem's own.")]
CompileWorkersOption = Annotated[
    int, typer.Option(min=1, max=256, help="Parallel compilers, at most one a core.")
]
SEED_BITS: Final = 31
SeedOption = Annotated[
    int | None,
    typer.Option(
        min=0, help="Seed of inputs, of sizes off the list, and of the search; by default nobody knows it."
    ),
]
NoCatalogueOption = Annotated[bool, typer.Option("--no-catalogue", help="Start from the baseline alone.")]
ProposalsOption = Annotated[int, typer.Option(min=1, max=8, help="Proposals that one request asks for.")]
NoTuningOption = Annotated[
    bool, typer.Option("--no-tuning", help="Only the first configuration of every template.")
]
StreamOption = Annotated[bool, typer.Option("--stream", help="Read replies as they are written.")]


def run(
    problem: ProblemArgument,
    device: CampaignDeviceOption = "auto",
    seconds: SecondsOption = 120.0,
    evaluations: EvaluationsOption = None,
    objective: ObjectiveOption = None,
    slow_cases: SlowOption = None,
    compile_workers: CompileWorkersOption = 4,
    seed: SeedOption = None,
    no_catalogue: NoCatalogueOption = False,
    model: ModelsOption = None,
    max_cost: MaxCostOption = None,
    max_requests: MaxRequestsOption = None,
    model_timeout: ModelTimeoutOption = 600.0,
    proposals: ProposalsOption = 3,
    no_tuning: NoTuningOption = False,
    stream: StreamOption = False,
    strict: StrictOption = False,
    goal: GoalOption = None,
    board: BoardOption = None,
    submit: SubmitOption = False,
    max_submissions: MaxSubmissionsOption = None,
    uncalibrated: UncalibratedOption = False,
    directory: DirOption = DEFAULT_DIR,
    as_json: JsonOption = False,
) -> int:
    """Search for the fastest verified kernel of a problem, starting from its naive baseline.

    Structure comes from language models (--model) and, unless --no-catalogue is given, from the problem's catalogue
    of templates; numbers come from Bayesian optimisation.
    """
    _check(goal, board)
    need_board(board, submit=submit, max_submissions=max_submissions, uncalibrated=uncalibrated)
    need_submit(submit, max_submissions=max_submissions, uncalibrated=uncalibrated)
    name = pick_device(device)  # a driver may take its time to answer
    settings = Settings(
        problem=problem,
        device=name,
        objective=objective,
        seconds=seconds,
        evaluations=evaluations,
        slow_cases=use_slow_cases(name, chosen=slow_cases),
        compile_workers=compile_workers,
        seed=secrets.randbits(SEED_BITS) if seed is None else seed,
        use_catalogue=not no_catalogue,
        models=tuple(text for text in model or () if text != CATALOGUE),
        proposals=proposals,
        max_cost_usd=max_cost,
        max_requests=max_requests,
        model_timeout_s=model_timeout,
        tuning=not no_tuning,
        stream=stream,
        strict=strict,
        goal=goal,
        board=board,
        submit=submit,
        max_submissions=max_submissions or MAX_SUBMISSIONS,
        uncalibrated=uncalibrated,
    )
    return _watch(f"{problem} on {name}", as_json, partial(start_campaign, settings, directory))


def resume(
    campaign: CampaignArgument = "last",
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", "-t", parser=number_between(1, 86400), help="New total time budget, at most 86400."
        ),
    ] = None,
    evaluations: Annotated[int | None, typer.Option(min=1, help="New total budget in experiments.")] = None,
    max_cost: MaxCostOption = None,
    max_requests: MaxRequestsOption = None,
    model_timeout: NewTimeoutOption = None,
    strict: StrictOption = False,
    goal: GoalOption = None,
    board: BoardOption = None,
    submit: SubmitOption = False,
    max_submissions: MaxSubmissionsOption = None,
    uncalibrated: UncalibratedOption = False,
    directory: DirOption = DEFAULT_DIR,
    as_json: JsonOption = False,
) -> int:
    """Go on with a campaign that was interrupted or killed, from the memory alone.

    What is given replaces what the campaign began with; --goal none takes a goal away.
    """
    _check(goal, board)
    changes = {
        "seconds": seconds,
        "evaluations": evaluations,
        "max_cost_usd": max_cost,
        "max_requests": max_requests,
        "model_timeout_s": model_timeout,
        "strict": strict or None,
        "goal": goal,
        "board": board,
        "submit": submit or None,
        "max_submissions": max_submissions,
        "uncalibrated": uncalibrated or None,
    }
    return _watch(
        f"resumed {campaign}",
        as_json,
        lambda listener: resume_campaign(campaign, directory, listener, changes),
    )


def _check(goal: str | None, board: str | None) -> None:
    """Raises UserError for what can be told at once."""
    if goal not in {None, NO_GOAL, PROBLEM_GOAL}:
        parse_goal(goal)
    if board is not None:
        check_board(board)


def _watch(title: str, as_json: bool, sitting: Sitting) -> int:
    """Run a sitting under a live view (or with its notes alone, for scripts) and print its result; exit code."""
    if as_json:
        result = asyncio.run(sitting(Noting()))
        typer.echo(json.dumps({**result.as_json(), "peak_rss_mb": peak_rss_mb()}))
    else:
        console = PatientConsole()
        with LiveView(console, f"kernelwright: {title}") as view:
            result = asyncio.run(sitting(view))
        print_result(console, result)
    return 130 if result.state == "interrupted" else 0


def peak_rss_mb() -> float:
    """Most memory that this process (not its children) has held, in MB.

    Not ``ru_maxrss``: that also counts what the program that started this one held when it did (Linux, exec).
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return round(int(found[1]) * 1024 / 1e6, 1) if found else 0.0


def print_result(console: Console, result: CampaignResult) -> None:
    """The result for people: what was reached, on what, and how sure that is."""
    label = f"{result.device} ({result.device_model})"
    if result.slow_cases:
        label += ", small cases"
    console.print(
        f"\n{result.problem} on {label}, objective {result.objective}: {result.state}",
        style="bold",
        markup=False,
    )
    table = Table("case", "baseline ms", "incumbent ms", "ratio", box=None, pad_edge=False)
    for case, before in result.baseline.times.items():
        after = result.incumbent.times[case]
        table.add_row(case, f"{before:.4g}", f"{after:.4g}", f"{after / before:.3f}")
    base, best = result.baseline.time_ms, result.incumbent.time_ms
    table.add_row("objective", f"{base:.4g}", f"{best:.4g}", f"{result.ratio:.3f}", style="bold")
    console.print(table)
    console.print(f"incumbent {result.incumbent.id}: {result.incumbent.description}", markup=False)
    if result.confirmation is not None:
        confirmed = result.confirmation
        console.print(
            f"run in turn at the end: {confirmed.ratio:.3f}x of the baseline's time "
            f"({1 / confirmed.ratio:.1f} times as fast; 99 %: {confirmed.low:.4f} to {confirmed.high:.4f})"
        )
    if result.goal is not None:
        console.print(
            f"goal {result.goal}: {'reached' if result.goal_reached else 'not reached'}", markup=False
        )
    if result.board is not None:
        console.print(board_line(result.board), markup=False)
        if result.board["unreached"]:
            console.print(result.board["unreached"], style="yellow", markup=False)
    for warning in result.warnings:
        console.print(f"the problem's self-test: {warning}", style="yellow", markup=False)
    if result.device == "cpu":
        console.print("These are CPU times: they say nothing about a GPU.", style="yellow")
    counts = ", ".join(f"{count} {status}" for status, count in result.statuses.items())
    console.print(
        f"{result.experiments} experiments in {result.seconds:.0f} s: {counts}; campaign {result.campaign}"
    )
    console.print(f"next: kernelwright show {result.campaign} --source", markup=False)


def board_line(board: dict[str, Any]) -> str:
    """The own place and what was sent, in a line."""
    ranked = [each for each in board["submissions"] if each["mode"] == "ranked"]
    passed = sum(each["state"] == "passed" for each in ranked)
    place = f"rank {board['rank']} of {board['entries']}" if board["rank"] else "no rank"
    return f"board {board['url']}: {place}; {len(ranked)} ranked submissions, {passed} passed"
