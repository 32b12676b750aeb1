"""Seeing the bottleneck of incumbents: hardware counters where they can be had, what compiler and roofline tell else."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from time import monotonic
from typing import Final

from kernelwright.campaign.scene import Scene
from kernelwright.campaign.standing import Entry
from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import HarnessError
from kernelwright.core.lexer import lex
from kernelwright.generation.notebook import Seen
from kernelwright.memory.records import ProfileRecord
from kernelwright.problems.loader import Case, Problem
from kernelwright.profiling import Digest, Roofline, make_digest, roofline
from kernelwright.profiling.occasions import Moment, should_profile

SHARE: Final = 0.1
"""Most of the used time that profiles may take."""
EXPECTED_S: Final = 5.0
"""What a profile takes before one was seen."""
FOR_GOOD: Final = frozenset({"not_available", "not_permitted"})


class Seeing:
    """Digests by candidate. The caller sees to it that the device is used one at a time."""

    def __init__(self, scene: Scene, problem: Problem, cases: Sequence[Case]) -> None:
        self._scene = scene
        self._problem = problem
        self._cases = cases
        self._digests: dict[str, Digest] = {}
        self._templates: dict[str, Digest] = {}
        self._since = 0
        self._spent_s, self._last_s = 0.0, EXPECTED_S
        self._off = False
        self._away: asyncio.Task[None] | None = None

    def learned(self) -> None:
        """One more experiment."""
        self._since += 1

    @property
    def floors_ms(self) -> dict[str, float]:
        """Physical floor by case; empty where no ceiling is known."""
        found = {case.id: self._roofline(case, None) for case in self._cases}
        return {case: floor.floor_ms for case, floor in found.items() if floor}

    async def look(self, *, stagnating: bool) -> None:
        """Profile the incumbent when there is an occasion and time allows; each candidate at most once."""
        leader = self._scene.standing.incumbent
        if self._off or leader is None or leader.candidate in self._digests:
            return
        template = self._scene.candidates[leader.candidate].template.id
        moment = Moment(self._since, new_structure=template not in self._templates, stagnating=stagnating)
        occasion = should_profile(moment)
        if not occasion or self._spent_s + self._last_s > SHARE * self._scene.budget.used:
            return
        if self._scene.harness.exclusive:
            await self._see(leader, occasion)
        elif self._away is None or self._away.done():
            if self._away is not None:
                self._away.result()  # a fault of ours is not hidden
            self._away = asyncio.create_task(self._see(leader, occasion))  # duels do not wait for this trip

    async def close(self) -> None:
        """Nobody waits any longer for a profile of another machine."""
        if self._away is not None:
            self._away.cancel()
            (ended,) = await asyncio.gather(self._away, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended

    async def _see(self, leader: Entry, occasion: str) -> None:
        start, took_s = monotonic(), None
        try:
            case = self._farthest(leader.times)
            took_s = await self._profile(leader.candidate, case, leader.times, occasion)
        except HarnessError as error:
            self._off = True
            self._scene.listener.note(f"no more profiles: {error}")
        # Waiting for another machine is no use of the device.
        here = self._scene.harness.exclusive or took_s is None
        self._last_s = monotonic() - start if here else took_s or 0.0
        self._spent_s += self._last_s

    async def _profile(
        self, candidate: str, case: Case, times: Mapping[str, float], occasion: str
    ) -> float | None:
        """Seconds that the tool took; ``None`` when there is no result."""
        built = await self._scene.binaries.of(self._scene.candidates[candidate])
        if built.compiled.status is not None:
            return None
        result = await self._scene.harness.profile(built.candidate, case.id, compiled=built.compiled)
        if result.status != "profiled":
            self._off = result.status in FOR_GOOD or self._off
            if result.status != "not_available":
                self._scene.listener.note(f"profile of {candidate}: {result.status}: {result.reason}")
            return result.seconds
        template = built.candidate.template.id
        digest = make_digest(
            result.kernels,
            static=built.compiled.static,
            roofline=self._roofline(case, times[case.id]),
            case=case.id,
            parent=self._parent(template, case.id),
            incumbent=_on(next(reversed(self._digests.values()), None), case.id),
        )
        self._digests[candidate] = self._templates[template] = digest
        self._since = 0
        metrics = json.dumps([asdict(kernel) for kernel in result.kernels])
        self._scene.memory.profile(
            ProfileRecord(
                campaign=self._scene.campaign,
                candidate=candidate,
                case_id=case.id,
                level=1,
                bottleneck=digest.bottleneck,
                digest=digest.text,
                metrics=metrics,
                occasion=occasion,
                seconds=result.seconds,
            )
        )
        return result.seconds

    def _parent(self, template: str, case: str) -> Digest | None:
        """Of the same structure with other numbers, or else of one that it was made from."""
        record = self._scene.memory.templates(self._scene.campaign).get(template)
        near = (template, *(record.parents if record else ()))
        return next((found for t in near if (found := _on(self._templates.get(t), case))), None)

    def text(self, candidate: Candidate, seen: Seen) -> str:
        """The digest of a candidate for a prompt: from counters, or without them. No comments of others get there."""
        digest = self._digests.get(candidate.id)
        if digest is None:
            case = self._farthest(seen.times_ms)
            digest = make_digest(
                (),
                static=seen.static,
                roofline=self._roofline(case, seen.times_ms.get(case.id)),
                case=case.id,
                model=seen.modelled,
                source=_code(candidate.template.source),
            )
        return digest.text

    def _farthest(self, times: Mapping[str, float]) -> Case:
        """The case farthest from its floor; the largest one where no floor is known."""
        floors = self.floors_ms
        return max(
            self._cases,
            key=lambda case: (
                times.get(case.id, 0.0) / floors[case.id] if floors.get(case.id) else 0.0,
                sum(self._problem.work(case)),
            ),
        )

    def _roofline(self, case: Case, time_ms: float | None) -> Roofline | None:
        moved, operations = self._problem.work(case)
        ceilings = self._scene.harness.ceilings
        return roofline(
            moved,
            operations,
            bytes_per_s=ceilings.bytes_per_s,
            operations_per_s=ceilings.operations_per_s,
            time_ms=time_ms,
        )


def _on(digest: Digest | None, case: str) -> Digest | None:
    """Numbers of another case are no change."""
    return digest if digest and digest.case == case else None


def _code(source: str) -> str:
    """The source without comments, line by line as it was; empty where lines are joined by backslashes."""
    read = lex(source)
    if read.splices:
        return ""
    characters = list(read.plain)
    for at in read.newlines:
        characters[at] = "\n"
    return "".join(characters)
