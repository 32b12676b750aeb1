"""Opens a campaign, new or from the memory, runs it for one sitting and closes everything again."""

import asyncio
import contextlib
import json
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from kernelwright import __version__
from kernelwright.campaign.attaching import (
    BOARD,
    BOARD_URL,
    GOAL,
    Attached,
    attached,
    need_board,
    objective_of,
    with_goal,
    with_rules,
)
from kernelwright.campaign.baseline import need_baseline
from kernelwright.campaign.budget import Budget
from kernelwright.campaign.campaign import Campaign
from kernelwright.campaign.events import Listener
from kernelwright.campaign.origins import proposal_of
from kernelwright.campaign.result import CampaignResult
from kernelwright.campaign.settings import Settings, read_settings
from kernelwright.certificate import certify
from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.objective import ObjectiveName
from kernelwright.generation.base import Proposal, Proposer
from kernelwright.generation.catalogue import Catalogue
from kernelwright.generation.model import Model
from kernelwright.generation.models.opening import open_model
from kernelwright.harness.detached.harness import DetachedHarness
from kernelwright.harness.detached.records import source_id
from kernelwright.harness.enclosure import told
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.problem_test import quick_selftest
from kernelwright.harness.protocol import AtHand, Harness
from kernelwright.memory.records import CampaignRecord, ProblemRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import Problem, load_problem

MEMORY_FILE: Final = "memory.db"
NAME_IN_ID: Final = 40
"""Letters of the problem's name in a campaign's id, which is in every line about it."""
LATE_S: Final = 5.0
"""What a campaign with another machine may take to end beyond its budget."""
RUNNING: Final = "running"
INTERRUPTED: Final = "interrupted"
"""State of a campaign that has not ended, or was killed."""
SELFTEST: Final = "selftest"
"""Note of the memory: warnings of the problem's self-test, empty when it has none."""
FOR_A_BOARD: Final = ("submit", "max_submissions", "uncalibrated")
"""Settings that mean nothing without a board."""
SWITCH_INTERVAL_S: Final = 0.0005


class NoProposals:
    """Proposes nothing: the baseline and its own tunables are all there is."""

    async def propose(self) -> Proposal | None:
        """Nothing."""
        return None


async def start_campaign(settings: Settings, directory: Path, listener: Listener) -> CampaignResult:
    """Run a new campaign within its budget. Bad input is found before anything is written."""
    problem = load_problem(settings.problem)
    settings = with_goal(settings, problem)
    proposer = _proposer(settings, problem)
    async with attached(settings, problem, told=listener.note) as board:
        settings, held = _on_board(settings, problem, board)
        tested = await quick_selftest(
            problem, slow=settings.slow_cases, seed=settings.seed, strict=settings.strict
        )
        with Memory.open(directory / MEMORY_FILE) as memory:
            begun = asyncio.Event()
            async with (
                _models(settings) as models,
                _within(settings, 0.0, begun),
                _harness(settings, held, listener) as harness,
            ):
                record = _record(problem, settings, harness)
                notes = {**_environment(harness, tested.warnings), **_board_notes(settings, board)}
                memory.start_campaign(record, _problem_record(problem), notes)
                begun.set()
                memory.claim(record.id)
                _tell_missing(harness, listener)
                campaign = Campaign(
                    id=record.id,
                    settings=settings,
                    problem=held,
                    harness=harness,
                    memory=memory,
                    proposer=proposer,
                    listener=listener,
                    budget=Budget(settings.seconds, settings.evaluations),
                    models=models,
                    board=board,
                )
                return await _run(campaign)


async def resume_campaign(
    name: str, directory: Path, listener: Listener, changes: Mapping[str, Any] | None = None
) -> CampaignResult:
    """Go on with a campaign from the memory alone; a new budget counts from the campaign's start.

    ``changes`` are settings by name; ``None`` leaves one as it is.
    """
    with Memory.open(directory / MEMORY_FILE, create=False) as memory:
        record = memory.campaign(name)
        memory.claim(record.id)
        problem, settings = _changed(memory, record, changes or {})
        need_baseline(memory, record.id)
        told = f"{record.id}, the last campaign recorded here" if name == "last" else record.id
        _budget_left(memory, record, settings, told)
        listener.note(f"going on with {told}")  # a later one that is meant may have left no record
        used = _seconds_used(memory, record)
        before = memory.notes(record.id).get(BOARD)
        async with attached(settings, problem, before=before, told=listener.note) as board:
            _, held = _on_board(settings, problem, board)
            for key, value in _board_notes(settings, board).items():
                memory.note(record.id, key, value)
            async with (
                _models(settings) as models,
                _within(settings, used),
                _harness(settings, held, listener) as harness,
            ):
                _same_device(harness, record)
                _tell_timing(memory.notes(record.id).get("timing"), harness, listener)
                campaign = Campaign(
                    id=record.id,
                    settings=settings,
                    problem=held,
                    harness=harness,
                    memory=memory,
                    proposer=_proposer(settings, problem),
                    listener=listener,
                    budget=Budget(settings.seconds, settings.evaluations, used_before=used),
                    models=models,
                    board=board,
                )
                for proposal in _remembered(memory, record.id):
                    campaign.take_in(proposal)
                campaign.recall()
                if isinstance(harness, DetachedHarness):
                    _take_up(campaign, harness)
                memory.progress(record.id, RUNNING, used)
                return await _run(campaign)


def _take_up(campaign: Campaign, harness: DetachedHarness) -> None:
    """What another machine was asked, and may have answered meanwhile, is not asked under other names."""
    templates = {
        source_id(arm.proposal.template.source): arm.proposal.template
        for arm in campaign.policy.arms.values()
    }
    for source, configuration in harness.asked_before():
        template = templates.get(source)
        if template and Candidate(template, configuration).id not in campaign.candidates:
            campaign.policy.take_up(template.id, configuration)


def _board_notes(settings: Settings, board: Attached | None) -> dict[str, str]:
    """What holds from this sitting on; a board and a goal can come later than the campaign."""
    asked = {} if board is None else {BOARD: board.note, BOARD_URL: board.board.url}
    return {GOAL: settings.goal or "", **asked}


def _changed(memory: Memory, record: CampaignRecord, changes: Mapping[str, Any]) -> tuple[Problem, Settings]:
    """Problem and settings of a campaign that goes on."""
    before, notes = read_settings(record.id, record.settings), memory.notes(record.id)
    kept = {"board": before.board or notes.get(BOARD_URL), "goal": notes.get(GOAL, before.goal) or None}
    before = before.model_copy(update=kept)
    wanted = {key: value for key, value in changes.items() if value is not None}
    if before.board is not None and wanted.get("board", before.board) != before.board:
        raise UserError(f"{record.id} is on the board {before.board}: start a new campaign for another one")
    settings = Settings.model_validate({**before.model_dump(), **wanted})
    need_board(settings.board, **{name: wanted.get(name) for name in FOR_A_BOARD})
    problem = load_problem(settings.problem)
    _same_problem(problem, record)
    # A board that is attached later does not change what the campaign has compared by from its start.
    objective = ObjectiveName(record.objective)
    return problem, with_goal(settings, problem).model_copy(update={"objective": objective})


def _on_board(settings: Settings, problem: Problem, board: Attached | None) -> tuple[Settings, Problem]:
    """Settings and problem as a board wants them: its objective, its rules beside the problem's."""
    if board is None:
        return settings, problem
    if board.info.rules and settings.device.startswith("detached:"):
        raise UserError("a board's rules are not held on another machine: use --device cuda:N or cpu")
    objective = objective_of(settings, problem, board)
    return settings.model_copy(update={"objective": objective}), with_rules(problem, board.info.rules)


async def _run(campaign: Campaign) -> CampaignResult:
    # The surrogate computes in a thread; by default it may keep the interpreter for 5 ms when the device answers.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    warnings = json.loads(campaign.memory.notes(campaign.id).get(SELFTEST, "[]"))
    for warning in warnings:
        campaign.listener.note(f"the problem's self-test: {warning}")
    with _stopped_by_signals(campaign.stop, patient=campaign.harness.exclusive):
        result = replace(await campaign.run(), warnings=tuple(warnings))
    if result.state == "finished":
        try:
            certify(campaign.memory, campaign.id)
        except UserError as error:
            campaign.listener.note(f"no certificate: {error}")
    return result


@contextlib.contextmanager
def _stopped_by_signals(stop: asyncio.Event, *, patient: bool) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) finishes the experiment in flight; a second one ends at once.

    Behind the search, when ``stop`` is set, the first one is heeded too unless ``patient``: the end may wait for trips.
    """
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = signal.getsignal(signal.SIGTERM)

    def let_go() -> None:
        for number in signals:
            if loop.remove_signal_handler(number) and number == signal.SIGTERM:
                signal.signal(number, before)  # the loop leaves the one that kills

    def ask(number: signal.Signals) -> None:
        ending = stop.is_set()
        stop.set()
        let_go()
        if ending and not patient:
            signal.raise_signal(number)

    for number in signals:
        loop.add_signal_handler(number, ask, number)
    try:
        yield
    finally:
        let_go()


def _environment(harness: LocalHarness | DetachedHarness, warnings: Sequence[str]) -> dict[str, str]:
    """What the measurements depend on, for the memory."""
    sandbox, ceilings, timing = asdict(harness.sandbox), asdict(harness.ceilings), asdict(harness.timing)
    facts = {"sandbox": sandbox, "ceilings": ceilings, "timing": timing, SELFTEST: warnings}
    return {"kernelwright": __version__, **{key: json.dumps(fact) for key, fact in facts.items()}}


def _tell_missing(harness: LocalHarness | DetachedHarness, listener: Listener) -> None:
    """Which walls around candidates the other machine lacks, as a harness here says it of this one."""
    if not isinstance(harness, AtHand) and (lacking := told(harness.sandbox.missing)):
        listener.note(lacking)


def _tell_timing(before: str | None, harness: LocalHarness | DetachedHarness, listener: Listener) -> None:
    if before is not None and json.loads(before) != asdict(harness.timing):
        listener.note(
            "this version times otherwise than the one that began the campaign: medians of before and after do not compare,"
            " duels do"
        )


@contextlib.asynccontextmanager
async def _models(settings: Settings) -> AsyncIterator[dict[str, Model]]:
    """The campaign's models by name, closed at the end. Raises UserError or MissingError before anything runs."""
    models = {
        model.name: model for model in (open_model(text, stream=settings.stream) for text in settings.models)
    }
    try:
        yield models
    finally:
        for model in models.values():
            await model.close()


@contextlib.asynccontextmanager
async def _within(settings: Settings, used: float, begun: asyncio.Event | None = None) -> AsyncIterator[None]:
    """Waiting for another machine counts: it ends with the budget, whatever is still asked there.

    Before its first answer a new campaign has not ``begun``: nothing can be resumed.
    """
    if not settings.device.startswith("detached:"):
        yield
        return
    try:
        async with asyncio.timeout(settings.seconds - used + LATE_S):
            yield
    except TimeoutError:
        resumable = begun is None or begun.is_set()
        go_on = "go on with kernelwright resume" if resumable else "give the same command again, with more"
        raise HarnessError(
            f"the budget of {settings.seconds:g} s ended while the other machine was awaited: "
            f"what it was asked stays in the folder; {go_on} --seconds"
        ) from None


def _harness(settings: Settings, problem: Problem, listener: Listener) -> LocalHarness | DetachedHarness:
    kind, _, folder = settings.device.partition(":")
    if kind == "detached":
        return DetachedHarness(
            settings.problem,
            Path(folder),
            seed=settings.seed,
            compile_workers=settings.compile_workers,
            slow_cases=settings.slow_cases,
            strict=settings.strict,
            batch_size=settings.in_flight,
            notify=listener.note,
        )
    return LocalHarness(
        problem,
        settings.device,
        seed=settings.seed,
        compile_workers=settings.compile_workers,
        slow_cases=settings.slow_cases,
        strict=settings.strict,
        notify=listener.note,
    )


def _proposer(settings: Settings, problem: Problem) -> Proposer:
    return Catalogue(problem) if settings.use_catalogue else NoProposals()


def _record(problem: Problem, settings: Settings, harness: Harness) -> CampaignRecord:
    now = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    return CampaignRecord(
        id=f"{problem.name[:NAME_IN_ID]}-{stamp}-{secrets.token_hex(2)}",
        problem_id=problem.id,
        settings=settings.model_dump_json(),
        device=json.dumps(asdict(harness.facts)),
        objective=settings.objective or problem.objective,
        started=now,
    )


def _problem_record(problem: Problem) -> ProblemRecord:
    spec = problem.spec.model_dump_json()
    return ProblemRecord(problem.id, problem.name, spec, problem.reference_source, problem.baseline_source)


def _same_problem(problem: Problem, record: CampaignRecord) -> None:
    if problem.id != record.problem_id:
        raise UserError(
            f"{problem.name}: the problem has changed since the campaign {record.id} began: "
            "start a new campaign, results of two problems are not compared"
        )


def _same_device(harness: Harness, record: CampaignRecord) -> None:
    """Timings of different devices are never compared."""
    before = json.loads(record.device)
    now = asdict(harness.facts)
    for key in ("kind", "model"):
        if before[key] != now[key]:
            raise UserError(
                f"the campaign {record.id} was measured on {before['model']}, this is {now['model']}: "
                "start a new campaign here"
            )


def _seconds_used(memory: Memory, record: CampaignRecord) -> float:
    """A killed campaign did not note its time: its last experiment or duel tells."""
    last = max((e.seconds for e in memory.experiments(record.id)), default=0.0)
    return max([record.seconds, last, *(duel.seconds for duel in memory.duels(record.id))])


def _budget_left(memory: Memory, record: CampaignRecord, settings: Settings, told: str) -> None:
    """Raises UserError where nothing is left to do: what was killed, or interrupted in time, has its end before it."""
    if record.state == RUNNING:
        return
    done = sum(memory.counts(record.id).values())
    spent = settings.evaluations is not None and done >= settings.evaluations
    if spent and record.state != INTERRUPTED:
        raise UserError(
            f"{told}: its budget of {settings.evaluations} experiments is spent: give --evaluations above {done}"
        )
    if (used := _seconds_used(memory, record)) >= settings.seconds:
        raise UserError(
            f"{told}: its budget of {settings.seconds:g} s is spent: give --seconds above {used:.0f}, all sittings count"
        )


def _remembered(memory: Memory, campaign: str) -> list[Proposal]:
    """Templates that have experiments, in the order of the first of them."""
    templates = memory.templates(campaign)
    order = dict.fromkeys(experiment.template for experiment in memory.experiments(campaign))
    return [proposal_of(templates[template]) for template in order]
