"""A harness that answers from the memory."""

from pathlib import Path

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Status
from kernelwright.harness.protocol import Built
from kernelwright.memory.store import Memory
from kernelwright.replay import read_subject
from kernelwright.replay.recorded_harness import NOT_RECORDED, RecordedHarness

from ..campaign.fakes import candidate
from .campaigns import GPU, NAME


async def test_it_knows_what_is_recorded_and_nothing_else(finished: Path) -> None:
    with Memory.open(finished, read_only=True) as memory:
        subject = read_subject(memory, NAME)
        harness = RecordedHarness(subject.campaign, memory.experiments(NAME), memory.duels(NAME))
        fought = [duel for duel in memory.duels(NAME) if duel.challenger == subject.winner.candidate]
    template = parse_template(subject.winner_template.source, subject.winner_template.name)
    winner = Candidate(template, subject.winner.configuration)
    compiled = await harness.compile(winner)
    assert harness.facts == GPU
    assert compiled.digest == subject.winner.outcome.artifact_digest
    assert await harness.benchmark(winner, compiled) == subject.winner.outcome
    for unknown, status in (
        (Candidate(template, Configuration({"X": 99})), Status.NOT_RUN),
        (candidate("other"), Status.LAUNCH_FAILED),
    ):
        answer = await harness.compile(unknown)
        assert (answer.status, answer.reason) == (status, NOT_RECORDED)
    baseline = Built(
        Candidate(parse_template(subject.baseline_template.source), subject.baseline.configuration), compiled
    )
    looks = [await harness.duel(Built(winner, compiled), baseline, rounds) for rounds in (8, 8)]
    recorded = next(duel for duel in fought if duel.incumbent == subject.baseline.candidate)
    both = looks[0].cases[0].challenger_ms + looks[1].cases[0].challenger_ms
    assert both == recorded.cases[0].challenger_ms[:16]
    assert (await harness.duel(baseline, Built(winner, compiled), 8)).status is Status.NOT_RUN
