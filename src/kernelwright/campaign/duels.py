"""Duels: a candidate takes the lead only by an interval on paired runs, never by its medians."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from time import monotonic
from typing import Final

from kernelwright.campaign.result import Confirmation
from kernelwright.campaign.scene import Scene
from kernelwright.campaign.standing import Entry
from kernelwright.campaign.steady import in_parts, more_rounds
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.core.statistics import LOOKS, Decision, Verdict, decide, medians
from kernelwright.devices.base import DuelCase, DuelResult
from kernelwright.harness.protocol import Built
from kernelwright.memory.records import Duel

SHARE: Final = 0.1
"""Most of the budget that one duel may take, beyond its first look."""
CONFIRMATION_LOOKS: Final = (8, 8)
STEADY_SHARE: Final = 0.02
STEADY_S: Final = 5.0
"""Most that more rounds for steady medians may take: a share of the budget, and seconds."""

Batches = list[tuple[DuelCase, ...]]


class Duels:
    """Fights duels on the device and keeps them. The caller sees to it that the device is used one at a time."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.fought = 0

    async def decide(self, stopped: Callable[[], bool]) -> bool:
        """Let the best contender challenge the incumbent; false when there is none, or ``stopped`` came first."""
        challenger, incumbent = self._scene.standing.contender(), self._scene.standing.incumbent
        if challenger is None or incumbent is None:
            return False
        duel = await self._fight(challenger, incumbent, stopped)
        if duel is None:
            return False
        self._conclude(duel)
        return True

    async def compare(self, challenger: Entry, other: Entry) -> Duel | None:
        """A duel outside the succession: nothing is kept of it, and nobody leads by it."""
        return await self._fight(challenger, other, lambda: False)

    async def confirm(self, baseline: Entry) -> Confirmation | None:
        """Baseline and incumbent side by side once more: free of the luck of the best of many."""
        leader = self._scene.standing.incumbent
        if leader is None or leader.candidate == baseline.candidate:
            return None
        sides = await self._sides(leader, baseline)
        if isinstance(sides, str):
            self._scene.listener.note(f"confirmation: {sides}")
            return None
        batches: Batches = []
        async for result in self._confirming(sides, batches):
            if not result.cases:
                failed = self._failed(leader, baseline, result)
                self._conclude(replace(failed, confirmation=not failed.at_fault))
                return None
            batches.append(_in_order(result.cases, baseline))
        objective = shown_in(self._scene.standing.objective)
        if sum(map(_rounds, batches)) < 2:
            self._scene.listener.note("confirmation: the device was never undisturbed")
            return None
        decision = decide(batches[: len(CONFIRMATION_LOOKS)], objective, self.fought + 1)
        self._conclude(self._duel(leader, baseline, decision, batches, confirmation=True))
        return Confirmation(
            baseline_ms=objective.time(medians(batches, "incumbent_ms")),
            incumbent_ms=objective.time(medians(batches, "challenger_ms")),
            ratio=decision.ratio or 0.0,
            low=decision.low,
            high=decision.high,
            rounds=decision.rounds,
        )

    async def _confirming(self, sides: tuple[Built, Built], batches: Batches) -> AsyncIterator[DuelResult]:
        """Complete rounds, then more of the cases whose medians are not steady yet: those are what is reported."""
        for rounds in CONFIRMATION_LOOKS:
            yield await self._scene.harness.duel(*sides, rounds)
        if self._scene.harness.facts.kind == "cpu":
            return  # its times are no claims
        if not self._scene.harness.exclusive:  # the rest of what came with one trip
            yield await self._scene.harness.duel(*sides, LOOKS[-1] - sum(CONFIRMATION_LOOKS))
            return
        more, cases = more_rounds(batches, min(STEADY_SHARE * self._scene.budget.seconds, STEADY_S))
        for rounds in in_parts(more):
            yield await self._scene.harness.duel(*sides, rounds, cases)

    def apply(self, duel: Duel) -> None:
        """Take a duel that is in the memory into the standing."""
        if duel.confirmation:
            return
        self.fought += 1
        if duel.promoted:
            self._scene.standing.promote(duel.challenger)
        else:
            self._scene.standing.beat(duel.challenger, duel.incumbent)
        if duel.at_fault and duel.at_fault not in self._scene.protected:
            self._scene.standing.disqualify(duel.at_fault)

    def _conclude(self, duel: Duel) -> None:
        self._scene.memory.duel(duel)
        self.apply(duel)
        self._scene.listener.dueled(duel)

    async def _fight(self, challenger: Entry, incumbent: Entry, stopped: Callable[[], bool]) -> Duel | None:
        sides = await self._sides(challenger, incumbent)
        if isinstance(sides, str):
            return self._duel(challenger, incumbent, Decision(Verdict.KEEP, sides), [])
        batches: Batches = []
        decision = Decision(Verdict.KEEP, "the device was never undisturbed")
        start, before = monotonic(), 0
        for look in LOOKS:
            result = await self._scene.harness.duel(*sides, look - before)
            if not result.cases:
                return self._failed(challenger, incumbent, result)
            before = look
            if _rounds(result.cases) >= 2:
                batches.append(_in_order(result.cases, incumbent))
                decision = decide(batches, self._scene.standing.objective, self.fought + 1)
            if batches and decision.verdict is not Verdict.MORE:
                break
            if stopped():
                return None
            if monotonic() - start > SHARE * self._scene.budget.seconds:
                break
        if decision.verdict is Verdict.MORE:
            decision = replace(
                decision, verdict=Verdict.KEEP, reason="not decided within the rounds it may have"
            )
        return self._duel(challenger, incumbent, decision, batches)

    async def _sides(self, challenger: Entry, incumbent: Entry) -> tuple[Built, Built] | str:
        """Both with their binaries, or why not."""
        first, second = [
            await self._scene.binaries.of(self._scene.candidates[entry.candidate])
            for entry in (challenger, incumbent)
        ]
        for side in (first, second):
            if side.compiled.status is not None:
                return f"{side.candidate.id} does not compile any more: {side.compiled.reason}"
        return first, second

    def _failed(self, challenger: Entry, incumbent: Entry, result: DuelResult) -> Duel:
        """A side broke a check in the duel: that side is out, whatever its times."""
        ids = {"challenger": challenger.candidate, "incumbent": incumbent.candidate}
        reason = f"{result.status} ({result.check or 'no check'}): {result.reason}"
        duel = self._duel(challenger, incumbent, Decision(Verdict.KEEP, reason), [])
        return replace(duel, at_fault=ids.get(result.at_fault, ""))

    def _duel(
        self,
        challenger: Entry,
        incumbent: Entry,
        decision: Decision,
        batches: Batches,
        *,
        confirmation: bool = False,
    ) -> Duel:
        return Duel(
            campaign=self._scene.campaign,
            challenger=challenger.candidate,
            incumbent=incumbent.candidate,
            decision=decision,
            cases=_merged(batches),
            seconds=self._scene.budget.used,
            confirmation=confirmation,
        )


def _in_order(cases: tuple[DuelCase, ...], entry: Entry) -> tuple[DuelCase, ...]:
    """The problem's order, which an objective may depend on."""
    order = list(entry.times)
    return tuple(sorted(cases, key=lambda case: order.index(case.case)))


def _rounds(cases: tuple[DuelCase, ...]) -> int:
    """Complete rounds."""
    return min(min(len(case.challenger_ms), len(case.incumbent_ms)) for case in cases)


def shown_in(objective: Objective) -> Objective:
    """What ratios are shown in: the objective's time, without its penalty."""
    return Objective(ObjectiveName.MEAN) if objective.name is ObjectiveName.SEED else objective


def _merged(batches: Batches) -> tuple[DuelCase, ...]:
    """One entry a case: samples of all batches in order."""
    merged: dict[str, DuelCase] = {}
    for case in (case for batch in batches for case in batch):
        before = merged.get(case.case)
        if before is not None:
            case = replace(  # noqa: PLW2901 - the case so far
                case,
                challenger_ms=before.challenger_ms + case.challenger_ms,
                incumbent_ms=before.incumbent_ms + case.incumbent_ms,
                discarded=before.discarded + case.discarded,
            )
        merged[case.case] = case
    return tuple(merged.values())
