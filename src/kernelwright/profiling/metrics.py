"""Records of what a profiler says."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Metrics:
    """Metric name to value, in base units (ns, bytes, percent). What is unknown is absent, never 0."""

    values: Mapping[str, float] = field(default_factory=dict, hash=False)

    def get(self, name: str) -> float | None:
        """The value; ``None`` is unknown."""
        return self.values.get(name)

    def total(self, *names: str) -> float | None:
        """Sum of those that are known; ``None`` when none is."""
        known = [self.values[name] for name in names if name in self.values]
        return sum(known) if known else None

    def ratio(self, above: str, below: str) -> float | None:
        """Quotient; ``None`` when a part is unknown or the divisor is 0."""
        divisor = self.get(below)
        dividend = self.get(above)
        return dividend / divisor if dividend is not None and divisor else None

    def missing(self, asked: tuple[str, ...]) -> tuple[str, ...]:
        """Names that were asked for and did not come."""
        return tuple(name for name in asked if name not in self.values)


@dataclass(frozen=True)
class KernelProfile:
    """One launch. ``grid`` and ``block`` as the profiler prints them, without spaces."""

    kernel: str
    grid: str
    block: str
    metrics: Metrics
    device: str = ""

    @property
    def time_ns(self) -> float:
        """Time under the profiler, for comparing launches of one plan only; 0 where it is unknown."""
        return self.metrics.get("gpu__time_duration.sum") or 0.0


@dataclass(frozen=True)
class HotLine:
    """A line of the template (1-based), its share of the samples (0 to 1) and its most frequent stall reasons."""

    line: int
    share: float
    text: str = ""
    stalls: tuple[tuple[str, float], ...] = ()
