"""Whether a duel's decision follows from its samples, look by look as they were taken.

Blocks that a device threw away while it was throttled were taken again: the samples of every look are there.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Final

from kernelwright.campaign.duels import CONFIRMATION_LOOKS, shown_in
from kernelwright.campaign.result import Confirmation
from kernelwright.core.objective import Objective
from kernelwright.core.statistics import LOOKS, Decision, Verdict, decide, medians
from kernelwright.devices.base import DuelCase
from kernelwright.memory.records import Duel

_CONFIRMATION_ENDS: Final = tuple(accumulate(CONFIRMATION_LOOKS))
_LEAST_ROUNDS: Final = 2


def decision_fault(duel: Duel, objective: Objective, challenger: int, cases: Sequence[str]) -> str:
    """Why it does not follow, empty when it does. It is the campaign's duel number ``challenger``, over ``cases``."""
    if duel.at_fault not in {"", duel.challenger, duel.incumbent}:
        return f"the side at fault is recorded as {duel.at_fault!r}, which is neither side"
    if not duel.cases:
        return unmeasured_fault(duel.decision)
    if duel.at_fault:
        return f"{duel.at_fault} is recorded as at fault, which leaves no samples: some are recorded"
    if fault := _samples_fault(duel, cases):
        return fault
    if duel.confirmation:
        objective = shown_in(objective)
    return _looked_at_fault(duel, objective, challenger)


def confirmation_fault(note: str, duels: Iterable[Duel], objective: Objective) -> str:
    """Why the noted times of the end are those of no recorded confirmation; empty when they are."""
    shown = shown_in(objective)
    follow = [asdict(_confirmation(duel, shown)) for duel in duels if duel.confirmation and duel.cases]
    try:
        noted = json.loads(note)
    except ValueError:
        noted = None
    if noted in follow:
        return ""
    told = noted.get("ratio") if isinstance(noted, dict) else "nothing that can be read"
    return f"the note of the confirmation tells the ratio {told}, no recorded confirmation gives its times"


def _confirmation(duel: Duel, objective: Objective) -> Confirmation:
    decision = duel.decision
    return Confirmation(
        baseline_ms=objective.time(medians([duel.cases], "incumbent_ms")),
        incumbent_ms=objective.time(medians([duel.cases], "challenger_ms")),
        ratio=decision.ratio or 0.0,
        low=decision.low,
        high=decision.high,
        rounds=decision.rounds,
    )


def unmeasured_fault(decision: Decision) -> str:
    """Without samples nobody takes the lead, and there is no ratio: a side broke a check, or did not compile."""
    if decision == Decision(Verdict.KEEP, decision.reason):
        return ""
    told = "no ratio" if decision.ratio is None else f"the ratio {decision.ratio:.4f}"
    return f"recorded is {decision.verdict} with {told}, but none of the samples that it follows from"


def _samples_fault(duel: Duel, cases: Sequence[str]) -> str:
    if sorted(case.case for case in duel.cases) != sorted(cases):
        names = ", ".join(case.case for case in duel.cases)
        return f"its cases are {names}, those of the problem {', '.join(cases)}"
    for case in duel.cases:
        sides = len(case.challenger_ms), len(case.incumbent_ms)
        if sides[0] != sides[1] or sides[0] < _LEAST_ROUNDS:
            return f"{case.case} has {sides[0]} samples of the challenger and {sides[1]} of the incumbent"
    return ""


def _looked_at_fault(duel: Duel, objective: Objective, challenger: int) -> str:
    batches = list(_looks(duel))
    for end in range(1, len(batches) + 1):
        follows = decide(batches[:end], objective, challenger)
        if end < len(batches) and follows.verdict is not Verdict.MORE and not duel.confirmation:
            return f"it went on after {follows.rounds} rounds, which decide: {follows.verdict}"
    recorded = duel.decision
    if follows.verdict is Verdict.MORE and recorded.verdict is Verdict.KEEP:  # cut short by the budget
        follows = dataclasses.replace(follows, verdict=recorded.verdict, reason=recorded.reason)
    if follows != recorded:
        return f"recorded is {duel.summary}; from its samples follows {dataclasses.replace(duel, decision=follows).summary}"
    return ""


def _looks(duel: Duel) -> Iterator[tuple[DuelCase, ...]]:
    """The samples look by look, as they were taken."""
    rounds = min(len(case.challenger_ms) for case in duel.cases)
    begin = 0
    for end in _CONFIRMATION_ENDS if duel.confirmation else LOOKS:
        if begin >= rounds:
            return
        yield tuple(
            dataclasses.replace(
                case,
                challenger_ms=case.challenger_ms[begin:end],
                incumbent_ms=case.incumbent_ms[begin:end],
            )
            for case in duel.cases
        )
        begin = end
