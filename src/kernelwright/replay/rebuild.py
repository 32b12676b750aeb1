"""(a) The incumbent built again from the memory alone, checked, and timed against the record."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import fields
from functools import partial
from pathlib import Path

from kernelwright import __version__
from kernelwright.campaign.duels import shown_in
from kernelwright.campaign.paired import in_turn
from kernelwright.certificate.facts import Facts
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.objective import Objective
from kernelwright.core.outcome import Outcome, Status
from kernelwright.devices.base import TIMED_BEFORE, TimingProtocol
from kernelwright.harness.device_lock import silent
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import Built, Harness
from kernelwright.replay.integrity import memory_part
from kernelwright.replay.paired import Interval, compared, fight, interval_of, process_spread, read
from kernelwright.replay.problem_files import write_problem
from kernelwright.replay.scratch import scratch_folder
from kernelwright.replay.subject import Subject, library_of, problem_part, readable
from kernelwright.replay.times import shifts, timed_otherwise, times_part
from kernelwright.replay.verdicts import (
    Numbers,
    Part,
    Replayed,
    Verdict,
    differs,
    failed,
    has_failed,
    reproduced,
    unknown,
)

OpenHarness = Callable[[Path], AbstractAsyncContextManager[Harness]]
"""A started harness for the problem in a folder."""


def local_harness(
    subject: Subject,
    device: str,
    *,
    slow: bool,
    strict: bool = False,
    notify: Callable[[str], None] = silent,
) -> OpenHarness:
    """On this machine, with the inputs of the campaign. ``notify`` hears messages for people."""

    def opened(folder: Path) -> LocalHarness:
        return LocalHarness(
            folder,
            device,
            seed=subject.settings.seed,
            compile_workers=2,
            slow_cases=slow,
            timing=recorded_timing(subject),
            strict=strict,
            notify=notify,
        )

    return opened


def recorded_timing(subject: Subject) -> TimingProtocol | None:
    """How the campaign timed; ``None`` where this version cannot time so."""
    note = subject.memory.notes(subject.campaign.id).get("timing")
    known = {field.name for field in fields(TimingProtocol)}
    # Of what older memories lack, this alone can still be done as it was.
    values = {"places": TIMED_BEFORE["places"]} | json.loads(note) if note else {}
    return TimingProtocol(**values) if values and set(values) == known else None


async def rebuild(subject: Subject, open_harness: OpenHarness) -> Replayed:
    """Nothing is compiled from a memory whose hashes are wrong. Raises HarnessError and UserError of the harness."""
    parts = [memory_part(subject), problem_part(subject)]
    if not has_failed(parts):
        facts = readable(subject)
        if isinstance(facts, Part):
            parts.append(facts)
        else:
            parts += await _again(subject, facts, open_harness)
    return Replayed("rebuild", subject.campaign.id, tuple(parts))


async def _again(subject: Subject, facts: Facts, open_harness: OpenHarness) -> list[Part]:
    with scratch_folder() as scratch:
        folder = scratch / "problem"
        try:
            await asyncio.to_thread(write_problem, subject.problem, folder, library=library_of(subject))
        except UserError as error:
            return [unknown("problem", f"{error}")]
        async with open_harness(folder) as harness:
            return await _Session(subject, facts, harness).run()


class _Session:
    """One look at the winner on a started harness."""

    def __init__(self, subject: Subject, facts: Facts, harness: Harness) -> None:
        self.subject = subject
        self.facts = facts
        self.harness = harness
        template = parse_template(subject.baseline_template.source, subject.baseline_template.name)
        self.baseline = Candidate(template, subject.baseline.configuration)

    async def run(self) -> list[Part]:
        """Toolchain, binary, checks, sanitizer, ratio, times."""
        parts = surroundings(self.facts.device, self.harness.facts, self.facts.notes.get("kernelwright"))
        compiled = await self.harness.compile(self.facts.candidate)
        if compiled.status is not None:
            return [*parts, failed("binary", f"{compiled.status}: {compiled.reason}")]
        winner = Built(self.facts.candidate, compiled)
        parts.append(binary_part(self.subject.winner.outcome.artifact_digest, compiled.digest, parts))
        outcome = await self.harness.benchmark(winner.candidate, winner.compiled)
        if outcome.status is not Status.MEASURED:
            reason = f"{outcome.status} ({outcome.check or 'no check'}): {outcome.reason}"
            return [*parts, failed("checks", reason)]
        parts.append(reproduced("checks", f"every check passed on {len(outcome.cases)} cases"))
        parts.append(await self._sanitized(winner))
        if self.subject.is_baseline:
            return [
                *parts,
                *self._times(outcome, outcome),
                differs("ratio", "the incumbent is the baseline itself"),
            ]
        compiled = await self.harness.compile(self.baseline)
        if compiled.status is not None:
            return [*parts, unknown("ratio", f"the baseline does not compile: {compiled.reason}")]
        baseline = Built(self.baseline, compiled)
        before = await self.harness.benchmark(baseline.candidate, baseline.compiled)
        parts.append(await self._ratio(winner, baseline))
        parts += await self._library(winner)
        return [*parts, *self._times(outcome, before)]

    async def _sanitized(self, winner: Built) -> Part:
        result = await self.harness.sanitize(winner.candidate, winner.compiled)
        if result.status is Status.MEASURED:
            return reproduced("sanitizer", f"{', '.join(result.tools) or 'the tools'} found nothing")
        if result.status is Status.NOT_RUN:
            return differs("sanitizer", f"not run here: {result.reason}")
        return failed("sanitizer", f"{result.status}: {result.reason}")

    async def _ratio(self, winner: Built, baseline: Built) -> Part:
        now = await fight(partial(self.harness.duel, winner, baseline), *self._terms())
        if isinstance(now, str):
            at_fault = failed if now.startswith("the challenger ") else unknown
            return at_fault("ratio", now.replace("the challenger", "the incumbent", 1))
        if not same_model(self.facts.device, self.harness.facts):
            return unknown(
                "ratio",
                f"{now} of the baseline's time on this device: another device's ratio is not compared",
            )
        time = self.facts.objective.time(self.subject.winner.outcome.times_ms())
        then, paired = self._recorded(now)
        spread = process_spread(time, same_device=self._same_device)
        return compared(then, now, spread, paired=paired)

    def _terms(self) -> tuple[Objective, list[str]]:
        """What ratios are shown in, and the order of the cases."""
        order = [timing.case for timing in self.subject.winner.outcome.cases]
        order += [case.id for slow in (False, True) for case in self.facts.problem.cases(slow=slow)]
        return shown_in(self.facts.objective), list(dict.fromkeys(order))

    async def _library(self, winner: Built) -> list[Part]:
        """The vendor library beside the winner, on this device: told, and nothing is decided by it."""
        try:
            found = await in_turn(partial(self.harness.against_library, winner), *self._terms())
        except HarnessError as error:
            return [differs("library", f"no reference: {error}")]
        if found.last.status is Status.NOT_RUN:
            named = self.harness.facts.kind == "cuda" and library_of(self.subject)
            return [differs("library", f"not compared: {found.last.reason}")] if named else []
        now = read(found)
        if isinstance(now, str):
            return [differs("library", f"no reference: {now}")]
        numbers: Numbers = {"ratio": now.ratio, "low": now.low, "high": now.high}
        return [Part("library", Verdict.DIFFERS, f"{now} of {found.library}'s time on this device", numbers)]

    @property
    def _same_device(self) -> bool:
        return self.facts.device.uuid == self.harness.facts.uuid

    def _recorded(self, now: Interval) -> tuple[Interval, bool]:
        """The interval at the campaign's end, of sides that ran in turn.

        Without one the ratio of the search's medians, as unsure as today's, and no sides in turn.
        """
        duel = self.subject.confirmation()
        found = interval_of(duel.decision) if duel else None
        if found is not None:
            return found, True
        objective = shown_in(self.facts.objective)
        times = [objective.time(e.outcome.times_ms()) for e in (self.subject.winner, self.subject.baseline)]
        ratio = times[0] / times[1]
        return Interval(ratio, ratio * now.low / now.ratio, ratio * now.high / now.ratio), False

    def _times(self, winner: Outcome, baseline: Outcome) -> list[Part]:
        here = self.harness.facts
        if not same_model(self.facts.device, here):
            return [
                differs("times", f"not compared: recorded on {self.facts.device.model}, this is {here.model}")
            ]
        if "timing" in self.facts.notes and recorded_timing(self.subject) is None:
            return [differs("times", "not compared: this version times otherwise than the recorded one")]
        if otherwise := timed_otherwise(self.subject.winner.outcome, winner):
            return [unknown("times", f"not comparable: {otherwise}")]
        same = self._same_device
        then = shifts(self.subject.winner.outcome, winner, same_device=same)
        if here.kind == "cpu":
            mean = sum(shift.share for shift in then) / len(then)
            return [
                differs("times", f"not compared on a cpu, whose clock others share ({mean:+.0%} in the mean)")
            ]
        measured = baseline.status is Status.MEASURED
        beside = shifts(self.subject.baseline.outcome, baseline, same_device=same) if measured else []
        return [times_part(then, beside)]


def same_model(then: DeviceFacts, now: DeviceFacts) -> bool:
    """Whether times of both can be compared."""
    return (then.kind, then.model) == (now.kind, now.model)


def surroundings(then: DeviceFacts, now: DeviceFacts, version: str | None) -> list[Part]:
    """What is not as it was, each on its line."""
    parts = []
    if not same_model(then, now):
        parts.append(
            differs("device", f"recorded on {then.model} ({then.kind}), this is {now.model} ({now.kind})")
        )
    elif then.uuid != now.uuid:
        parts.append(differs("device", f"another {now.model} than the recorded one"))
    if then.toolchain != now.toolchain:
        parts.append(
            differs("toolchain", f"changed: recorded with {then.toolchain}, this is {now.toolchain}")
        )
    if version != __version__:
        parts.append(
            differs("kernelwright", f"recorded by version {version or 'unknown'}, this is {__version__}")
        )
    return parts


def binary_part(then: str, now: str, surroundings: list[Part]) -> Part:
    """Whether the same bytes came out; other bytes are told, the checks and the clock decide."""
    if not then:
        return differs("binary", "its digest was not recorded")
    if then == now:
        return reproduced("binary", f"the recorded one, {now[:16]}")
    known = any(part.name in {"toolchain", "device"} for part in surroundings)
    why = (
        "as the other toolchain or device explains" if known else "though the toolchain goes by the same name"
    )
    return differs("binary", f"another one, {now[:16]} and not {then[:16]}, {why}")
