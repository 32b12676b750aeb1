"""What failed and why, duels, resources of the leaders, and where the time and the money went."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from kernelwright.core.outcome import Status
from kernelwright.memory.records import Duel, Experiment, RequestRecord
from kernelwright.memory.store import Memory
from kernelwright.report.cases import floors_ms
from kernelwright.report.models import (
    Account,
    DuelRow,
    Example,
    Failure,
    MilestoneRow,
    ModelRow,
    Profile,
    Resources,
    Spending,
)
from kernelwright.report.records import Records

EXAMPLES: Final = 3
LONGEST_REASON: Final = 400
MOST_DUELS: Final = 60
MOST_PROFILES: Final = 60
DEVICE: Final = ("check", "time", "overhead")


def failures(records: Records) -> tuple[Failure, ...]:
    """By status and check, the most frequent first."""
    groups: defaultdict[tuple[str, str], list[Experiment]] = defaultdict(list)
    for experiment in records.experiments:
        if experiment.outcome.status is not Status.MEASURED:
            groups[experiment.outcome.status, experiment.outcome.check].append(experiment)
    found = [
        Failure(status, check, len(group), _examples(records, group))
        for (status, check), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda failure: -failure.count))


def _examples(records: Records, group: list[Experiment]) -> tuple[Example, ...]:
    counts = Counter(experiment.outcome.reason for experiment in group)
    first = {experiment.outcome.reason: experiment for experiment in reversed(group)}
    return tuple(
        Example(
            candidate=first[reason].candidate,
            name=records.name(first[reason]),
            reason=reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]} ...",
            count=count,
        )
        for reason, count in counts.most_common(EXAMPLES)
    )


def duels(records: Records) -> tuple[tuple[DuelRow, ...], int]:
    """The last ones, and how many earlier ones that decided nothing are left out."""
    chosen = records.duels
    if len(chosen) > MOST_DUELS:
        decisive = [duel for duel in chosen if duel.promoted or duel.confirmation]
        chosen = tuple(decisive[-MOST_DUELS:])
    fought = {candidate for duel in chosen for candidate in (duel.challenger, duel.incumbent)}
    names = {e.candidate: records.name(e) for e in records.experiments if e.candidate in fought}
    return tuple(_duel(names, duel) for duel in chosen), len(records.duels) - len(chosen)


def _duel(names: Mapping[str, str], duel: Duel) -> DuelRow:
    decision = duel.decision
    return DuelRow(
        number=duel.number,
        challenger=names.get(duel.challenger, duel.challenger),
        incumbent=names.get(duel.incumbent, duel.incumbent),
        verdict="confirmation" if duel.confirmation else decision.verdict.value,
        reason=decision.reason,
        ratio=decision.ratio,
        low=decision.low,
        high=decision.high,
        rounds=decision.rounds,
        seconds=duel.seconds,
    )


def resources(
    memory: Memory, records: Records, milestones: tuple[MilestoneRow, ...]
) -> tuple[Resources, ...]:
    """What limits each leader, as far as the compiler and the roofline tell."""
    rows, floors = [], floors_ms(memory, records)
    for row, leader in zip(milestones, records.leaders, strict=True):
        static = leader.outcome.static
        kernels = static.kernels if static else ()
        times = leader.outcome.times_ms()
        shares = [floor / times[case] for case, floor in floors.items() if case in times]
        busiest = max(kernels, key=lambda kernel: kernel.registers or 0, default=None)
        rows.append(
            Resources(
                seconds=row.seconds,
                name=row.name,
                registers=static.registers if static else None,
                spill_bytes=static.spill_bytes if static else None,
                occupancy=busiest.theoretical_occupancy if busiest else None,
                limiter=(busiest.occupancy_limiter or "") if busiest else "",
                share_of_floor=max(shares, default=None),
            )
        )
    known = any(row.registers is not None or row.share_of_floor is not None for row in rows)
    return tuple(rows) if known else ()


def profiles(records: Records) -> tuple[Profile, ...]:
    """The last ones, in the order of the search."""
    known = {experiment.candidate: experiment for experiment in records.experiments}
    found = [
        Profile(
            seconds=known[profile.candidate].seconds,
            name=records.name(known[profile.candidate]),
            case=profile.case_id,
            bottleneck=profile.bottleneck,
            digest=profile.digest,
        )
        for profile in records.profiles[-MOST_PROFILES:]
        if profile.candidate in known
    ]
    return tuple(sorted(found, key=lambda profile: profile.seconds))


def spending(records: Records) -> Spending:
    """Measured work only: a twin's outcome was taken over and cost nothing again."""
    totals: Counter[str] = Counter()
    for experiment in records.experiments:
        if not experiment.twin_of:
            totals.update(experiment.outcome.seconds)
    device = [Account(name, totals[name]) for name in DEVICE if totals[name] > 0]
    return Spending(
        wall_seconds=records.seconds,
        device=tuple(device),
        compile_seconds=totals["compile"],
        models=_models(records.requests),
    )


def _models(requests: tuple[RequestRecord, ...]) -> tuple[ModelRow, ...]:
    groups: defaultdict[str, list[RequestRecord]] = defaultdict(list)
    for request in requests:
        groups[request.model].append(request)
    return tuple(
        ModelRow(
            model=model,
            requests=len(group),
            answered=sum(r.state == "answered" for r in group),
            failed=sum(r.state == "failed" for r in group),
            input_tokens=sum(r.input_tokens or 0 for r in group),
            output_tokens=sum(r.output_tokens or 0 for r in group),
            cost_usd=sum(r.cost_usd or 0.0 for r in group),
            seconds=sum(r.seconds or 0.0 for r in group),
        )
        for model, group in groups.items()
    )
