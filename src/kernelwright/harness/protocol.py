"""The harness as the campaign sees it: four verbs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.outcome import Outcome, StaticMetrics, Status
from kernelwright.core.screen import Screen
from kernelwright.devices.base import DuelResult
from kernelwright.harness.wire import Ceilings
from kernelwright.profiling.metrics import HotLine, KernelProfile


@dataclass(frozen=True)
class CompileResult:
    """``status`` is ``None`` when the candidate compiled; else why not, with a reason to act on.

    ``check_artifact`` is the build of the checked mode, where the device has one.
    """

    candidate: str
    artifact: str = ""
    digest: str = ""
    status: Status | None = None
    reason: str = ""
    static: StaticMetrics | None = None
    log: str = ""
    seconds: float = 0.0
    check_artifact: str = ""
    check: str = ""

    def as_outcome(self) -> Outcome:
        """The outcome of a candidate that ended at compiling."""
        if self.status is None:
            raise ValueError("the candidate compiled: its outcome comes from the benchmark")
        return Outcome(
            status=self.status,
            reason=self.reason,
            static=self.static,
            seconds={"compile": self.seconds},
            check=self.check,
        )


@dataclass(frozen=True)
class ProfileResult:
    """Counters of one case, launch by launch in the plan's order; one that could not be had is missing, never 0.

    ``status`` is ``profiled``, ``not_available`` (no such device or tool), ``not_permitted`` (``reason`` has the
    mend), ``timed_out`` or ``failed``. ``lines`` are the hottest ones, at level 2; ``raw`` is the tool's report.
    """

    status: str
    reason: str = ""
    kernels: tuple[KernelProfile, ...] = ()
    lines: tuple[HotLine, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    raw: str = field(default="", repr=False)


@dataclass(frozen=True)
class SubmitResult:
    """``status`` is ``no_board`` where no leaderboard is attached."""

    status: str
    reason: str = ""
    rank: int | None = None


@dataclass(frozen=True)
class Built:
    """A candidate with its binary."""

    candidate: Candidate
    compiled: CompileResult


@dataclass(frozen=True)
class SanitizerResult:
    """What compute-sanitizer says.

    ``status`` is MEASURED when every tool in ``tools`` ran and found nothing, WRONG with the first finding as
    ``reason``, NOT_RUN with why it cannot be had here (never a pass; ``tools`` are those that did run). ``notes``
    are for people: warnings, layers of the sandbox that the tool cannot live with. ``findings`` are the checked
    mode's, with what it modelled of memory accesses.
    """

    status: Status
    reason: str = ""
    tools: tuple[str, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


class AtHand:
    """For a harness whose device is here: nothing travels, so nothing has to be foreseen."""

    def foresee_duels(self, challengers: Sequence[Candidate], incumbent: Candidate) -> None:
        """Nothing to do."""

    def foresee_end(self, winner: Candidate, baseline: Candidate, duel: int, library: int) -> None:
        """Nothing to do."""


class Harness(Protocol):
    """The four verbs, and what trust needs beside them. Every call returns a result for a bad candidate; errors are the harness's own."""

    @property
    def facts(self) -> DeviceFacts:
        """Facts of the device that benchmarks."""
        ...

    @property
    def places(self) -> int:
        """How many candidates may be in the device lane at once (seed setting: 2, one runs, one is staged)."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether the caller has to give the device to one candidate at a time; else the harness queues."""
        ...

    @property
    def ceilings(self) -> Ceilings:
        """What the device can do at best; 0 is unknown."""
        ...

    async def compile(self, candidate: Candidate) -> CompileResult:
        """Rules, compile, static metrics. Any number at once; workers are a bounded pool."""
        ...

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        """Check and time on every case. One at a time on a device.

        With a ``screen`` clear losers are timed briefly, only contenders get the trials (stress inputs, sizes off the
        list) and only those ahead the large ones; without one every check runs in full.
        """
        ...

    async def duel(
        self, challenger: Built, incumbent: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        """Time two candidates in turn on all or some of the cases; the device is exclusive."""
        ...

    async def against_library(
        self, challenger: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        """The same with the vendor library that the problem names; NOT_RUN where it cannot be had."""
        ...

    def foresee_duels(self, challengers: Sequence[Candidate], incumbent: Candidate) -> None:
        """Who will challenge if those before them do not win, for a harness to which every request is a trip."""
        ...

    def foresee_end(self, winner: Candidate, baseline: Candidate, duel: int, library: int) -> None:
        """What a campaign's end will ask of its winner, likewise."""
        ...

    async def sanitize(self, candidate: Candidate, compiled: CompileResult) -> SanitizerResult:
        """compute-sanitizer's tools on the smallest case and a size off the list, where they can be had."""
        ...

    async def profile(
        self, candidate: Candidate, case: str, *, compiled: CompileResult | None = None, level: int = 1
    ) -> ProfileResult:
        """Hardware counters of one case, where they can be had; level 2 adds the hottest lines.

        Nobody is timed meanwhile. Compiles where no result of :meth:`compile` is given.
        """
        ...

    async def submit(self, candidate: Candidate, board: str | None) -> SubmitResult:
        """Send to a leaderboard; answers ``no_board`` when there is none."""
        ...

    async def close(self) -> None:
        """End the children."""
        ...
