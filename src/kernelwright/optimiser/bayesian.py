"""Bayesian optimisation over the valid configurations of a template (docs/optimiser.md says what and why)."""

from collections.abc import Sequence
from math import ceil

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import PlanError
from kernelwright.core.outcome import StaticMetrics
from kernelwright.core.space import Rows, SearchSpace
from kernelwright.optimiser.analysis import analyse
from kernelwright.optimiser.base import Analysis, Observation, RelatedResult, Suggestion
from kernelwright.optimiser.candidates import all_or_sample, around
from kernelwright.optimiser.design import space_filling
from kernelwright.optimiser.features import Points, make_features, unevenness
from kernelwright.optimiser.history import History
from kernelwright.optimiser.related import make_trend
from kernelwright.optimiser.static_metrics import StaticModel
from kernelwright.optimiser.surrogate import FeasibilityModel, SpeedModel

FIRST = 8
LEAST_KNOWN = 3
REFIT_GROWTH = 1.15
CENTRES = 5
CLIMBS = 8
GOOD_SHARE = 0.01
PATIENCE = 8
EXPLORATION = 0.01
UNKNOWN_GAIN = 0.3
"""Gain in log time that is expected of a template before its surrogate can say anything."""

Scores = npt.NDArray[np.float64]


class BayesianOptimiser:
    """Ask and tell (see :class:`~kernelwright.optimiser.base.Optimiser`)."""

    def __init__(self, space: SearchSpace, seed: int, related: Sequence[RelatedResult] = ()) -> None:
        self.space = space
        self._rng = np.random.default_rng(seed)
        self._history = History()
        self._candidates = all_or_sample(space, self._rng)
        self._features = make_features(space, self._candidates.rows)
        self._points = self._features.points(self._candidates.rows)
        self._trend = make_trend(self._features, related)
        self._first = self._start()
        self._speed: SpeedModel | None = None
        self._feasibility: FeasibilityModel | None = None
        self._static: StaticModel | None = None
        self._fitted_to = 0
        self._threads = ThreadpoolController()

    # -- the protocol -------------------------------------------------------------------------------------

    @property
    def exhausted(self) -> bool:
        """Whether every configuration has been asked or told."""
        return self.space.enumerable and len(self._history.observations) >= len(self.space)

    def ask(self, n: int = 1) -> list[Suggestion]:
        """Up to ``n`` new configurations; each takes the ones before it as pending."""
        suggestions: list[Suggestion] = []
        with self._threads.limit(limits=1, user_api="blas"):
            while len(suggestions) < n and not self.exhausted:
                row, gain, reason = self._next()
                self._history.ask(self._code(row), row)
                suggestions.append(Suggestion(self.space.configuration_of(row), gain, reason))
        return suggestions

    def tell(self, configuration: Configuration, observation: Observation) -> None:
        """Learn an outcome. Raises PlanError for a configuration that is not valid in this space."""
        row = self._valid_row(configuration)
        self._history.tell(self._code(row), row, observation)

    def tell_static(self, configuration: Configuration, static: StaticMetrics) -> None:
        """Learn what the compiler says. Raises PlanError for a configuration that is not valid in this space."""
        row = self._valid_row(configuration)
        self._history.tell_static(self._code(row), row, static)

    def chance(self, configuration: Configuration) -> float | None:
        """Probability that a compiled configuration beats the best so far; None while nothing can be said.

        Raises PlanError for a configuration that is not valid in this space.
        """
        code = self._code(self._valid_row(configuration))
        told = len(self._history.log_times().keys() & self._history.statics.keys())
        if code not in self._history.statics:
            return None
        with self._threads.limit(limits=1, user_api="blas"):
            if self._static is None or told >= REFIT_GROWTH * self._static.observations:
                self._static = StaticModel.fitted(self._features, self._history)
            return self._static.chance(self._history, code, self._best()) if self._static else None

    def expected_gain(self, best_value: float | None) -> float:
        """Expected improvement, in log time, of the next candidate over ``best_value`` ms."""
        if self.exhausted:
            return 0.0
        with self._threads.limit(limits=1, user_api="blas"):
            self._update()
            if self._speed is None:
                return UNKNOWN_GAIN
            best = self._best() if best_value is None else float(np.log(best_value))
            scores = self._scores(best)
        return float(np.exp(scores.max()))

    def analysis(self) -> Analysis:
        """Importance of tunables and of their pairs so far."""
        with self._threads.limit(limits=1, user_api="blas"):
            self._update()
            return analyse(self._features, self._candidates, self._speed, self._history)

    # -- choosing -----------------------------------------------------------------------------------------

    def _code(self, row: Rows) -> int:
        return int(self.space.codes(row[None])[0])

    def _valid_row(self, configuration: Configuration) -> Rows:
        if (violated := self.space.violated(configuration)) is not None:
            raise PlanError(f"not a configuration of this space: {violated}", "optimiser")
        return self.space.row_of(configuration)

    def _start(self) -> list[Rows]:
        """What is asked first: good by the trend, if there is one, else as many powers of two as possible; spread."""
        rows = self._candidates.rows
        if self._trend is None:
            uneven = unevenness(self.space, rows)
            even = rows[uneven == uneven.min()]
            return [even[i] for i in space_filling(self._features, even, FIRST, self._rng)]
        predicted = self._trend.at(self._points)
        good = rows[predicted <= np.quantile(predicted, GOOD_SHARE)]
        best = [rows[int(np.argmin(predicted))]]
        best += [good[i] for i in space_filling(self._features, good, FIRST // 2, self._rng)]
        return best + [rows[i] for i in space_filling(self._features, rows, FIRST // 4, self._rng)]

    def _next(self) -> tuple[Rows, float, str]:
        while self._first:
            row = self._first.pop(0)
            if self._code(row) not in self._history.observations:
                return row, UNKNOWN_GAIN, f"space-filling start, {len(self._first)} more"
        self._update()
        if self._speed is None:
            scores = self._scores_without_times()
            return (
                self._candidates.rows[int(np.argmax(scores))],
                UNKNOWN_GAIN,
                "too few measurements to predict",
            )
        demanded = self._exploration()
        best = self._best() - demanded
        scores = self._scores(best)
        place = int(np.argmax(scores))
        row, score = self._candidates.rows[place], float(scores[place])
        if not self._candidates.complete:
            row, score = self._climb(row, score, best)
        gain = float(np.exp(score))
        reason = f"expected improvement {100 * gain:.2g} %"
        return (
            row,
            gain,
            f"{reason} beyond {100 * demanded:.2g} %: nothing better for a while" if demanded else reason,
        )

    def _exploration(self) -> float:
        """How much better than the best (in log time) the next one has to be.

        Expected improvement over the best alone circles around a local optimum for long. The longer nothing better
        was found, the larger the improvement that every other ask looks for: that favours what is less known.
        """
        assert self._speed is not None
        stagnation = self._history.stagnation()
        if stagnation <= PATIENCE or stagnation % 2:
            return 0.0
        return self._speed.scale * min(EXPLORATION * (stagnation - PATIENCE), 1.0)

    def _best(self) -> float:
        return min(value for value, _ in self._history.log_times().values())

    def _open(self) -> npt.NDArray[np.bool_]:
        """Candidates never asked; a large space gets new ones when none is left."""
        mask = self._candidates.open(self._history.observations)
        if not mask.any():
            self._candidates = all_or_sample(self.space, self._rng)
            self._points = self._features.points(self._candidates.rows)
            self._speed, self._feasibility, self._fitted_to = None, None, 0
            self._update()
            mask = self._candidates.open(self._history.observations)
        return mask

    def _scores(self, best: float) -> Scores:
        """Log of improvement times probability to run [m]; -inf for what was asked already."""
        assert self._speed is not None
        mask = self._open()
        scores = self._speed.log_improvement(self._history, best)
        if self._feasibility is not None:
            scores = scores + self._feasibility.log_probability(self._history)
        return np.where(mask, scores, -np.inf)

    def _scores_without_times(self) -> Scores:
        mask = self._open()
        scores = 0.1 * self._rng.random(len(mask))
        if self._feasibility is not None:
            scores = scores + self._feasibility.log_probability(self._history)
        return np.where(mask, scores, -np.inf)

    def _climb(self, row: Rows, score: float, best: float) -> tuple[Rows, float]:
        """Follow the score through neighbours that are not among the candidates."""
        assert self._speed is not None
        for _ in range(CLIMBS):
            near = self.space.neighbours(row)
            near = near[[self._code(other) not in self._history.observations for other in near]]
            if not len(near):
                break
            scores = self._speed.log_improvement_at(self._features.points(near), self._history, best)
            if self._feasibility is not None:
                scores = scores + self._feasibility.log_probability_at(
                    self._features.points(near), self._history
                )
            place = int(np.argmax(scores))
            if scores[place] <= score:
                break
            row, score = near[place], float(scores[place])
        return row, score

    # -- learning -----------------------------------------------------------------------------------------

    def _update(self) -> None:
        """Bring both models up to what was asked and told."""
        known = self._history.log_times()
        if len(known) >= LEAST_KNOWN and len(known) >= max(
            self._fitted_to + 1, ceil(REFIT_GROWTH * self._fitted_to)
        ):
            self._refit(known)
        if self._speed is not None:
            there = {*self._speed.codes, *self._speed.left_out}
            for code in [c for c in (*known, *self._history.pending) if c not in there]:
                self._speed.extend(code, self._point(code), known.get(code, (0.0, 0.0))[1])
        self._update_feasibility()

    def _refit(self, known: dict[int, tuple[float, float]]) -> None:
        if not self._candidates.complete:
            best = sorted(known, key=lambda code: known[code][0])[:CENTRES]
            self._candidates = around(self.space, self._history.stacked(best), self._rng)
            self._points = self._features.points(self._candidates.rows)
            self._feasibility = None
        start = self._speed.hyperparameters if self._speed else None
        self._speed = SpeedModel.fitted(self._features, self._points, self._history, start, self._trend)
        self._fitted_to = len(known)

    def _update_feasibility(self) -> None:
        feasible = self._history.feasible()
        if all(feasible.values()):
            return
        old = self._feasibility
        if old is None or len(feasible) >= REFIT_GROWTH * old.fitted_to:
            start = old.hyperparameters if old else None
            self._feasibility = FeasibilityModel.fitted(self._features, self._points, self._history, start)
            return
        there = set(old.codes)
        for code in [c for c in feasible if c not in there]:
            old.extend(code, self._point(code))

    def _point(self, code: int) -> Points:
        return self._features.points(self._history.rows[code][None])
