"""A certificate from what the memory holds."""

import hashlib
import json
import math
from dataclasses import asdict
from typing import Final

from kernelwright.certificate.checks import check_parts
from kernelwright.certificate.facts import Facts, read_facts
from kernelwright.certificate.models import (
    CasePart,
    Certificate,
    DevicePart,
    DuelPart,
    Hashes,
    LayerPart,
    Ratio,
    Statistics,
    Subject,
)
from kernelwright.core.outcome import CaseTiming
from kernelwright.core.resolve import compiler_options, macros
from kernelwright.core.statistics import CONFIDENCE, TOTAL_ERROR
from kernelwright.memory.records import CampaignRecord, Duel, Experiment
from kernelwright.memory.store import Memory

UNKNOWN: Final = "not recorded"
UNTESTED: Final = "the problem's self-test: not recorded"
ONCE_MORE: Final = "both measured once more at the end, back to back; no interval"
METRIC: Final = "metric "
"""How findings begin that are numbers for the optimiser, not warnings."""


def certify(memory: Memory, campaign: str) -> Certificate | None:
    """The certificate of a campaign's incumbent, added to the memory; ``None`` while nobody leads."""
    record = memory.campaign(campaign)
    incumbent = incumbent_of(memory, record)
    if incumbent is None:
        return None
    certificate = build_certificate(memory, record, incumbent)
    memory.certify(record.id, incumbent, certificate.as_json())
    return certificate


def incumbent_of(memory: Memory, campaign: CampaignRecord) -> str | None:
    """Candidate of the last milestone."""
    milestones = memory.milestones(campaign.id)
    if not milestones:
        return None
    return memory.experiment(campaign.id, f"{milestones[-1].experiment}").candidate


def build_certificate(memory: Memory, campaign: CampaignRecord, candidate: str) -> Certificate:
    """The certificate of a measured candidate. Raises UserError when the memory lacks what it needs."""
    facts = read_facts(memory, campaign, candidate)
    confirmation = _last(facts, confirming=True)
    return Certificate(
        kernelwright=facts.notes.get("kernelwright", UNKNOWN),
        campaign=campaign.id,
        problem=facts.problem.name,
        hashes=_hashes(facts),
        subject=_subject(facts),
        device=DevicePart(**{name: getattr(facts.device, name) for name in DevicePart.model_fields}),
        sandbox=_sandbox(facts),
        rules=facts.problem.spec.rules.model_dump(mode="json"),
        checks=check_parts(facts),
        cases=_cases(facts, facts.experiment),
        baseline=facts.baseline.candidate,
        baseline_cases=_cases(facts, facts.baseline),
        ratio_to_baseline=_ratio_to_baseline(facts, confirmation),
        ratio_to_strongest=_ratio_to_strongest(facts),
        promotion=_duel_part(_last(facts, confirming=False)),
        confirmation=_duel_part(confirmation),
        statistics=_statistics(facts),
        warnings=_warnings(facts),
        seeds=_seeds(facts),
    ).sealed()


def sha256(text: str) -> str:
    """Hash of a text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def _hashes(facts: Facts) -> Hashes:
    candidate = facts.candidate
    plans = {case: asdict(plan) for case, plan in facts.plans.items()}
    return Hashes(
        problem=facts.problem.id,
        rules=sha256(facts.problem.spec.rules.model_dump_json()),
        template=candidate.template.id,
        source=sha256(candidate.template.source),
        configuration=sha256(candidate.configuration.key),
        plan=sha256(json.dumps(plans, sort_keys=True)),
        candidate=candidate.id,
        artifact=facts.experiment.outcome.artifact_digest,
    )


def _subject(facts: Facts) -> Subject:
    candidate = facts.candidate
    return Subject(
        name=f"{candidate}",
        configuration=dict(candidate.configuration.items()),
        kernels=candidate.template.kernels,
        macros=macros(candidate, facts.device),
        compiler_options=compiler_options(candidate),
        proposer=facts.template.proposer,
        experiment=facts.experiment.number,
        twin_of=facts.experiment.twin_of,
    )


def _sandbox(facts: Facts) -> tuple[LayerPart, ...]:
    report = json.loads(facts.notes.get("sandbox", '{"layers": []}'))
    return tuple(LayerPart(**layer) for layer in report["layers"])


def _cases(facts: Facts, experiment: Experiment) -> tuple[CasePart, ...]:
    floors = {case.id: facts.ceilings.floor_ms(*facts.problem.work(case)) for case in facts.cases}
    return tuple(_case(timing, floors.get(timing.case, 0.0)) for timing in experiment.outcome.cases)


def _case(timing: CaseTiming, floor_ms: float) -> CasePart:
    return CasePart(
        case=timing.case,
        method=timing.method,
        median_ms=timing.median_ms,
        samples_ms=timing.samples_ms,
        discarded=timing.discarded,
        max_error=timing.max_error if math.isfinite(timing.max_error) else None,
        floor_ms=floor_ms or None,
        share_of_floor=floor_ms / timing.median_ms if floor_ms else None,
        conditions=timing.conditions,
    )


def _ratio_to_baseline(facts: Facts, duel: Duel | None) -> Ratio:
    against = facts.baseline.candidate
    decision = None if duel is None else duel.decision
    if duel is not None and decision is not None and decision.ratio is not None:
        return Ratio(
            against=against,
            ratio=decision.ratio,
            low=decision.low,
            high=decision.high,
            confidence=CONFIDENCE,
            source=f"duel {duel.number}: {decision.rounds} paired rounds",
        )
    if facts.experiment.candidate == against:
        return Ratio(against=against, ratio=1.0, source="the candidate is the baseline")
    if "confirmation" in facts.notes:
        both = json.loads(facts.notes["confirmation"])
        return Ratio(
            against=against,
            ratio=both["incumbent_ms"] / both["baseline_ms"],
            source=ONCE_MORE,
        )
    times = [facts.objective.time(e.outcome.times_ms()) for e in (facts.experiment, facts.baseline)]
    return Ratio(
        against=against,
        ratio=times[0] / times[1],
        source="medians of the search, taken at different times: no duel with the baseline is recorded",
    )


def _ratio_to_strongest(facts: Facts) -> Ratio | None:
    """Vendor library or another reference, where somebody has measured one and noted it."""
    note = facts.notes.get("strongest")
    if note is None:
        return None
    values = json.loads(note)
    if values.get("candidate", facts.experiment.candidate) != facts.experiment.candidate:
        return None  # of another one: the baseline's, when the campaign began
    return Ratio(
        against=values["name"],
        ratio=values["ratio"],
        low=values.get("low"),
        high=values.get("high"),
        confidence=values.get("confidence"),
        source=values.get("source", "noted"),
    )


def _last(facts: Facts, *, confirming: bool) -> Duel | None:
    """The last duel with the baseline, or the one by which the candidate took the lead."""
    mine = [duel for duel in facts.duels if duel.challenger == facts.experiment.candidate]
    if confirming:
        wanted = [duel for duel in mine if duel.incumbent == facts.baseline.candidate and not duel.at_fault]
        wanted = [duel for duel in wanted if duel.confirmation] or wanted
    else:
        wanted = [duel for duel in mine if duel.promoted]
    return wanted[-1] if wanted else None


def _duel_part(duel: Duel | None) -> DuelPart | None:
    if duel is None:
        return None
    samples: dict[str, tuple[tuple[float, float], ...]] = {}
    for case in duel.cases:
        pairs = tuple(zip(case.challenger_ms, case.incumbent_ms, strict=True))
        samples[case.case] = samples.get(case.case, ()) + pairs
    decision = duel.decision
    return DuelPart(
        number=duel.number,
        challenger=duel.challenger,
        incumbent=duel.incumbent,
        verdict=decision.verdict,
        reason=decision.reason,
        ratio=decision.ratio,
        low=decision.low,
        high=decision.high,
        bound=decision.bound,
        alpha=decision.alpha,
        rounds=decision.rounds,
        samples_ms=samples,
    )


def _statistics(facts: Facts) -> Statistics:
    duels = [duel for duel in facts.duels if not duel.confirmation]
    return Statistics(
        objective=facts.objective.name,
        experiments=facts.experiments,
        duels=len(duels),
        promotions=sum(duel.promoted for duel in duels),
        rule=(
            f"a challenger leads after a duel, runs in turn; wrong promotions of a campaign together at most "
            f"{TOTAL_ERROR:.0%}, intervals at {CONFIDENCE:.0%} (Student on trimmed log ratios)"
        ),
    )


def _warnings(facts: Facts) -> tuple[str, ...]:
    """The problem's self-test, and what the runs said."""
    if "selftest" not in facts.notes:
        tested: tuple[str, ...] = (UNTESTED,)
    else:
        tested = tuple(f"self-test: {line}" for line in json.loads(facts.notes["selftest"]))
    findings = facts.experiment.outcome.findings
    return (*tested, *(line for line in findings if not line.startswith(METRIC)))


def _seeds(facts: Facts) -> str:
    seed = facts.settings.get("seed", "not recorded")
    return (
        f"inputs are drawn by case, set and argument from the campaign's seed {seed}, which no candidate sees; "
        "poison and canaries are drawn anew by the runner"
    )
