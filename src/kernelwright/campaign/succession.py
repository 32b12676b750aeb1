"""Who follows whom: duels that are due, faults of incumbents, and what the last incumbent has to stand."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import Final

from kernelwright.campaign.duels import CONFIRMATION_LOOKS, Duels
from kernelwright.campaign.result import Confirmation
from kernelwright.campaign.scene import Past, Scene
from kernelwright.campaign.standing import Entry
from kernelwright.campaign.strongest import ONE_TRIP, Strongest
from kernelwright.campaign.verification import Verification
from kernelwright.harness.protocol import SanitizerResult

CONFIRMATION: Final = "confirmation"
LAST_DUELS: Final = 3
"""Duels after the search for contenders that had no turn; so many travel together where the device is elsewhere."""
FALLBACKS: Final = 4
"""How often the end's incumbent may turn out faulty before the search for a sound one is given up."""


class Succession:
    """Changes of the incumbent. Its coroutines use the device: one at a time, in the device lane.

    ``hail`` is called after everything that can change the incumbent.
    """

    def __init__(self, scene: Scene, hail: Callable[[], None]) -> None:
        self._scene = scene
        self._hail = hail
        self._duels = Duels(scene)
        self._verification = Verification(scene)
        self._strongest = Strongest(scene)

    @property
    def fought(self) -> int:
        """Duels of the whole campaign."""
        return self._duels.fought

    def sanitized(self, candidate: str) -> SanitizerResult | None:
        """What compute-sanitizer said of a candidate, if it was asked."""
        return self._verification.sanitized.get(candidate)

    async def begin(self, baseline: Entry) -> None:
        """What there is to beat beside the baseline."""
        await self._strongest.begin(baseline)

    async def between(self, stopped: Callable[[], bool]) -> None:
        """Before a candidate's turn on the device: a duel that is due, then a look for faults."""
        await self._duel(stopped)
        if not stopped():
            await self._verification.sanitize()
            self._hail()

    async def clear(self, entry: Entry) -> bool:
        """Whether a candidate stands everything: it builds under today's rules, the sanitizer, every check in full."""
        built = await self._scene.binaries.of(self._scene.candidates[entry.candidate])
        if built.compiled.status is not None:
            self._scene.listener.note(f"{entry.candidate} is not sent: {built.compiled.reason}")
            return False
        await self._verification.sanitize(final=True)
        sound = entry.candidate not in self._scene.standing.disqualified
        sound = sound and await self._verification.check(entry)
        self._hail()
        return sound

    async def against(self, entry: Entry, other: Entry) -> float | None:
        """Time over the other's, at most (99 %), by a duel that decides nothing here; ``None`` when it tells nothing."""
        duel = await self._duels.compare(entry, other)
        return None if duel is None or duel.at_fault else duel.decision.high

    async def finish(self, baseline: Entry) -> Confirmation | None:
        """The last duels, every check for the incumbent, and its duel with the baseline; again when it falls."""
        if not self._scene.harness.exclusive and self._scene.budget.left <= 0:
            return None  # each of these is a trip to another machine, and waiting counts
        for _ in range(FALLBACKS):
            self._foresee(self._scene.standing.incumbent or baseline, baseline)
            self._foresee(self._scene.standing.front or baseline, baseline)
            for _ in range(LAST_DUELS):
                if not await self._duel(lambda: False):
                    break
            leader = self._scene.standing.incumbent
            confirmation = None
            self._foresee(leader or baseline, baseline)
            if await self._is_sound(leader):
                confirmation = await self._duels.confirm(baseline)
                self._hail()
            if self._scene.standing.incumbent is leader:
                if confirmation is not None:
                    text = json.dumps(asdict(confirmation))
                    self._scene.memory.note(self._scene.campaign, CONFIRMATION, text)
                await self._strongest.look(leader or baseline)
                return confirmation
        self._scene.listener.note("no incumbent that stands every check was found at the end")
        return None

    def _foresee(self, leader: Entry, baseline: Entry) -> None:
        scene = self._scene
        if leader.candidate != baseline.candidate:
            winner, base = scene.candidates[leader.candidate], scene.candidates[baseline.candidate]
            scene.harness.foresee_end(winner, base, CONFIRMATION_LOOKS[0], ONE_TRIP[0])

    def _foresee_duels(self, challengers: Iterable[Entry]) -> None:
        scene, leader = self._scene, self._scene.standing.incumbent
        if leader is not None:
            found = [scene.candidates[entry.candidate] for entry in challengers]
            scene.harness.foresee_duels(found, scene.candidates[leader.candidate])

    async def _is_sound(self, leader: Entry | None) -> bool:
        await self._verification.sanitize(final=True)
        if self._scene.standing.incumbent is leader:
            await self._verification.check_again()
        self._hail()
        return self._scene.standing.incumbent is leader

    async def _duel(self, stopped: Callable[[], bool]) -> bool:
        """Whether a contender was dealt with."""
        contenders = list(islice(self._scene.standing.contenders(), LAST_DUELS))
        if not contenders:
            return False
        challenger, *others = contenders
        self._foresee_duels(others)
        # After a disqualification contenders were screened against an incumbent that was not what it seemed:
        # perhaps they never had every check.
        fit = not self._scene.standing.disqualified or await self._verification.check(challenger)
        fought = await self._duels.decide(stopped) if fit else True
        self._hail()
        return fought

    def recall(self) -> list[Past]:
        """What the memory has of duels and faults."""
        past = [
            Past(duel.seconds, duel, partial(self._duels.apply, duel))
            for duel in self._scene.memory.duels(self._scene.campaign)
        ]
        past += [
            Past(seconds, candidate, partial(self._scene.standing.disqualify, candidate))
            for seconds, candidate in self._verification.recall()
        ]
        return past
