"""What the harness says of a candidate."""

from dataclasses import dataclass, field
from enum import StrEnum
from math import hypot, sqrt
from statistics import median, stdev

MEDIAN_ERROR = 1.2533
KILLED = "worker killed"
"""In place of a check, with status ``not_run``: nobody can say what the candidate is worth."""


class Status(StrEnum):
    """How an experiment ended. Only ``MEASURED`` carries timings that count."""

    MEASURED = "measured"
    RULE_BROKEN = "rule_broken"
    COMPILE_FAILED = "compile_failed"
    LAUNCH_FAILED = "launch_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    WRONG = "wrong"
    UNSTABLE = "unstable"
    TOO_FAST = "too_fast"
    NOT_RUN = "not_run"


class Check(StrEnum):
    """What refused a candidate. The reason has the details; the name is what a gauntlet and a certificate show."""

    PLAN = "plan"
    SOURCE_RULES = "source rules"
    BINARY_RULES = "binary rules"
    COMPILER = "compiler"
    COMPILE_LIMITS = "compile limits"
    LAUNCH_LIMITS = "launch limits"
    RUN_LIMITS = "run limits"
    CRASH = "crash"
    VALUES = "values"
    STRESS_INPUTS = "stress inputs"
    OTHER_SIZES = "sizes off the list"
    INPUTS_UNCHANGED = "inputs unchanged"
    GUARD_BANDS = "guard bands"
    POISON = "poison"
    REPEAT = "repeat"
    CHECKED_MODE = "checked mode"
    SANITIZER = "compute-sanitizer"
    FLOOR = "physical floor"


@dataclass(frozen=True)
class Conditions:
    """State of a GPU right after a block of timings; ``None`` is unknown. Clock in MHz, degrees Celsius, watts."""

    sm_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelStatics:
    """What a compiler tells of one kernel; ``None`` is unknown, never 0.

    ``instructions`` counts them by class, memory accesses by width in bits (``global_load_128``); what is not named
    does not occur, ``total`` counts all.
    """

    name: str
    registers: int | None = None
    spill_bytes: int | None = None
    stack_bytes: int | None = None
    static_shared_bytes: int | None = None
    dynamic_shared_bytes: int | None = None
    constant_bytes: int | None = None
    threads_per_block: int | None = None
    theoretical_occupancy: float | None = None
    occupancy_limiter: str | None = None
    instructions: dict[str, int] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class StaticMetrics:
    """Level 0 metrics: known before the device is used. ``code_bytes`` is the size of the artifact."""

    kernels: tuple[KernelStatics, ...] = ()
    code_bytes: int | None = None

    @property
    def registers(self) -> int | None:
        """Largest register count per thread over the kernels."""
        return max((k.registers for k in self.kernels if k.registers is not None), default=None)

    @property
    def spill_bytes(self) -> int | None:
        """Spilled bytes per thread, summed over the kernels."""
        known = [k.spill_bytes for k in self.kernels if k.spill_bytes is not None]
        return sum(known) if known else None


@dataclass(frozen=True)
class CaseTiming:
    """Timing of one case. ``samples_ms`` are the kept samples in order, warm-ups dropped.

    ``method`` says how they were taken: ``events`` (cold L2, one event pair a run), ``graph`` (short kernels:
    a graph of several runs, time per run) or ``clock`` (cpu). ``discarded`` samples were taken while the device
    was throttled and thrown away.
    """

    case: str
    samples_ms: tuple[float, ...]
    method: str
    max_error: float = 0.0
    conditions: Conditions | None = None
    discarded: int = 0

    @property
    def median_ms(self) -> float:
        """Median of the kept samples in ms: the time of the case."""
        return median(self.samples_ms)


@dataclass(frozen=True)
class Outcome:
    """Result of one experiment. ``reason`` is short and something a model can act on.

    ``check`` names the :class:`Check` that refused the candidate; empty for one that was measured or not run.
    """

    status: Status
    reason: str = ""
    static: StaticMetrics | None = None
    cases: tuple[CaseTiming, ...] = ()
    artifact_digest: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    check: str = ""

    def __post_init__(self) -> None:
        """Timings exist exactly for status ``measured`` and ``too_fast`` (quarantined)."""
        timed = self.status in {Status.MEASURED, Status.TOO_FAST}
        if bool(self.cases) != timed:
            raise ValueError(f"an outcome with status {self.status} has {len(self.cases)} timings")

    def relative_noise(self) -> float | None:
        """Standard error of the sum of the medians, as a share of it; ``None`` without samples.

        A median's standard error is about 1.253 times the mean's (normal samples).
        """
        errors = [
            MEDIAN_ERROR * stdev(t.samples_ms) / sqrt(len(t.samples_ms))
            for t in self.cases
            if len(t.samples_ms) > 1
        ]
        return hypot(*errors) / sum(t.median_ms for t in self.cases) if errors else None

    def times_ms(self) -> dict[str, float]:
        """Median per case in ms."""
        return {timing.case: timing.median_ms for timing in self.cases}
