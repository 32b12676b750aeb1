"""Writes a board's task as a problem folder of ours: all of it or nothing.

``problem.toml``, ``reference.py`` and ``baseline.cu`` as in docs/problems.md, ``board.toml``
(:mod:`kernelwright.leaderboard.board_file`), and in ``board/`` the board's own files, byte for byte.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import UserError
from kernelwright.core.files import place_folder, read_text
from kernelwright.core.homes import expanded
from kernelwright.core.plan_faults import placed
from kernelwright.leaderboard.base import Limits
from kernelwright.leaderboard.board_file import (
    BOARD_FILE,
    SOURCES_FOLDER,
    BoardFile,
    format_board_file,
    toml_pairs,
    toml_value,
)
from kernelwright.leaderboard.export.targets import gpu_facts
from kernelwright.leaderboard.gpumode.draft import Draft, draft
from kernelwright.leaderboard.gpumode.drafted import refuse_faults
from kernelwright.leaderboard.gpumode.files import MAX_SOURCE_BYTES
from kernelwright.leaderboard.gpumode.inputs_read import UNKNOWN_FILL, Returned, Tensor
from kernelwright.leaderboard.gpumode.reference_facts import Facts, read_reference
from kernelwright.leaderboard.gpumode.task import Task
from kernelwright.leaderboard.gpumode.translate import NotPlain, Translated, translate
from kernelwright.leaderboard.gpumode.user_tables import UserTables
from kernelwright.leaderboard.kernelbot.facts import MAX_BYTES
from kernelwright.problems.loader import Problem, load_problem
from kernelwright.problems.plans import plans_for

REFERENCE: Final = "reference.py"
BASELINE: Final = "baseline.cu"
USUAL_GPU: Final = "H100"
_TABLES: Final = ("inputs", "trials", "work")
_LISTS: Final = ("arguments", "cases", "slow_cases")


@dataclass(frozen=True)
class Written:
    """What was written: ``missing`` are files that the user has to add before the problem can be used."""

    folder: Path
    missing: tuple[str, ...]
    notes: tuple[str, ...]


def write_problem_folder(
    task: Task,
    target: Path,
    *,
    baseline: Path | None = None,
    reference: Path | None = None,
    user: UserTables | None = None,
    said: str = "--arguments",
    described: Returned | None = None,
) -> Written:
    """Write ``target``, which must not exist yet. Raises UserError, and nothing is left then.

    ``said`` is the file that ``user`` was read from; ``described`` is what a run of ``generate_input`` in the sandbox showed (:mod:`.described`).
    """
    user = user or UserTables()
    facts = read_reference(task.sources.get(REFERENCE, ""), f"{task.origin}: {REFERENCE}", described)
    facts = _as_said(facts, user)
    own, why = _reference(facts, task.name, user)
    made = draft(task, problem_name(task.name), facts, user, own.product if own else None, said=said)
    board = _board(task, made)
    refuse_faults(task, made, board, user, said)
    if own and (absent := sorted(own.sizes - set(made.problem["cases"][0]["sizes"]))):
        own, why = None, f"it reads {absent[0]}, which is no size: name it in sizes of --arguments"
    texts = {
        "problem.toml": format_problem(made.problem),
        BOARD_FILE: format_board_file(board),
        **{f"{SOURCES_FOLDER}/{name}": text for name, text in task.sources.items()},
    }
    if reference is not None:
        texts[REFERENCE] = read_text(reference, MAX_SOURCE_BYTES)
    elif own is not None:
        texts[REFERENCE] = own.text
    simple = None
    if baseline is not None:
        texts[BASELINE] = read_text(baseline, MAX_SOURCE_BYTES)
        simple = parse_template(texts[BASELINE], str(baseline))
    target = expanded(target)
    files = {name: text.encode() for name, text in texts.items()}
    place_folder(target, files, partial(_look, baseline=simple, gpus=task.gpus))
    missing = tuple(name for name in (REFERENCE, BASELINE) if name not in texts)
    unmade = (f"the board's ref_kernel could not be made a {REFERENCE} of ours: {why}",)
    return Written(target, missing, (*made.notes, *(unmade if REFERENCE in missing else ())))


def problem_name(text: str) -> str:
    """A name that a problem may have, of a board's."""
    return re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-_")[:60] or "imported"


def _as_said(facts: Facts, user: UserTables) -> Facts:
    """With what the user says of items that could not be read."""
    said = {argument.name: argument for argument in user.arguments if argument.shape}
    values = tuple(
        Tensor(said[name].dtype, said[name].shape or (), UNKNOWN_FILL)
        if name in said and not isinstance(value, Tensor)
        else value
        for name, value in zip(facts.inputs.names, facts.inputs.values, strict=True)
    )
    outputs = tuple(n for n in facts.inputs.names if n in said and said[n].is_output) or facts.outputs
    return replace(facts, inputs=replace(facts.inputs, values=values), outputs=outputs)


def _reference(facts: Facts, title: str, user: UserTables) -> tuple[Translated | None, str]:
    try:
        own = translate(facts, title)
    except NotPlain as error:
        return None, str(error)
    named = {argument.name for argument in user.arguments if argument.shape}
    if named and named != own.arrays:
        return (
            None,
            f"it is about {', '.join(sorted(own.arrays))}, the arguments are {', '.join(sorted(named))}",
        )
    return own, ""


def _board(task: Task, made: Draft) -> BoardFile:
    return BoardFile(
        leaderboard=task.name,
        ranking=task.ranking,
        cases=made.cases,
        gpus=task.gpus,
        tests=task.tests,
        abi=made.abi if task.language == "py" else None,
        limits=Limits(
            max_bytes=MAX_BYTES,
            test_timeout_s=task.test_timeout_s,
            ranked_timeout_s=task.ranked_timeout_s,
        ),
        benchmark_timeout_s=task.benchmark_timeout_s,
        language=task.language,
        main=task.main,
        multi_gpu=task.multi_gpu,
        sources={name: sha256(text.encode()).hexdigest() for name, text in task.sources.items()},
    )


def _look(made: Path, baseline: Template | None, gpus: Sequence[str]) -> None:
    """The folder is a sound problem, but for files that a user has yet to add."""
    absent = [made / name for name in (REFERENCE, BASELINE) if not (made / name).exists()]
    for path in absent:
        path.touch()
    problem = load_problem(made)
    if baseline is not None:
        _try_plan(baseline, problem, gpus)
    for path in absent:
        path.unlink()


def _try_plan(baseline: Template, problem: Problem, gpus: Sequence[str]) -> None:
    """Its names are those of the problem, its launches possible: as a campaign would say it at its beginning."""
    facts = _facts(gpus)
    try:
        with placed(baseline):
            candidate = Candidate(baseline, baseline.plan.space(facts).configuration(0))
            for slow in (False, True):
                plans_for(candidate, problem.cases(slow=slow), facts, problem.signature)
    except UserError as error:
        raise UserError(f"--baseline: {error} (nothing was written)") from None


def _facts(gpus: Sequence[str]) -> DeviceFacts:
    """Of the first GPU of the board that we know; else of a usual one."""
    for gpu in gpus:
        with contextlib.suppress(UserError):
            return gpu_facts(gpu)
    return gpu_facts(USUAL_GPU)


def format_problem(problem: Mapping[str, Any]) -> str:
    """The text of a ``problem.toml``."""
    lines = ["# Imported from a leaderboard, see board.toml. Look at [work]: what must at least be moved."]
    for key, value in problem.items():
        if key == "description":
            lines.append(f"description = {_long(str(value))}")
        elif key not in {*_TABLES, *_LISTS}:
            lines += toml_pairs({key: value})
    for key in (*_LISTS[:1], *_TABLES, *_LISTS[1:]):
        value = problem.get(key)
        if isinstance(value, Mapping):
            lines += ["", f"[{key}]", *toml_pairs(value)]
        for entry in value if isinstance(value, list) else ():
            lines += ["", f"[[{key}]]", *toml_pairs(entry)]
    return "\n".join(lines) + "\n"


def _long(text: str) -> str:
    """A string of several lines, each escaped for itself."""
    return '"""\n' + "\n".join(toml_value(line)[1:-1] for line in text.splitlines()) + '"""'
