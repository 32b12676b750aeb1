"""Optimisers judged on recorded spaces: the same budget of evaluations for everyone, and what was found with it.

Scores are on evaluations, as medians over seeds of optimum / best; ``P`` is the performance score of Willemsen et al.
2024 ("A methodology for comparing auto-tuning optimization algorithms"): 0 is random search, 1 the optimum at once.
"""

import contextlib
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import PlanError
from kernelwright.devices.recorded import RecordedSpace

CHECKPOINTS = (25, 50, 100, 200)
ASKS_PER_EVALUATION = 50
Array = npt.NDArray[np.float64]


class BudgetSpent(Exception):  # noqa: N818 - ends a contestant's loop, is no fault
    """All evaluations are used."""


@dataclass
class Objective:
    """What a contestant may call: a configuration's recorded time in ms, None when it failed or is not valid.

    Only new valid configurations count; after ``budget`` of them (or far too many calls) BudgetSpent is raised. With
    ``noise`` the contestant sees times drawn from the recorded deviation; scores are of the true ones.
    """

    recorded: RecordedSpace
    budget: int
    seed: int
    noise: bool = False
    trace: list[float] = field(default_factory=list)
    _seen: dict[int, float | None] = field(default_factory=dict)
    _calls: int = 0

    def __post_init__(self) -> None:
        """Noise has its own random numbers."""
        self._rng = np.random.default_rng([self.seed, 7])

    def __call__(self, configuration: Configuration) -> float | None:
        """The time that the contestant sees."""
        self._calls += 1
        if len(self.trace) >= self.budget or self._calls > ASKS_PER_EVALUATION * self.budget:
            raise BudgetSpent
        try:
            index = self.recorded.space.index_of(configuration)
        except PlanError:
            return None
        if index not in self._seen:
            time_ms = float(self.recorded.times_ms[index])
            self.trace.append(time_ms)
            self._seen[index] = None if np.isnan(time_ms) else self._observed(index, time_ms)
        return self._seen[index]

    def spread(self, configuration: Configuration) -> float | None:
        """Relative deviation of the configuration's measurements, as a harness knows it from its samples."""
        if not self.noise:
            return None
        index = self.recorded.space.index_of(configuration)
        spread = float(self.recorded.deviations_ms[index]) / float(self.recorded.times_ms[index])
        return spread if np.isfinite(spread) else None

    def _observed(self, index: int, time_ms: float) -> float:
        deviation = float(self.recorded.deviations_ms[index])
        if not self.noise or np.isnan(deviation):
            return time_ms
        return max(1e-6, time_ms + deviation * float(self._rng.standard_normal()))


Contestant = Callable[[Objective, int], None]
"""Calls the objective until BudgetSpent or until it has nothing to ask; the integer is its seed."""


@dataclass(frozen=True)
class Trace:
    """True times in ms [evaluations] of one run, nan where failed; ``seconds`` of CPU that the contestant took."""

    times_ms: Array
    seconds: float


def play(
    recorded: RecordedSpace, contestant: Contestant, seed: int, budget: int, *, noise: bool = False
) -> Trace:
    """One run. Seeds of different spaces are unrelated."""
    mixed = seed * 1_000_003 + zlib.crc32(recorded.name.encode()) % 1_000_000
    objective = Objective(recorded, budget, mixed, noise)
    start = time.process_time()
    with contextlib.suppress(BudgetSpent):
        contestant(objective, mixed)
    return Trace(np.array(objective.trace), time.process_time() - start)


@dataclass(frozen=True)
class Score:
    """Of one contestant on one space: medians over seeds of optimum / best at the checkpoints, and the rest as means.

    ``curve`` [budget] is the median after each evaluation.
    """

    at: dict[int, float]
    auc: float
    p: float
    ms_per_ask: float
    curve: Array

    def as_json(self) -> dict[str, float | None]:
        """Numbers by their public names; None for a checkpoint beyond the budget."""
        checkpoints = {str(c): self.at.get(c) for c in CHECKPOINTS}
        return {**checkpoints, "AUC": self.auc, "P": self.p, "ms_per_ask": self.ms_per_ask}


def score(recorded: RecordedSpace, traces: Sequence[Trace], budget: int) -> Score:
    """Score of some runs; one that ended early keeps its last best."""
    best = np.stack([_best_so_far(trace.times_ms, budget) for trace in traces])
    ratio = np.where(np.isfinite(best), recorded.optimum_ms / best, 0.0)
    expected = random_search(recorded.times_ms, budget)
    possible = expected - recorded.optimum_ms
    gained = expected - np.where(np.isfinite(best), best, expected)
    worth = np.where(possible > 1e-12, gained / np.maximum(possible, 1e-12), 0.0)
    curve = np.median(ratio, axis=0)
    evaluations = sum(len(trace.times_ms) for trace in traces)
    return Score(
        at={c: float(curve[c - 1]) for c in CHECKPOINTS if c <= budget},
        auc=float(ratio.mean()),
        p=float(np.clip(worth, -1, 1).mean()),
        ms_per_ask=1e3 * sum(trace.seconds for trace in traces) / max(evaluations, 1),
        curve=curve,
    )


def mean_score(scores: Sequence[Score]) -> Score:
    """Mean over spaces."""
    return Score(
        at={c: float(np.mean([s.at[c] for s in scores])) for c in scores[0].at},
        auc=float(np.mean([s.auc for s in scores])),
        p=float(np.mean([s.p for s in scores])),
        ms_per_ask=float(np.mean([s.ms_per_ask for s in scores])),
        curve=np.mean([s.curve for s in scores], axis=0),
    )


def random_search(times_ms: Array, budget: int) -> Array:
    """Expected best [budget] after 1, 2, ... distinct random configurations, given that one was measured.

    Exact: with m measured among n, the best of k draws is worse than the i-th best with probability
    C(n - i, k) / C(n, k).
    """
    ranked = np.sort(times_ms[~np.isnan(times_ms)])
    n, draws = len(times_ms), np.arange(1, budget + 1)
    survival = np.ones(budget)
    expected, mass = np.zeros(budget), np.zeros(budget)
    for rank, time_ms in enumerate(ranked):
        following = survival * np.clip((n - rank - draws) / (n - rank), 0, None)
        probability = survival - following
        expected += probability * time_ms
        mass += probability
        survival = following
        if survival.max() < 1e-12:
            break
    result: Any = expected / mass
    return np.asarray(result)


def _best_so_far(times_ms: Array, budget: int) -> Array:
    """Best time [budget] after each evaluation, inf while nothing was measured."""
    padded = np.full(budget, np.inf)
    padded[: len(times_ms)] = np.where(np.isnan(times_ms), np.inf, times_ms)[:budget]
    return np.minimum.accumulate(padded)
