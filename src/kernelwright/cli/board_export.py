"""``board export``: a candidate as the file that a board takes, and what a dry run says of it."""

import asyncio
import json
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from kernelwright.cli.check import choose, read_template
from kernelwright.cli.options import ForceOption, JsonOption, path, pick_device
from kernelwright.cli.plain import PlainConsole
from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import UserError
from kernelwright.core.files import place, refuse_existing
from kernelwright.core.plan_faults import placed
from kernelwright.harness.enclosure import told
from kernelwright.harness.host_code import judge_host_code
from kernelwright.harness.official import replay
from kernelwright.harness.rules.source import check_source
from kernelwright.leaderboard.abi import Abi
from kernelwright.leaderboard.base import Mode, State
from kernelwright.leaderboard.board_file import BOARD_FILE, BoardFile, read_board_file
from kernelwright.leaderboard.export import write_submission
from kernelwright.leaderboard.export.entry import usual_abi
from kernelwright.leaderboard.export.gate import Answer, Finding, Gate, Judge, refused
from kernelwright.leaderboard.export.targets import gpu_facts
from kernelwright.leaderboard.export.twins import write_twins
from kernelwright.leaderboard.kernelbot.facts import MAX_BYTES
from kernelwright.problems.loader import Problem, load_problem
from kernelwright.problems.plans import plans_for
from kernelwright.problems.rules import candidate_rules

STYLES: Final = {Answer.PASSED: "green", Answer.REFUSED: "bold red", Answer.NOT_RUN: "yellow"}


def export(
    file: Annotated[Path, typer.Argument(parser=path, help="A .cu file that starts with a plan.")],
    problem: Annotated[str, typer.Option("--problem", "-p", help="A bundled problem's name, or a folder.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", parser=path, help="Where the Python file goes.")
    ] = Path("submission.py"),
    leaderboard: Annotated[str, typer.Option(help="The board's name; by default that of board.toml.")] = "",
    gpu: Annotated[
        str, typer.Option(help="The GPU by the board's name, such as H100; by default the board's first.")
    ] = "",
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--configuration",
            "--set",
            metavar="NAME=VALUE",
            help="A tunable's value; others take their first.",
        ),
    ] = None,
    replay_on: Annotated[
        str,
        typer.Option(
            "--replay", metavar="DEVICE", help="Also run the board's own evaluator here, such as cuda:0."
        ),
    ] = "",
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> int:
    """Write a candidate as submission.py and examine it as a board would. Exit code 1, and no file, when refused."""
    refuse_existing(output, force=force)
    template = read_template(file)
    loaded = load_problem(problem)
    board = _board(loaded)
    gpu = gpu or (board.gpus[0] if board and board.gpus else "")
    if not gpu:
        raise UserError("--gpu is needed: give the board's name of the GPU, such as H100")
    facts = gpu_facts(gpu)
    candidate = Candidate(template, choose(template, facts, values or []))
    with placed(template):
        plans_for(candidate, loaded.cases(slow=False), facts, loaded.signature)
    name = leaderboard or (board.leaderboard if board else "")
    text = write_submission(
        candidate, loaded.spec.arguments, _abi(loaded, board), (facts.arch,), leaderboard=name, gpu=gpu
    )
    limit = (board.limits.max_bytes if board else None) or MAX_BYTES
    timing = official(loaded, pick_device(replay_on)) if replay_on else None
    host = _host(loaded, candidate, _abi(loaded, board), facts)
    gate = Gate(limit, rules=_rules(loaded, candidate), host=host, replay=timing)
    findings = gate.examine(text.encode(), output.name)
    fault = refused(findings)
    if fault is None:
        place(output, text.encode())
    _show(findings, output, candidate, as_json=as_json)
    return 0 if fault is None else 1


def _board(problem: Problem) -> BoardFile | None:
    return read_board_file(problem.folder) if (problem.folder / BOARD_FILE).exists() else None


def _abi(problem: Problem, board: BoardFile | None) -> Abi:
    return board.abi if board and board.abi else usual_abi(problem)


def _rules(problem: Problem, candidate: Candidate) -> Judge:
    """Ours, on the source as it was written: the export has lost its plan."""

    def judge(_: str) -> tuple[Answer, str]:
        rules = replace(candidate_rules(problem), portable=True)
        broken = check_source(candidate.template.source, rules)
        return (Answer.REFUSED, broken.reason) if broken else (Answer.PASSED, "")

    return judge


def _host(problem: Problem, candidate: Candidate, abi: Abi, facts: DeviceFacts) -> Judge:
    """What nvcc makes of the file for the board's host: nothing of it may be the candidate's."""
    return lambda _: judge_host_code(write_twins(candidate, problem.spec.arguments, abi, facts))


def official(problem: Problem, device: str) -> Judge:
    """The board's own tests and timing, where its files were kept and PyTorch is there."""

    def judge(text: str) -> tuple[Answer, str]:
        if find_spec("torch") is None:
            return Answer.NOT_RUN, "PyTorch is not installed: pip install torch"
        try:
            replayed = [
                asyncio.run(replay(problem.folder, text, mode, device=device))
                for mode in (Mode.TEST, Mode.BENCHMARK)
            ]
        except UserError as error:
            return Answer.NOT_RUN, str(error)
        results = [each.result for each in replayed]
        failed = next((result for result in results if result.state is not State.PASSED), None)
        if failed:
            return Answer.REFUSED, f"{failed.mode}: {failed.state}: {failed.reason}"
        times = ", ".join(f"{case.mean_s * 1e3:.4g}" for case in results[1].cases)
        lacking = told(replayed[1].missing)
        return Answer.PASSED, f"milliseconds: {times}{lacking and f'; {lacking}'}"

    return judge


def _show(findings: tuple[Finding, ...], output: Path, candidate: Candidate, *, as_json: bool) -> None:
    written = refused(findings) is None
    if as_json:
        checks = [asdict(finding) for finding in findings]
        where = str(output) if written else None
        typer.echo(json.dumps({"candidate": candidate.id, "file": where, "checks": checks}))
        return
    console = PlainConsole()
    table = Table("check", "answer", "detail", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(finding.check, Text(finding.answer, style=STYLES[finding.answer]), Text(finding.detail))
    console.print(table)
    console.print(
        Text(f"{candidate}: {f'written to {output}' if written else 'refused, nothing was written'}")
    )
