"""Every entry of a gauntlet through the harness, as if each could become the incumbent: no check is left out."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, HarnessError, PlanError
from kernelwright.core.outcome import Check, Outcome, Status
from kernelwright.gauntlet.entry import Entry, check_problems
from kernelwright.gauntlet.judge import Report, Row, Verdict, judge, make_row
from kernelwright.harness.device_lock import silent
from kernelwright.harness.local import LocalHarness, Timeouts
from kernelwright.harness.protocol import SanitizerResult
from kernelwright.harness.together import together

TIMEOUTS: Final = Timeouts(compile_s=30.0, run_s=3.0, grace_s=60.0)
"""An endless kernel costs ``run_s``; compiler bombs cost ``compile_s``, side by side where there are cores."""
HARNESSES: Final = 4
WATCHED: Final = 3
"""Candidates under compute-sanitizer at once: each starts four processes."""
_NEEDS: Final = {"cuda": "needs a CUDA device", "cpu": "needs the cpu device"}


def _cores() -> int:
    return max(2, min(16, len(os.sched_getaffinity(0))))


async def run_gauntlet(
    entries: Sequence[Entry],
    device: str,
    *,
    slow_cases: bool,
    seed: int = 0,
    timeouts: Timeouts = TIMEOUTS,
    notify: Callable[[Row], None] = lambda _: None,
    tell: Callable[[str], None] = silent,
) -> Report:
    """Judge all entries, one harness a problem. ``notify`` hears of every row as it is ready, ``tell`` messages for people.

    Who cancels it gets what is known by then: the rest stands as not run.

    Raises UserError or HarnessError when a harness cannot start; what happens to one file is that file's verdict.
    """
    check_problems(entries)
    rows: dict[str, Row] = {}
    models: list[str] = []
    # On a GPU the checks of one problem wait for the device while another's worker starts anew after a crash.
    at_once = asyncio.Semaphore(1 if device == "cpu" else HARNESSES)

    async def one_problem(problem: str) -> None:
        async with (
            at_once,
            LocalHarness(
                problem,
                device,
                seed=seed,
                compile_workers=_cores(),
                slow_cases=slow_cases,
                timeouts=timeouts,
                notify=tell,
            ) as harness,
        ):
            models.append(harness.facts.model)
            lane = Lane(harness, asyncio.Semaphore(WATCHED), keep)
            await together(lane.row(entry) for entry in entries if entry.problem == problem)

    def keep(row: Row) -> None:
        rows[row.file] = row
        notify(row)

    interrupted = False
    try:
        await together(one_problem(name) for name in dict.fromkeys(e.problem for e in entries))
    except asyncio.CancelledError:
        interrupted = True
    judged = tuple(rows.get(entry.file) or _unjudged(entry) for entry in entries)
    return Report(device, models[0] if models else device, judged, interrupted)


def _unjudged(entry: Entry) -> Row:
    return make_row(entry, Verdict.NOT_RUN, status=Status.NOT_RUN, reason="interrupted before its verdict")


class Lane:
    """The entries of one problem."""

    def __init__(
        self, harness: LocalHarness, watched: asyncio.Semaphore, notify: Callable[[Row], None]
    ) -> None:
        self._harness = harness
        self._watched = watched
        self._notify = notify

    async def row(self, entry: Entry) -> Row:
        """The verdict on one entry, which ``notify`` hears too."""
        row = await self._judged(entry)
        self._notify(row)
        return row

    async def _judged(self, entry: Entry) -> Row:
        if entry.needs not in {"", self._harness.facts.kind}:
            return make_row(entry, Verdict.NOT_RUN, status=Status.NOT_RUN, reason=_NEEDS[entry.needs])
        try:
            return judge(entry, await self._outcome(entry))
        except (PlanError, ExpressionError) as error:
            return judge(entry, Outcome(Status.COMPILE_FAILED, str(error), check=Check.PLAN))
        except HarnessError as error:
            return make_row(entry, Verdict.ERROR, status=Status.NOT_RUN, reason=str(error))

    async def _outcome(self, entry: Entry) -> Outcome:
        template = parse_template(entry.text, entry.file)
        candidate = Candidate(template, first_configuration(template, self._harness.facts))
        compiled = await self._harness.compile(candidate)
        if compiled.status is not None:
            return compiled.as_outcome()
        outcome = await self._harness.benchmark(candidate, compiled)
        if outcome.status is not Status.MEASURED:
            return outcome
        check = Check.SANITIZER if self._harness.facts.kind == "cuda" else Check.CHECKED_MODE
        async with self._watched:
            return sanitized(outcome, await self._harness.sanitize(candidate, compiled), check)


def sanitized(outcome: Outcome, found: SanitizerResult, check: Check = Check.SANITIZER) -> Outcome:
    """What became of a measured candidate under what every new incumbent meets: compute-sanitizer, or the checked mode."""
    if found.status in {Status.MEASURED, Status.NOT_RUN}:
        note = f"{check}: {found.reason.removeprefix(f'{check}: ')}" if found.status is Status.NOT_RUN else ""
        return replace(outcome, reason=note)
    return Outcome(found.status, found.reason, seconds=outcome.seconds, check=check)


def first_configuration(template: Template, facts: DeviceFacts) -> Configuration:
    """The first valid configuration. Raises PlanError when there is none, or too many to list."""
    space = template.plan.space(facts)
    if not space.enumerable:
        raise PlanError(
            f"has too many configurations to list ({space.cartesian} without constraints; most values: {space.widest})",
            template.name,
        )
    return space.configuration(0)
