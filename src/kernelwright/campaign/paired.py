"""Two kernels in turn, look after look, until their ratio is known well enough: for what is told and decides nothing."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Final

from kernelwright.core.objective import Objective
from kernelwright.core.outcome import Status
from kernelwright.core.statistics import LOOKS, Decision, decide
from kernelwright.devices.base import DuelCase, DuelResult

NARROW: Final = 0.01
"""Width of a log ratio's interval below which no more rounds are run."""

Rounds = Callable[[int], Awaitable[DuelResult]]
"""So many more paired rounds."""


@dataclass(frozen=True)
class Paired:
    """What came of it. ``last`` is the last answer: of a failure, if that ended it; ``library`` was a side, if any was."""

    last: DuelResult
    batches: tuple[tuple[DuelCase, ...], ...] = ()
    decision: Decision | None = None
    library: str = ""

    @property
    def failed(self) -> bool:
        """Whether a side failed, or could not be had."""
        return self.last.status is not Status.MEASURED or not self.last.cases

    @property
    def narrow(self) -> bool:
        """Whether the ratio is known well enough, by more than one look."""
        d = self.decision
        return len(self.batches) > 1 and d is not None and log((d.high or 1) / (d.low or 1)) < NARROW


async def in_turn(
    rounds: Rounds, objective: Objective, order: Sequence[str], looks: Sequence[int] = LOOKS
) -> Paired:
    """Ends with a narrow interval, the last look, or a failure. ``order`` is the problem's order of cases."""
    found = Paired(DuelResult(Status.NOT_RUN, "no rounds were asked for"))
    before = 0
    for look in looks:
        found = replace(found, last=await rounds(look - before))
        before = look
        if found.failed:
            break
        cases = found.last.cases
        if min(min(len(case.challenger_ms), len(case.incumbent_ms)) for case in cases) < 2:
            continue  # the device was never undisturbed
        batches = (*found.batches, tuple(sorted(cases, key=lambda case: order.index(case.case))))
        decision = decide(batches, objective, 1)
        found = Paired(found.last, batches, decision, found.last.library)
        if found.narrow:
            break
    return found
