"""The baseline that everything is compared with: measured first, and the end of a campaign where it fails."""

from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.outcome import KILLED, Outcome, Status
from kernelwright.harness.protocol import Harness
from kernelwright.memory.store import Memory


class BaselineFailed(UserError):  # noqa: N818 - reads as what happened
    """The problem's baseline does not pass its own check: there is nothing to compare with."""


async def outcome_of(harness: Harness, candidate: Candidate) -> Outcome:
    """What came of the baseline. Raises HarnessError where that cannot be told: it is recorded of nobody."""
    compiled = await harness.compile(candidate)
    outcome = compiled.as_outcome() if compiled.status else await harness.benchmark(candidate, compiled)
    if outcome.check == KILLED:
        raise HarnessError(f"the baseline could not be measured: {outcome.reason}")
    return outcome


def failed(problem: str, device: str, outcome: Outcome) -> BaselineFailed:
    """The error that ends a campaign."""
    return BaselineFailed(
        f"{problem}: the baseline does not pass on {device}: {outcome.status}: {outcome.reason}"
    )


def need_baseline(memory: Memory, campaign: str) -> None:
    """Raises BaselineFailed where a campaign's first experiment, its baseline, failed: it has nothing to go on with."""
    first = next(memory.experiments(campaign), None)
    if first is not None and first.outcome.status is not Status.MEASURED:
        raise BaselineFailed(
            f"{campaign}: its baseline does not pass ({first.outcome.status}: {first.outcome.reason}): "
            "mend baseline.cu and start a new campaign"
        )
