"""The two beliefs over the candidates: how fast they are, and whether they run at all."""

from dataclasses import dataclass

import numpy as np

from kernelwright.core.space import Rows
from kernelwright.optimiser.acquisition import log_expected_improvement
from kernelwright.optimiser.candidates import Candidates
from kernelwright.optimiser.features import FeatureMap
from kernelwright.optimiser.gaussian_process import Array, Evidence, Hyperparameters, Prior, fit
from kernelwright.optimiser.history import History
from kernelwright.optimiser.posterior import Posterior, Single

LEAST_DEVIATION = 1e-5
LEAST_LENGTH_SCALE = 0.15
DEFAULT_LENGTH_SCALE = 0.5
FEASIBILITY_NOISE = 0.05
OPTIMISM = 0.5
LEAST_FEASIBLE = 0.02


@dataclass
class SpeedModel:
    """Belief about log times of the candidates; targets are standardised with ``centre`` and ``scale``."""

    hyperparameters: Hyperparameters
    posterior: Posterior
    codes: list[int]
    centre: float
    scale: float

    @classmethod
    def fitted(
        cls, features: FeatureMap, candidates: Candidates, history: History, start: Hyperparameters | None
    ) -> "SpeedModel":
        """Fit to everything told, then condition on what is pending too."""
        known = history.log_times()
        values = np.array([value for value, _ in known.values()])
        centre, scale = float(values.mean()), max(float(values.std()), 1e-6)
        noise = (np.array([n for _, n in known.values()]) / scale) ** 2
        points = features.points(history.stacked(known))
        evidence = Evidence(points, (values - centre) / scale, noise, features.groups, Prior())
        hyperparameters = fit(evidence, start)
        posterior = Posterior(hyperparameters, features.groups, features.points(candidates.rows))
        posterior.add(points, noise)
        return cls(hyperparameters, posterior, list(known), centre, scale)

    def extend(self, features: FeatureMap, code: int, row: Rows, noise: float) -> None:
        """Condition on one more point, told or pending."""
        self.posterior.add(features.points(row[None]), np.array([(noise / self.scale) ** 2]))
        self.codes.append(code)

    def whitened(self, history: History) -> Array:
        """Coefficients of the means for what is known now."""
        known = history.log_times()
        targets = [
            (known[code][0] - self.centre) / self.scale if code in known else np.nan for code in self.codes
        ]
        return self.posterior.whiten(np.array(targets))

    def log_improvement(self, history: History, best: float) -> Array:
        """Log expected improvement [m], in log time, over ``best`` (a log time)."""
        return self._improvement(self.posterior.mean(self.whitened(history)), self.posterior.variance, best)

    def log_improvement_at(self, points: Array, history: History, best: float) -> Array:
        """The same for points [k, columns] that are no candidates."""
        mean, variance = self.posterior.predict(points, self.whitened(history))
        return self._improvement(mean, variance, best)

    def _improvement(self, mean: Single, variance: Single, best: float) -> Array:
        deviation = np.sqrt(np.maximum(variance.astype(np.float64), LEAST_DEVIATION**2))
        log_gain = log_expected_improvement(
            mean.astype(np.float64), deviation, (best - self.centre) / self.scale
        )
        return np.asarray(log_gain + np.log(self.scale))


@dataclass
class FeasibilityModel:
    """Belief whether candidates can be measured: a regression on +1 and -1, optimistic where nothing is near."""

    posterior: Posterior
    codes: list[int]

    @classmethod
    def fitted(
        cls, features: FeatureMap, candidates: Candidates, history: History, speed: Hyperparameters | None
    ) -> "FeasibilityModel":
        """Built on what is known; length scales are those of the speed model, not too short."""
        scales = np.full(features.scales, DEFAULT_LENGTH_SCALE) if speed is None else speed.length_scales
        hyperparameters = Hyperparameters(np.maximum(scales, LEAST_LENGTH_SCALE), 1.0, FEASIBILITY_NOISE)
        posterior = Posterior(hyperparameters, features.groups, features.points(candidates.rows))
        known = history.feasible()
        posterior.add(features.points(history.stacked(known)), np.zeros(len(known)))
        return cls(posterior, list(known))

    def extend(self, features: FeatureMap, code: int, row: Rows) -> None:
        """Condition on one more outcome."""
        self.posterior.add(features.points(row[None]), np.zeros(1))
        self.codes.append(code)

    def log_probability(self, history: History) -> Array:
        """Log probability [m] that a candidate can be measured."""
        return _log_share(self.posterior.mean(self._whitened(history)))

    def log_probability_at(self, points: Array, history: History) -> Array:
        """The same for points [k, columns] that are no candidates."""
        return _log_share(self.posterior.predict(points, self._whitened(history))[0])

    def _whitened(self, history: History) -> Array:
        known = history.feasible()
        labels = [(1.0 if known[code] else -1.0) - OPTIMISM for code in self.codes]
        return self.posterior.whiten(np.array(labels))


def _log_share(mean: Single) -> Array:
    share = (OPTIMISM + mean.astype(np.float64) + 1) / 2
    return np.asarray(np.log(np.clip(share, LEAST_FEASIBLE, 1.0)))
