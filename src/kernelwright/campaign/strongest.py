"""The vendor library as a strong reference: timed in turn with the baseline at the beginning, with the winner at the end."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from kernelwright.campaign.duels import shown_in
from kernelwright.campaign.paired import in_turn
from kernelwright.campaign.scene import Scene
from kernelwright.campaign.standing import Entry
from kernelwright.core.errors import HarnessError
from kernelwright.core.outcome import Status
from kernelwright.core.statistics import CONFIDENCE, LOOKS, Decision, medians
from kernelwright.devices.base import DuelResult
from kernelwright.harness.protocol import Built

STRONGEST: Final = "strongest"
WORTH_S: Final = 100.0
"""A shorter campaign asks at its end only: PyTorch takes seconds to load."""
ONE_TRIP: Final = LOOKS[1:2]
"""Rounds where each look is a trip to another machine."""
AWAITED: Final = 0.5
"""Most of the budget's rest that such a trip is waited for: a campaign must not fail for want of it."""


class Strongest:
    """Keeps the last comparison as a note. The caller sees to it that the device is used one at a time."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._off = False

    async def begin(self, baseline: Entry) -> None:
        """The library's times, for prompts and people; once a campaign, not in a short one, not by a trip."""
        worth = self._scene.harness.exclusive and self._scene.budget.seconds >= WORTH_S
        if worth and not self._noted():
            await self.look(baseline, LOOKS[:1])

    async def look(self, entry: Entry, looks: Sequence[int] = LOOKS) -> None:
        """The ratio of a candidate's time to the library's, until its interval is narrow; noted with its times by case.

        Another machine has :data:`ONE_TRIP`.
        """
        scene = self._scene
        if self._off:
            return
        looks = looks if scene.harness.exclusive else ONE_TRIP
        built = await scene.binaries.of(scene.candidates[entry.candidate])
        if built.compiled.status is not None:
            return
        found = await in_turn(
            partial(self._asked, built), shown_in(scene.standing.objective), list(entry.times), looks
        )
        if found.failed:
            self._missing(found.last.status, found.last.reason, found.last.at_fault)
        if found.decision is not None and found.decision.ratio is not None:
            times = medians(found.batches, "incumbent_ms")
            self._note(found.library, entry.candidate, found.decision, times)

    async def _asked(self, built: Built, rounds: int) -> DuelResult:
        """A library that brings the worker down, or does not come, is no reference; the campaign has its result."""
        harness, budget = self._scene.harness, self._scene.budget
        try:
            async with asyncio.timeout(None if harness.exclusive else AWAITED * budget.left):
                return await harness.against_library(built, rounds)
        except TimeoutError:
            reason = "PyTorch on the other machine did not answer in half of the budget's rest"
        except HarnessError as error:
            reason = f"PyTorch: {error}"
        return DuelResult(Status.NOT_RUN, reason)

    def _note(self, name: str, candidate: str, decision: Decision, times: Mapping[str, float]) -> None:
        note = {
            "name": name,
            "candidate": candidate,
            "ratio": decision.ratio,
            "low": decision.low,
            "high": decision.high,
            "confidence": CONFIDENCE,
            "source": f"{decision.rounds} paired rounds",
            "cases": dict(times),
        }
        self._scene.memory.note(self._scene.campaign, STRONGEST, json.dumps(note))

    def _missing(self, status: Status, reason: str, at_fault: str) -> None:
        """A fault of the candidate is found by its own checks."""
        self._off = at_fault != "challenger"
        if status is Status.NOT_RUN and "PyTorch" in reason:
            self._scene.listener.note(f"no vendor library to compare with: {reason}")
        elif self._off and status is not Status.NOT_RUN:
            self._scene.listener.note(f"the vendor library is no reference here: {status}: {reason}")

    def _noted(self) -> bool:
        return STRONGEST in self._scene.memory.notes(self._scene.campaign)


def strongest_ms(notes: Mapping[str, str]) -> tuple[str, dict[str, float]]:
    """Name and times in ms by case of the strong reference; empty where none is noted."""
    note = json.loads(notes.get(STRONGEST, "{}"))
    return note.get("name", ""), dict(note.get("cases", {}))
