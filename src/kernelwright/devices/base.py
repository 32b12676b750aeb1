"""What every device offers: a compiler (no device needed) and a runner (owns the device).

Both run in children of the harness, never in the agent's process. Neither raises for a bad candidate: that is
a status with a reason. They raise :class:`~kernelwright.core.errors.HarnessError` when they fail themselves.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from kernelwright.core.case import Array, Buffer, CaseInputs, Tolerance
from kernelwright.core.device import DeviceFacts
from kernelwright.core.launch import BuildRequest, ResolvedPlan
from kernelwright.core.outcome import CaseTiming, Check, Conditions, StaticMetrics, Status

__all__ = [
    "Array",
    "Buffer",
    "BuildResult",
    "CaseInputs",
    "CaseRequest",
    "CaseSource",
    "Compiler",
    "Contestant",
    "DuelCase",
    "DuelRequest",
    "DuelResult",
    "RunRequest",
    "RunResult",
    "Runner",
    "TimingProtocol",
    "Tolerance",
]


@dataclass(frozen=True)
class BuildResult:
    """What a compile gave. ``status`` is ``MEASURED`` never: ``None`` means it worked.

    ``artifact`` is the path of the binary inside the scratch given to :meth:`Compiler.build`; ``digest`` its
    SHA-256 (twins are found by it); ``log`` the compiler's output, trimmed to 8 KiB.
    """

    artifact: str = ""
    digest: str = ""
    status: Status | None = None
    reason: str = ""
    static: StaticMetrics | None = None
    log: str = ""
    seconds: float = 0.0
    check: str = ""


@dataclass(frozen=True)
class TimingProtocol:
    """How a case is timed. The seed setting: 10 runs, 2 dropped, median of the kept 8.

    ``graph_runs`` plans go into one graph for cases whose ``floor_ms`` (see :class:`CaseRequest`) is below
    ``graph_below_ms``: an event pair around one short launch reads mostly launch overhead. A clear loser
    (see :class:`CaseRequest`) gets ``loser_runs`` only. ``gate``: on a GPU every run waits, alone, until it is queued
    as a whole. ``fresh``: on a GPU another context has a turn before a block of runs. ``clear``: how a GPU's blocks
    overwrite what the L2 cache holds, each a piece of its own or all striding. ``queue_group``: on a GPU runs stand at
    every place of groups of so many queue entries equally often. ``places``: on a GPU the small outputs and scratch of
    an input set lie at so many addresses in turn. Memories of before lack these keys: their runs waited in a batch, had
    no turn before them, came behind a striding clear, stood anywhere in the queue, or wrote to one address.
    """

    runs: int = 10
    dropped: int = 2
    input_sets: int = 3
    graph_runs: int = 10
    graph_below_ms: float = 0.005
    clear_l2: bool = True
    loser_runs: int = 4
    gate: Literal["run", "batch"] = "run"
    fresh: bool = True
    clear: Literal["blocks", "stride"] = "blocks"
    queue_group: int = 4
    places: int = 5


TIMED_BEFORE: Final[Mapping[str, object]] = {
    "gate": "batch", "fresh": False, "clear": "stride", "queue_group": 1, "places": 1,
}  # fmt: skip
"""What memories mean that lack a key of :class:`TimingProtocol`."""


class CaseSource(Protocol):
    """Where a runner gets a case's data; implemented by the harness worker on top of a problem."""

    def buffers(self, case: str) -> tuple[Buffer, ...]:
        """Array arguments of the case."""
        ...

    def inputs(self, case: str, index: int) -> CaseInputs:
        """Fresh inputs number ``index`` (seeds are unknown to candidates)."""
        ...

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:
        """Right outputs in float64 for inputs given as arrays of namespace ``xp`` (numpy, cupy, torch)."""
        ...

    def tolerance(self, case: str, output: str, expected_rms: float) -> Tolerance:
        """Tolerance of one output; some problems scale it by the output's root mean square."""
        ...

    def library(self, case: str, tensors: Mapping[str, Any], torch: Any) -> Callable[[], object]:
        """A vendor library's way from inputs to outputs, which are tensors on the device, as one call.

        Raises ProblemError for a problem that names none.
        """
        ...


@dataclass(frozen=True)
class CaseRequest:
    """One case to run: the resolved plan and the physical floor (0 when unknown).

    A first run above ``loser_above_ms`` shows a clear loser. ``check`` names the check that a wrong output breaks:
    ``values`` for a case of the list, ``stress inputs`` or ``sizes off the list`` for a trial.
    """

    case: str
    plan: ResolvedPlan
    floor_ms: float = 0.0
    loser_above_ms: float = float("inf")
    check: str = Check.VALUES


@dataclass(frozen=True)
class RunRequest:
    """Check and time one artifact.

    With ``check_only`` no case is timed: each runs once with every poison pattern, and equal inputs must give
    equal outputs (unless the plan declares atomic noise).
    """

    artifact: str
    cases: tuple[CaseRequest, ...]
    timing: TimingProtocol = TimingProtocol()
    check_only: bool = False
    timeout_s: float = 30.0


@dataclass(frozen=True)
class RunResult:
    """``status`` MEASURED with one timing a case, or what went wrong, where.

    When ``check_only`` there are no timings; ``errors`` has each case and its worst error, in multiples of the tolerance.
    """

    status: Status
    reason: str = ""
    timings: tuple[CaseTiming, ...] = ()
    findings: tuple[str, ...] = ()
    check_seconds: float = 0.0
    time_seconds: float = 0.0
    check: str = ""
    errors: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Contestant:
    """One side of a duel: a built artifact and its plan for every case.

    Without an artifact it is the vendor library that the problem names, where the device has one; plans are empty then.
    """

    artifact: str
    cases: tuple[CaseRequest, ...]


@dataclass(frozen=True)
class DuelRequest:
    """Time two artifacts on the same cases and inputs, runs in turn (ABBA), ``rounds`` timed runs a side and case."""

    challenger: Contestant
    incumbent: Contestant
    rounds: int = 20
    timing: TimingProtocol = TimingProtocol()
    timeout_s: float = 30.0


@dataclass(frozen=True)
class DuelCase:
    """Paired samples of one case in ms: entry i of both sides was taken next to each other."""

    case: str
    challenger_ms: tuple[float, ...]
    incumbent_ms: tuple[float, ...]
    method: str
    discarded: int = 0
    conditions: Conditions | None = None


@dataclass(frozen=True)
class DuelResult:
    """``status`` MEASURED with one entry a case, or what went wrong with which side (``at_fault``).

    ``library`` names the vendor library that was a side. NOT_RUN where that cannot be had.
    """

    status: Status
    reason: str = ""
    check: str = ""
    at_fault: str = ""
    cases: tuple[DuelCase, ...] = ()
    findings: tuple[str, ...] = ()
    seconds: float = 0.0
    library: str = ""


class Compiler(Protocol):
    """Builds device code. Lives in a compile worker; needs no device."""

    def build(self, request: BuildRequest, scratch: Path) -> BuildResult:
        """Compile into ``scratch``. A source that cannot be compiled is a result with a status."""
        ...


class Runner(Protocol):
    """Owns one device: buffers, launches, checks, timing. Lives in the device worker."""

    @property
    def facts(self) -> DeviceFacts:
        """Facts of the device."""
        ...

    def run(self, request: RunRequest, source: CaseSource) -> RunResult:
        """Check every run of every case, and time them. A wrong or crashing candidate is a status."""
        ...

    def duel(self, request: DuelRequest, source: CaseSource) -> DuelResult:
        """Time two candidates in turn. Every run is checked as in :meth:`run`."""
        ...

    def close(self) -> None:
        """Free the device."""
        ...
