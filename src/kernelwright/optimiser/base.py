"""What every optimiser offers: ask for configurations, tell what became of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import StaticMetrics, Status


@dataclass(frozen=True)
class RelatedResult:
    """A configuration of a related space and its time in ms."""

    configuration: Configuration
    value: float


@dataclass(frozen=True)
class Suggestion:
    """A configuration to try next.

    ``expected_improvement`` is that of log time over the best so far (0.01 is about one percent); ``reason`` is
    for people.
    """

    configuration: Configuration
    expected_improvement: float
    reason: str


@dataclass(frozen=True)
class Observation:
    """What became of a configuration.

    ``value`` is the objective in ms, None without a usable one; ``noise`` its relative standard deviation where
    known. ``cases`` are times in ms by case: a candidate that was stopped early has only some of them, and then
    status ``measured`` with ``value`` None. ``static`` is what the compiler said.
    """

    value: float | None
    status: Status
    noise: float | None = None
    cases: Mapping[str, float] | None = None
    static: StaticMetrics | None = None


@dataclass(frozen=True)
class Importance:
    """Share of the variance of log time over the space that a tunable alone (or a pair beyond its two) explains.

    ``share`` is a posterior mean, ``uncertainty`` its standard deviation.
    """

    tunables: tuple[str, ...]
    share: float
    uncertainty: float


@dataclass(frozen=True)
class Analysis:
    """What the surrogate believes about the space; both lists start with the largest share."""

    observations: int
    importance: tuple[Importance, ...]
    interactions: tuple[Importance, ...]


class Optimiser(Protocol):
    """Ask and tell over one search space. Not thread-safe. Equal seeds and tells give equal asks."""

    @property
    def exhausted(self) -> bool:
        """Whether every configuration has been asked."""
        ...

    def ask(self, n: int = 1) -> list[Suggestion]:
        """Up to ``n`` configurations that were never asked or told before; fewer only when none is left."""
        ...

    def tell(self, configuration: Configuration, observation: Observation) -> None:
        """Learn the outcome of a configuration, asked or not. A later outcome replaces an earlier one."""
        ...

    def tell_static(self, configuration: Configuration, static: StaticMetrics) -> None:
        """Learn what the compiler says of a configuration before it is run."""
        ...

    def chance(self, configuration: Configuration) -> float | None:
        """Probability that a compiled configuration (:meth:`tell_static`) beats the best so far.

        None while nothing can be said: then run it.
        """
        ...

    def expected_gain(self, best_value: float | None) -> float:
        """Expected improvement, in log time, of the next candidate over ``best_value`` ms.

        Optimistic while little is known; 0 when exhausted.
        """
        ...

    def analysis(self) -> Analysis:
        """Importance of tunables and of their pairs so far; empty lists while too little is known."""
        ...
