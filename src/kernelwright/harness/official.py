"""Official timing: a board's own evaluator, kept at the import, replayed here on a submission.

The evaluator is a stranger's and the submission is ours: both run confined, and the figures say what the board would
measure on this machine. They prove nothing of a candidate's results, which the harness checks by itself.
"""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Final

from kernelwright.core.errors import MissingError, UserError
from kernelwright.harness.device_lock import device_lock
from kernelwright.harness.enclosure import Enclosure, Ran
from kernelwright.leaderboard.base import Mode, Result, State
from kernelwright.leaderboard.board_file import (
    BOARD_FILE,
    SUBMISSION,
    Arguments,
    BoardFile,
    read_board_file,
    read_sources,
)
from kernelwright.leaderboard.gpumode.answers import case_lines, read_result
from kernelwright.leaderboard.kernelbot.facts import STAGES

DEFAULT_TIMEOUT_S: Final = 180.0
"""Where a board does not say."""
COMPILE_TIMEOUT_S: Final = 120.0
"""GPU MODE imports a submission once, to compile it, before anything is measured."""
DESCRIBE_TIMEOUT_S: Final = 120.0
SEED: Final = "POPCORN_SEED"
_CASES: Final = "cases.txt"


@dataclass(frozen=True)
class Replayed:
    """A result as the board would give it, with no id. ``missing``: layers of the sandbox that did not hold."""

    result: Result
    seconds: float
    missing: tuple[str, ...] = ()


async def replay(
    folder: Path,
    submission: str,
    mode: Mode,
    *,
    device: str = "cpu",
    uuid: str = "",
    seed: int | None = None,
    scratch_root: Path | None = None,
) -> Replayed:
    """Run the evaluator of the imported problem in ``folder`` on the text of a submission.

    ``uuid`` is held like in any measurement (empty: nothing is). ``seed`` goes to the evaluator as the board's second,
    unknown seed would. Raises UserError where the folder has no evaluator that can be replayed.
    """
    board = read_board_file(folder)
    files = read_sources(folder, board)
    if board.language != "py" or board.multi_gpu:
        kind = "several GPUs" if board.multi_gpu else f"the language {board.language}"
        raise UserError(
            f"{folder / BOARD_FILE}: official timing is for Python on one GPU, this board has {kind}"
        )
    cases = asked_cases(board, mode)
    files |= {SUBMISSION: submission, _CASES: case_lines(cases)}
    start = monotonic()
    with Enclosure(files, device=device, scratch_root=scratch_root) as enclosure:
        ran = await enclosure.run((SUBMISSION,), COMPILE_TIMEOUT_S)
        if result := _not_compiled(ran, mode):
            return Replayed(result, monotonic() - start, ran.missing)
        environment = {} if seed is None else {SEED: str(seed)}
        async with device_lock(uuid) if uuid else contextlib.nullcontext():
            ran = await enclosure.run((board.main, STAGES[mode], _CASES), timeout_s(board, mode), environment)
    return Replayed(_result(ran, mode, cases, board), monotonic() - start, ran.missing)


def asked_cases(board: BoardFile, mode: Mode) -> Sequence[Arguments]:
    """What the board runs: its tests, all cases, or (ranked) those of which the score is made."""
    if mode is Mode.TEST:
        return board.tests
    return [case.arguments for case in (board.scored if mode is Mode.RANKED else board.cases)]


def timeout_s(board: BoardFile, mode: Mode) -> float:
    """The board's own limit for a mode, in seconds."""
    limits = {
        Mode.TEST: board.limits.test_timeout_s,
        Mode.BENCHMARK: board.benchmark_timeout_s,
        Mode.RANKED: board.limits.ranked_timeout_s,
    }
    return limits[mode] or DEFAULT_TIMEOUT_S


def _not_compiled(ran: Ran, mode: Mode) -> Result | None:
    """The submission by itself fails, so the evaluator could only fail too."""
    if ran.code == 0:
        return None
    if ran.ended:
        return Result("", mode, State.FAILED, f"{SUBMISSION} was ended: {ran.ended}")
    if ran.code is None:
        return Result("", mode, State.TIMED_OUT, f"{SUBMISSION} did not load within {COMPILE_TIMEOUT_S:g} s")
    return Result("", mode, State.FAILED, f"{SUBMISSION} does not load: {ran.printed or f'code {ran.code}'}")


def _result(ran: Ran, mode: Mode, cases: Sequence[Arguments], board: BoardFile) -> Result:
    if ran.ended:
        return Result("", mode, State.FAILED, f"the evaluator was ended: {ran.ended}")
    result = read_result(ran.said, mode, cases, board.ranking, ran.code)
    if result.state is State.FAILED and ran.code and ran.printed:
        return replace(result, reason=f"{result.reason}: {ran.printed}")
    return result


async def describe_inputs(
    sources: dict[str, str],
    cases: Sequence[Arguments],
    *,
    device: str = "cpu",
    scratch_root: Path | None = None,
) -> Ran:
    """A run of ``generate_input`` of ``reference.py`` for some cases; ``leaderboard.gpumode.described`` reads what it said.

    Raises MissingError without torch where it is needed, UserError where the code fails.
    """
    files = {**sources, "cases.json": json.dumps([dict(case) for case in cases])}
    with Enclosure(files, device=device, scratch_root=scratch_root) as enclosure:
        ran = await enclosure.run(
            ("-m", "kernelwright.harness.worker.describe_inputs", "cases.json"), DESCRIBE_TIMEOUT_S
        )
    if ran.code == 0:
        return ran
    if "No module named 'torch'" in ran.printed:
        raise MissingError(
            "running generate_input needs PyTorch: pip install torch, or describe the arguments with --arguments FILE"
        )
    if ran.code is None:
        why = ran.ended or f"it did not end within {DESCRIBE_TIMEOUT_S:g} s"
        raise UserError(f"reference.py: generate_input was ended: {why}: give --arguments FILE")
    raise UserError(f"reference.py: generate_input fails: {ran.printed or f'code {ran.code}'}")
