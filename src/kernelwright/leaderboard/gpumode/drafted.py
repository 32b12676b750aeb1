"""Judges what was drafted before anybody sees it: what is wrong is told by the user's own files, not by ours."""

from typing import Final

from kernelwright.core.errors import UserError
from kernelwright.core.toml_words import Place, key_text
from kernelwright.leaderboard.board_file import BoardFile, board_faults
from kernelwright.leaderboard.gpumode.draft import Draft
from kernelwright.leaderboard.gpumode.task import Task
from kernelwright.leaderboard.gpumode.user_tables import UserTables
from kernelwright.problems.loader import SpecFault, spec_of

_OF_TASK: Final = {
    "description": "description",
    "objective": "ranking_by",
    "title": "name",
    "name": "name",
    "leaderboard": "name",
}


def refuse_faults(task: Task, made: Draft, board: BoardFile, user: UserTables, said: str) -> None:
    """Raises UserError for the first thing that is wrong; ``said`` is the file of ``--arguments``."""
    try:
        spec_of(made.problem)
    except SpecFault as fault:
        where = _where(fault.place, task, made, user, said)
        hint = "" if where.startswith(f"{said}: ") else "; --arguments FILE can say it better"
        raise UserError(f"{where}: {fault.what} (nothing was written{hint})") from None
    for key, what in board_faults(board):
        where = f"{said}: {key}" if key == "abi" else f"{task.origin}: {_OF_TASK.get(key, key)}"
        raise UserError(f"{where}: {what} (nothing was written)")


def _where(place: Place, task: Task, made: Draft, user: UserTables, said: str) -> str:
    """The file and the key of the user's that a key of the drafted ``problem.toml`` was made of."""
    key = f"{place[0]}" if place else ""
    if getattr(user, key, None):
        return f"{said}: {key_text(place, made.problem)}"
    if key == "cases":
        return f"{task.origin}: {_case('benchmarks', place[1:])}"
    if key == "slow_cases" or place[:2] == ("trials", "other_sizes"):
        return f"{task.origin}: {_of_test(place, task, made)}"
    if key in _OF_TASK:
        return f"{task.origin}: {_OF_TASK[key]}"
    return f"{task.origin}: reference.py: generate_input: {key_text(place, made.problem)}"


def _case(cases: str, place: Place) -> str:
    """``[2].size`` of a list of cases; ours have the arguments under ``sizes``."""
    index, *names = place
    return f"{cases}[{index}]" + "".join(f".{name}" for name in names if name not in {"sizes", "id"})


def _of_test(place: Place, task: Task, made: Draft) -> str:
    """The test that a size was taken from."""
    kind, *rest = place if place[0] == "slow_cases" else place[1:]
    if not rest:
        return "tests"
    listed = made.problem["slow_cases"] if kind == "slow_cases" else made.problem["trials"]["other_sizes"]
    entry = listed[rest[0]]
    sizes = entry["sizes"] if kind == "slow_cases" else entry
    index = next(i for i, test in enumerate(task.tests) if sizes.items() <= test.items())
    return _case("tests", (index, *rest[1:]))
