"""The self-test of a problem: its reference and its tolerance in a sandboxed child, its baseline on the device."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.errors import HarnessError, ProblemError, UserError, WorkerDied
from kernelwright.core.outcome import KILLED, Check, Outcome, Status
from kernelwright.harness.child import Child, ChildDied, StepTimeout
from kernelwright.harness.device_lock import silent
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.processes import import_roots, readable_folders
from kernelwright.harness.protocol import CompileResult
from kernelwright.harness.scratch import Scratch
from kernelwright.harness.self_test import (
    LOOK_FLOPS,
    RAISES,
    TRIALS,
    SelfTest,
    SelfTestRequest,
    SelfTestRow,
    Verdict,
    multiples,
)
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import Reply, Request
from kernelwright.problems.loader import Case, Problem
from kernelwright.problems.tolerance import fit
from kernelwright.problems.trials import is_cheap

REFERENCE_TIMEOUT_S: Final = 120.0
QUICK_TIMEOUT_S: Final = 30.0
MAX_CASES: Final = 3
_REFERENCE_BYTES: Final = 8 << 30
_PLACE: Final = re.compile(r"^candidate\.cu[:(]\d+\)?: ")
"""In a text of ours, which nobody sees."""


async def self_test(
    problem: Problem,
    device: str,
    *,
    slow: bool,
    seed: int = 0,
    timeout_s: float = REFERENCE_TIMEOUT_S,
    strict: bool = False,
    notify: Callable[[str], None] = silent,
) -> SelfTest:
    """Everything: impostors and reference on the cheap cases, the trials, and the baseline on ``device``.

    ``notify`` hears messages for people.

    Raises ProblemError where the reference cannot be used at all: it raises, never ends, or ends its process;
    UserError when ``strict`` and a layer of the sandbox is missing.
    """
    cases = cheap_cases(problem, problem.cases(slow=slow))
    requests = [*(SelfTestRequest(case.id) for case in cases), SelfTestRequest(TRIALS)]
    rows = await _of_reference(problem, requests, slow=slow, seed=seed, timeout_s=timeout_s, strict=strict)
    baseline = await _of_baseline(problem, device, slow=slow, seed=seed, strict=strict, notify=notify)
    return SelfTest((*_unseen(cases), *rows, *baseline))


async def quick_selftest(
    problem: Problem,
    *,
    slow: bool = False,
    seed: int = 0,
    timeout_s: float = QUICK_TIMEOUT_S,
    strict: bool = False,
) -> SelfTest:
    """Impostors and reference on the smallest case, and sizes off the list, in a second or two.

    For a problem that is not bundled; its warnings have to stand beside every result. Errors as :func:`self_test`,
    also for a reference that raises on a trial: the first contender would end the campaign.
    """
    small = cheap_cases(problem, problem.cases(slow=slow))[:1]
    slow_case = cheap_cases(problem, problem.cases(slow=True))[:1]
    if slow_case and (not small or sum(problem.work(slow_case[0])) < sum(problem.work(small[0]))):
        small, slow = slow_case, True
    requests = [SelfTestRequest(case, quick=True) for case in (*(case.id for case in small), TRIALS)]
    rows = await _of_reference(problem, requests, slow=slow, seed=seed, timeout_s=timeout_s, strict=strict)
    if raised := next((row for row in rows if row.name == RAISES), None):
        raise ProblemError(f"{raised.detail} (the trial {raised.case!r}): {raised.mend}")
    return SelfTest((*_unseen(small), *rows))


def cheap_cases(problem: Problem, cases: Sequence[Case]) -> Sequence[Case]:
    """The smallest cases that a CPU answers many times over in seconds, at most three, smallest first.

    Where no case is so small, the largest trial off the list stands in.
    """
    few = [case for case in cases if is_cheap(problem.spec, case.sizes, flops=LOOK_FLOPS)]
    if few:
        return sorted(few, key=lambda case: sum(problem.work(case)))[:MAX_CASES]
    others = [t for t in problem.trials(slow=bool(cases[0].slow)) if t.check is Check.OTHER_SIZES]
    return sorted(others, key=lambda trial: sum(problem.work(trial)))[-1:]


def _unseen(cases: Sequence[Case]) -> list[SelfTestRow]:
    if cases:
        return []
    detail = "every case is too large to look at on a CPU, and there are no sizes off the list"
    return [SelfTestRow("impostors", "", Verdict.WARNING, detail, "add a small case under slow_cases")]


async def _of_reference(
    problem: Problem,
    requests: Sequence[SelfTestRequest],
    *,
    slow: bool,
    seed: int,
    timeout_s: float,
    strict: bool,
) -> tuple[SelfTestRow, ...]:
    rows: list[SelfTestRow] = []
    async with _reference_worker(problem, slow=slow, seed=seed, strict=strict) as child:
        for request in requests:
            rows += await _ask(child, problem, request, timeout_s)
    return tuple(rows)


@asynccontextmanager
async def _reference_worker(problem: Problem, *, slow: bool, seed: int, strict: bool) -> AsyncIterator[Child]:
    scratch = Scratch()
    setup = WorkerSetup(
        role="reference",
        device="cpu",
        parent=os.getpid(),
        scratch=str(scratch.folder("reference")),
        artifacts=str(scratch.artifacts),
        cache=str(scratch.folder("cache")),
        problem=str(problem.folder.resolve()),
        seed=seed,
        slow_cases=slow,
        memory_bytes=_REFERENCE_BYTES,
        readable=readable_folders(import_roots(), problem.folder),
    )
    child = Child(setup, strict=strict)
    try:
        yield child
    finally:
        await child.kill()
        scratch.close()


async def _ask(
    child: Child, problem: Problem, request: SelfTestRequest, timeout_s: float
) -> tuple[SelfTestRow, ...]:
    where = f"{problem.folder / 'reference.py'}"
    case = "a trial" if request.case == TRIALS else f"the case {request.case}"
    try:
        reply = await _answer(child, Request(0, self_test=request), timeout_s)
    except StepTimeout:
        raise ProblemError(
            f"{where}: did not answer for {case} within {timeout_s:g} s: make it end, or faster"
        ) from None
    except WorkerDied as error:
        how = str(error).partition("worker ")[2] or str(error)
        raise ProblemError(
            f"{where}: the process {how} on {case}: return values and leave the process alone "
            "(no os._exit, no signals, less memory)"
        ) from None
    except UserError as error:
        raise ProblemError(str(error)) from None
    if reply.self_tested is None:
        raise HarnessError("the reference worker gave no rows")
    return reply.self_tested


async def _answer(child: Child, request: Request, timeout_s: float) -> Reply:
    """What was killed may have been killed from outside: it is asked once more."""
    await child.start()
    try:
        return await child.ask(request, timeout_s)
    except ChildDied as error:
        if not error.from_outside:
            raise
    return await child.ask(request, timeout_s)


async def _of_baseline(
    problem: Problem,
    device: str,
    *,
    slow: bool,
    seed: int,
    strict: bool,
    notify: Callable[[str], None],
) -> list[SelfTestRow]:
    """The baseline as a candidate: every case and every trial, and its own error in multiples of the tolerance."""
    template = parse_template(problem.baseline_source, "baseline.cu")
    async with LocalHarness(
        problem.folder, device, seed=seed, compile_workers=1, slow_cases=slow, strict=strict, notify=notify
    ) as harness:
        space = template.plan.space(harness.facts)
        candidate = Candidate(template, space.configuration(0))
        compiled = await harness.compile(candidate)
        headers = [] if compiled.status else await _header_rows(harness, template, device)
        outcome = compiled.as_outcome() if compiled.status else await harness.benchmark(candidate, compiled)
        errors = {timing.case: timing.max_error for timing in outcome.cases}
        if errors:
            errors |= dict((await harness.try_all(candidate, compiled)).errors)
    if outcome.check == KILLED:
        raise HarnessError(f"the baseline could not be measured: {outcome.reason}")
    return [*headers, _baseline_row(outcome, device), *_tolerance_rows(problem, errors)]


async def _header_rows(harness: LocalHarness, template: Template, device: str) -> list[SelfTestRow]:
    """Of the headers that the rules allow, those that no candidate can include: the baseline compiles, and not with them.

    What a device here cannot run, but may exist elsewhere, is none of them.
    """
    allowed = harness.problem.spec.rules.allowed_headers
    if not allowed or (await _with_headers(harness, template, allowed)).status is None:
        return []
    tried = {name: await _with_headers(harness, template, [name]) for name in allowed}
    bad = {
        name: c.reason for name, c in tried.items() if c.status in {Status.COMPILE_FAILED, Status.RULE_BROKEN}
    }
    if not bad:
        return []
    reason = _PLACE.sub("", next(iter(bad.values())))
    detail = f"no candidate on {device} can include {', '.join(bad)} ({reason})"
    mend = "mend or remove it under rules.allowed_headers of problem.toml"
    return [SelfTestRow("allowed headers", "", Verdict.WARNING, detail, mend)]


async def _with_headers(harness: LocalHarness, template: Template, headers: Sequence[str]) -> CompileResult:
    lines = "".join(f"#include <{header}>\n" for header in headers)
    probe = parse_template(f"{template.source}\n{lines}", template.name)
    return await harness.compile(Candidate(probe, probe.plan.space(harness.facts).configuration(0)))


def _baseline_row(outcome: Outcome, device: str) -> SelfTestRow:
    name = f"baseline on {device}"
    if outcome.status is Status.MEASURED:
        return SelfTestRow(name, "", Verdict.OK)
    if outcome.status is Status.NOT_RUN:
        return SelfTestRow(name, "", Verdict.SKIPPED, outcome.reason)
    mend = "mend baseline.cu; where it is right on the cases, exclude the trial's distribution or sizes under [trials]"
    return SelfTestRow(name, "", Verdict.FAILED, f"{outcome.status}: {outcome.reason}", mend)


def _tolerance_rows(problem: Problem, errors: Mapping[str, float]) -> list[SelfTestRow]:
    if not errors:
        return []
    found = fit(problem.spec, errors)
    verdict = Verdict.WARNING if found.warning else Verdict.OK
    detail = found.warning or f"the baseline's worst error is {multiples(found.worst)}"
    return [SelfTestRow("tolerance", "", verdict, f"{detail} ({found.case})", found.mend)]


def run_self_test(
    problem: Problem,
    device: str,
    *,
    slow: bool,
    seed: int = 0,
    strict: bool = False,
    notify: Callable[[str], None] = silent,
) -> SelfTest:
    """:func:`self_test` for callers without an event loop."""
    return asyncio.run(self_test(problem, device, slow=slow, seed=seed, strict=strict, notify=notify))
