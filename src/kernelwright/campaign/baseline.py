"""The baseline that everything is compared with: measured first, and the end of a campaign where it fails."""

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.outcome import KILLED, Outcome, Status
from kernelwright.harness.protocol import Harness
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import Problem


class BaselineFailed(UserError):  # noqa: N818 - reads as what happened
    """The problem's baseline does not pass its own check: there is nothing to compare with."""


async def outcome_of(harness: Harness, candidate: Candidate) -> Outcome:
    """What came of the baseline. Raises HarnessError where that cannot be told: it is recorded of nobody."""
    compiled = await harness.compile(candidate)
    outcome = compiled.as_outcome() if compiled.status else await harness.benchmark(candidate, compiled)
    if outcome.check == KILLED:
        raise HarnessError(f"the baseline could not be measured: {outcome.reason}")
    return outcome


def failed(problem: Problem, facts: DeviceFacts, outcome: Outcome, *, slow_cases: bool) -> BaselineFailed:
    """The error that ends a campaign. A slow device may have got all cases: who starts cannot know what is elsewhere."""
    too_slow = outcome.status is Status.TIMED_OUT and facts.kind == "cpu" and not slow_cases
    mend = " (--slow-cases takes the problem's small ones)" if too_slow and problem.spec.slow_cases else ""
    return BaselineFailed(
        f"{problem.name}: the baseline does not pass on {facts.name}: {outcome.status}: {outcome.reason}{mend}"
    )


def need_baseline(memory: Memory, campaign: str) -> None:
    """Raises BaselineFailed where a campaign's first experiment, its baseline, failed: it has nothing to go on with."""
    first = next(memory.experiments(campaign), None)
    if first is not None and first.outcome.status is not Status.MEASURED:
        raise BaselineFailed(
            f"{campaign}: its baseline does not pass ({first.outcome.status}: {first.outcome.reason}): "
            "mend baseline.cu and start a new campaign"
        )
