"""(b) The winner found again: a campaign in a scratch memory that does not know the winning source."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from kernelwright.campaign.campaign import BaselineFailed
from kernelwright.campaign.duels import shown_in
from kernelwright.campaign.events import Listener, Silent
from kernelwright.campaign.settings import Settings
from kernelwright.campaign.sitting import MEMORY_FILE, start_campaign
from kernelwright.certificate.facts import Facts
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.errors import UserError
from kernelwright.core.objective import ObjectiveName
from kernelwright.core.statistics import RELEVANT_GAIN
from kernelwright.generation.dispatch import DISPATCH
from kernelwright.generation.model import ModelReply, Usage
from kernelwright.generation.models.recorded import reply_line
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import Built
from kernelwright.memory.records import Experiment, RequestRecord, TemplateRecord
from kernelwright.memory.store import Memory
from kernelwright.replay.integrity import memory_part
from kernelwright.replay.paired import WIDE, Interval, fight
from kernelwright.replay.problem_files import write_problem
from kernelwright.replay.scratch import scratch_folder
from kernelwright.replay.subject import Subject, read_subject, readable
from kernelwright.replay.verdicts import Part, Replayed, differs, failed, has_failed, reproduced, unknown

LEAST_SECONDS: Final = 60.0
MOST_SECONDS: Final = 24 * 3600.0


@dataclass(frozen=True)
class Terms:
    """How the scratch campaign runs. ``evaluations`` and ``seconds`` bound it; ``models`` are as after ``--model``."""

    device: str
    slow: bool
    models: tuple[str, ...] = ()
    evaluations: int | None = None
    seconds: float | None = None
    strict: bool = False


async def regenerate(subject: Subject, terms: Terms, listener: Listener | None = None) -> Replayed:
    """Search again without the winning source and what descends from it, then let both winners fight."""
    parts = [memory_part(subject)]
    if not has_failed(parts):
        facts = readable(subject)
        if isinstance(facts, Part):
            parts.append(facts)
        else:
            parts += await _search(subject, facts, terms, listener or Silent())
    return Replayed("regenerate", subject.campaign.id, tuple(parts))


async def _search(subject: Subject, facts: Facts, terms: Terms, listener: Listener) -> list[Part]:
    templates = subject.memory.templates(subject.campaign.id)
    withheld = descendants(
        subject.winner.template, templates, subject.memory.experiments(subject.campaign.id)
    )
    requests = [r for r in subject.memory.requests(subject.campaign.id) if r.reply is not None]
    if fault := _hopeless(subject, terms, requests):
        return [unknown("search", fault)]
    kept = [t for t in templates.values() if t.id not in withheld and t.id != subject.baseline.template]
    with scratch_folder() as folder:
        problem = folder / "problem"
        catalogue = {f"t{number:04d}": template.source for number, template in enumerate(kept)}
        try:
            await asyncio.to_thread(write_problem, subject.problem, problem, catalogue)
        except UserError as error:
            return [unknown("problem", f"{error}")]
        settings = _settings(subject, terms, folder, requests)
        try:
            result = await start_campaign(settings, folder / "memory", listener)
        except BaselineFailed as error:
            return [unknown("search", f"{error}")]
        found = await asyncio.to_thread(_found, folder / "memory")
        told = (
            f"without {len(withheld)} of {len(templates)} templates, "
            f"{result.experiments} of {settings.evaluations} experiments found {found}"
        )
        return [
            differs("search", told),
            await _compare(facts, problem, terms, settings, found, listener=listener),
        ]


def _hopeless(subject: Subject, terms: Terms, requests: list[RequestRecord]) -> str:
    """Why nobody could write the winner again; empty when somebody could."""
    if subject.is_baseline:
        return "the incumbent is the baseline itself: nothing was found that could be found again"
    if terms.models or requests or subject.winner_template.direction == DISPATCH:
        return ""
    return (
        f"the winning source came from the {subject.winner_template.proposer} and no model was asked: "
        "give one that writes it again with --model"
    )


def descendants(
    winner: str, templates: Mapping[str, TemplateRecord], experiments: Iterable[Experiment]
) -> frozenset[str]:
    """The winning template and all that were made from it. Parents are starts of templates' ids, or candidates."""
    template_of = {experiment.candidate: experiment.template for experiment in experiments}
    found = {winner}
    while more := {
        template.id
        for template in templates.values()
        if template.id not in found and any(_is_of(parent, found, template_of) for parent in template.parents)
    }:
        found |= more
    return frozenset(found)


def _is_of(parent: str, templates: set[str], template_of: Mapping[str, str]) -> bool:
    if parent in template_of:
        return template_of[parent] in templates
    return any(known.startswith(parent) for known in templates)


def _settings(subject: Subject, terms: Terms, folder: Path, requests: Sequence[RequestRecord]) -> Settings:
    """As the original's, on the problem without the winner, within what the original took to find it."""
    models, most = terms.models, subject.settings.max_requests
    if not models and requests:
        replies = folder / "replies.jsonl"
        replies.write_text("".join(map(_line, requests)), encoding="utf-8")
        models, most = (f"recorded:{replies}",), len(requests)
    took = sum(
        1 for e in subject.memory.experiments(subject.campaign.id) if e.number <= subject.winner.number
    )
    evaluations = took if terms.evaluations is None else min(took, terms.evaluations)
    seconds = terms.seconds or max(LEAST_SECONDS, subject.campaign.seconds)
    changes = {
        "problem": str(folder / "problem"),
        "device": terms.device,
        "slow_cases": terms.slow,
        "strict": terms.strict,
        "objective": ObjectiveName(subject.campaign.objective),
        "board": None,  # a replay sends nothing anywhere
        "submit": False,
        "goal": None,
        "seconds": min(seconds, MOST_SECONDS),
        "evaluations": evaluations,
        "use_catalogue": True,
        "models": models,
        "max_requests": most,
        # Replies to repairs are played back as rounds of their own: they hold whole proposals as well.
        "repairs": subject.settings.repairs if terms.models else 0,
    }
    return subject.settings.model_copy(update=changes)


def _line(request: RequestRecord) -> str:
    """A recorded reply without its number: another search asks in another order."""
    usage = Usage(request.input_tokens, request.output_tokens, request.cost_usd)
    return reply_line("", ModelReply(request.reply or "", usage))


def _found(directory: Path) -> Candidate:
    """The winner of the scratch campaign."""
    with Memory.open(directory / MEMORY_FILE, read_only=True) as memory:
        again = read_subject(memory, "last")
        template = parse_template(again.winner_template.source, again.winner_template.name)
        return Candidate(template, again.winner.configuration)


async def _compare(
    facts: Facts, problem: Path, terms: Terms, settings: Settings, found: Candidate, *, listener: Listener
) -> Part:
    """The regenerated winner against the recorded one, in turn."""
    if found.id == facts.candidate.id:
        return reproduced("winner", f"the very same candidate was found again: {found}")
    async with LocalHarness(
        problem,
        terms.device,
        seed=settings.seed,
        compile_workers=2,
        slow_cases=terms.slow,
        strict=terms.strict,
        notify=listener.note,
    ) as harness:
        sides = [Built(side, await harness.compile(side)) for side in (found, facts.candidate)]
        for side in sides:
            if side.compiled.status is not None:
                return unknown("winner", f"{side.candidate} does not compile here: {side.compiled.reason}")
        if (
            sides[0].compiled.digest == sides[1].compiled.digest
            and found.configuration == facts.candidate.configuration
        ):
            return reproduced("winner", f"the same binary was found again: {found}")
        order = [case.id for case in facts.problem.cases(slow=terms.slow)]
        now = await fight(partial(harness.duel, sides[0], sides[1]), shown_in(facts.objective), order)
    return reached(f"{found}", now)


def reached(found: str, now: Interval | str) -> Part:
    """Whether what was found again is as fast as the recorded winner, from the interval of a duel with it."""
    if isinstance(now, str):
        return unknown("winner", now)
    numbers = {"ratio": now.ratio, "low": now.low, "high": now.high}
    told = f"{found} takes {now} of the recorded winner's time"
    if now.low > 1 + RELEVANT_GAIN:
        return failed("winner", f"not reached: {told}, {now.ratio - 1:.1%} more", **numbers)
    if now.width > WIDE:
        return unknown("winner", f"the device is too noisy: {told}", **numbers)
    return reproduced("winner", f"reached: {told}", **numbers)
