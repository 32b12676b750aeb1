# ruff: noqa: ARG002 - arguments are the protocol's
"""A harness that answers from the memory: recorded outcomes and duels by candidate. No device is used."""

import json
from collections.abc import Collection, Iterable
from dataclasses import replace

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.outcome import Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.devices.base import DuelResult
from kernelwright.harness.protocol import (
    AtHand,
    Built,
    CompileResult,
    ProfileResult,
    SanitizerResult,
    SubmitResult,
)
from kernelwright.harness.wire import Ceilings
from kernelwright.memory.records import CampaignRecord, Duel, Experiment

NOT_RECORDED = "the memory has no such experiment"


class RecordedHarness(AtHand):
    """Implements :class:`~kernelwright.harness.protocol.Harness`.

    What is not recorded is ``not_run``, never a pass; of a template that is not recorded at all it fails, as a draft
    does that was not fit to be tried. A duel that is asked for look by look gets its recorded rounds in their order.
    """

    places = 1
    exclusive = True
    ceilings = Ceilings()

    def __init__(
        self, campaign: CampaignRecord, experiments: Iterable[Experiment] = (), duels: Iterable[Duel] = ()
    ) -> None:
        self.facts = DeviceFacts(**json.loads(campaign.device))
        known = list(experiments)
        self._templates = {experiment.template for experiment in known}
        self._outcomes = {experiment.candidate: experiment.outcome for experiment in known}
        self._duels = {(d.challenger, d.incumbent, d.confirmation): d for d in duels if d.cases}
        self._fought: dict[tuple[str, str], int] = {}

    async def compile(self, candidate: Candidate) -> CompileResult:
        """The recorded binary, or why there was none."""
        outcome = self._outcomes.get(candidate.id)
        if outcome is None:
            known = candidate.template.id in self._templates
            status = Status.NOT_RUN if known else Status.LAUNCH_FAILED
            return CompileResult(candidate.id, status=status, reason=NOT_RECORDED)
        compiled = bool(outcome.artifact_digest or outcome.cases)
        return CompileResult(
            candidate=candidate.id,
            artifact=candidate.id if compiled else "",
            digest=outcome.artifact_digest,
            status=None if compiled else outcome.status,
            reason="" if compiled else outcome.reason,
            static=outcome.static,
            seconds=outcome.seconds.get("compile", 0.0),
            check="" if compiled else outcome.check,
        )

    async def benchmark(
        self,
        candidate: Candidate,
        compiled: CompileResult,
        screen: Screen | None = None,
    ) -> Outcome:
        """The recorded outcome."""
        return self._outcomes.get(candidate.id) or Outcome(Status.NOT_RUN, NOT_RECORDED)

    async def duel(
        self,
        challenger: Built,
        incumbent: Built,
        rounds: int,
        cases: Collection[str] | None = None,
    ) -> DuelResult:
        """The next recorded rounds of the pair."""
        pair = (challenger.candidate.id, incumbent.candidate.id)
        found = self._duels.get((*pair, False)) or self._duels.get((*pair, True))
        begin = self._fought.get(pair, 0)
        self._fought[pair] = begin + rounds
        parts = [
            replace(
                case,
                challenger_ms=case.challenger_ms[begin : begin + rounds],
                incumbent_ms=case.incumbent_ms[begin : begin + rounds],
            )
            for case in (found.cases if found else ())
        ]
        if not parts or not all(part.challenger_ms for part in parts):
            return DuelResult(Status.NOT_RUN, "the memory has no such duel")
        return DuelResult(Status.MEASURED, cases=tuple(parts))

    async def against_library(
        self, challenger: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        """Nothing is recorded by case and round."""
        return DuelResult(Status.NOT_RUN, "a recorded device has no library")

    async def sanitize(self, candidate: Candidate, compiled: CompileResult) -> SanitizerResult:
        """Not asked again."""
        return SanitizerResult(Status.NOT_RUN, "a recorded device")

    async def profile(
        self,
        candidate: Candidate,
        case: str,
        *,
        compiled: CompileResult | None = None,
        level: int = 1,
    ) -> ProfileResult:
        """Not asked again."""
        return ProfileResult("not_available", "a recorded device")

    async def submit(self, candidate: Candidate, board: str | None) -> SubmitResult:
        """No leaderboard."""
        return SubmitResult("no_board")

    async def close(self) -> None:
        """Nothing is held."""
