"""Every entry of a gauntlet through the harness, as if each could become the incumbent: no check is left out."""

import asyncio
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
from kernelwright.harness.local import LocalHarness, Timeouts
from kernelwright.harness.protocol import SanitizerResult

TIMEOUTS: Final = Timeouts(compile_s=60.0, run_s=10.0, grace_s=60.0)
"""An endless kernel costs ``run_s`` for each of its cases at most."""
AT_ONCE: Final = 3
"""Files under way in one harness: two compile while one has the device."""


async def run_gauntlet(
    entries: Sequence[Entry],
    device: str,
    *,
    slow_cases: bool,
    seed: int = 0,
    timeouts: Timeouts = TIMEOUTS,
    notify: Callable[[Row], None] = lambda _: None,
) -> Report:
    """Judge all entries, one harness a problem. ``notify`` hears of every row as it is ready.

    Raises UserError or HarnessError when a harness cannot start; what happens to one file is that file's verdict.
    """
    check_problems(entries)
    rows: dict[str, Row] = {}
    model = device
    for problem in dict.fromkeys(entry.problem for entry in entries):
        async with LocalHarness(
            problem, device, seed=seed, compile_workers=2, slow_cases=slow_cases, timeouts=timeouts
        ) as harness:
            model = harness.facts.model
            lane = _Lane(harness, asyncio.Semaphore(AT_ONCE), notify)
            mine = [entry for entry in entries if entry.problem == problem]
            for row in await asyncio.gather(*(lane.row(entry) for entry in mine)):
                rows[row.file] = row
    return Report(device, model, tuple(rows[entry.file] for entry in entries))


class _Lane:
    """The entries of one problem."""

    def __init__(
        self, harness: LocalHarness, at_once: asyncio.Semaphore, notify: Callable[[Row], None]
    ) -> None:
        self._harness = harness
        self._at_once = at_once
        self._notify = notify

    async def row(self, entry: Entry) -> Row:
        async with self._at_once:
            row = await self._judged(entry)
        self._notify(row)
        return row

    async def _judged(self, entry: Entry) -> Row:
        if entry.needs == "cuda" and self._harness.facts.kind != "cuda":
            return make_row(entry, Verdict.NOT_RUN, status=Status.NOT_RUN, reason="needs a CUDA device")
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
        if outcome.status is not Status.MEASURED or self._harness.facts.kind != "cuda":
            return outcome
        return sanitized(outcome, await self._harness.sanitize(candidate, compiled))


def sanitized(outcome: Outcome, found: SanitizerResult) -> Outcome:
    """What became of a measured candidate under compute-sanitizer, which every new incumbent meets."""
    if found.status in {Status.MEASURED, Status.NOT_RUN}:
        note = f"compute-sanitizer: {found.reason}" if found.status is Status.NOT_RUN else ""
        return replace(outcome, reason=note)
    return Outcome(found.status, found.reason, seconds=outcome.seconds, check=Check.SANITIZER)


def first_configuration(template: Template, facts: DeviceFacts) -> Configuration:
    """The first valid configuration. Raises PlanError when there is none, or too many to list."""
    space = template.plan.space(facts)
    if not space.enumerable:
        raise PlanError(
            f"has too many configurations to list ({space.cartesian} without constraints)", template.name
        )
    return space.configuration(0)
