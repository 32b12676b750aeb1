"""The two beliefs over the candidates: how fast they are, and whether they run at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelwright.optimiser.acquisition import log_expected_improvement
from kernelwright.optimiser.features import FeatureMap
from kernelwright.optimiser.gaussian_process import Array, Evidence, Hyperparameters, fit
from kernelwright.optimiser.history import History
from kernelwright.optimiser.posterior import Posterior, Single
from kernelwright.optimiser.related import BELIEFS, Trend

LEAST_DEVIATION = 1e-5
LEAST_SCALE = 1e-6
FEASIBILITY_NOISE = 0.05
OPTIMISM = 0.5
LEAST_FEASIBLE = 0.02
MOST_FITTED = 320
"""Points that hyperparameters are fitted to: more change them little, and cost memory and time by the square."""
MOST_CONDITIONED = 500
"""Points that a belief rests on: a campaign of a day tells more than a surrogate can hold."""


def telling(known: Mapping[int, tuple[float, float]], most: int) -> dict[int, tuple[float, float]]:
    """At most ``most`` of what is known, in its order: the better half of them the best, the rest spread evenly."""
    if len(known) <= most:
        return dict(known)
    ranked = sorted(known, key=lambda code: known[code][0])
    best, others = ranked[: most // 2], ranked[most // 2 :]
    count = most - len(best)
    chosen = {*best, *(others[i * len(others) // count] for i in range(count))}
    return {code: entry for code, entry in known.items() if code in chosen}


@dataclass
class SpeedModel:
    """Belief about log times of the candidates: ``belief * trend + centre + scale * (Gaussian process)``.

    ``codes`` are the conditioned points in order, ``left_out`` what was known but is not among them, ``followed`` the trend's share of their log times, and
    ``followed_by_candidates`` [m] that of the candidates'.
    """

    hyperparameters: Hyperparameters
    posterior: Posterior
    codes: list[int]
    centre: float
    scale: float
    trend: Trend | None
    belief: float
    followed: list[float]
    followed_by_candidates: Array
    left_out: frozenset[int] = frozenset()

    @classmethod
    def fitted(
        cls,
        features: FeatureMap,
        candidates: Array,
        history: History,
        start: Hyperparameters | None,
        trend: Trend | None,
    ) -> "SpeedModel":
        """Fit to everything told; a trend is believed as far as the evidence for it goes.

        ``candidates`` are points [m, columns].
        """
        everything = history.log_times()
        known = telling(everything, MOST_CONDITIONED)
        points = features.points(history.stacked(known))
        values = np.array([value for value, _ in known.values()])
        noise = np.array([deviation for _, deviation in known.values()])
        fitted = [list(known).index(code) for code in telling(known, MOST_FITTED)]
        predicted = trend.at(points) if trend else np.zeros(len(points))
        fits = []
        for belief in BELIEFS if trend else (0.0,):
            rest = values - belief * predicted
            centre, scale = float(rest.mean()), max(float(rest.std()), LEAST_SCALE)
            evidence = Evidence(
                points[fitted],
                ((rest - centre) / scale)[fitted],
                ((noise / scale) ** 2)[fitted],
                features.groups,
                features.length_priors,
            )
            hyperparameters = fit(evidence, start)
            surprise = evidence(hyperparameters.vector)[0] + len(fitted) * np.log(scale)
            fits.append((surprise, belief, hyperparameters, centre, scale))
        _, belief, hyperparameters, centre, scale = min(fits, key=lambda entry: entry[0])
        posterior = Posterior(hyperparameters, features.groups, candidates)
        posterior.add(points, (noise / scale) ** 2)
        by_candidates = belief * trend.at(candidates) if trend and belief else np.zeros(len(candidates))
        followed = list(belief * predicted)
        return cls(
            hyperparameters,
            posterior,
            list(known),
            centre,
            scale,
            trend,
            belief,
            followed,
            by_candidates,
            frozenset(everything.keys() - known.keys()),
        )

    def extend(self, code: int, point: Array, noise: float) -> None:
        """Condition on one more point [1, columns], told or pending."""
        self.posterior.add(point, np.array([(noise / self.scale) ** 2]))
        self.codes.append(code)
        self.followed.append(float(self._follow(point)[0]))

    def whitened(self, history: History) -> Array:
        """Coefficients of the means for what is known now."""
        known = history.log_times()
        values = np.array([known[code][0] if code in known else np.nan for code in self.codes])
        return self.posterior.whiten((values - np.array(self.followed) - self.centre) / self.scale)

    def log_improvement(self, history: History, best: float) -> Array:
        """Log expected improvement [m], in log time, over ``best`` (a log time)."""
        mean = self.posterior.mean(self.whitened(history))
        return self._improvement(mean, self.posterior.variance, best - self.followed_by_candidates)

    def log_improvement_at(self, points: Array, history: History, best: float) -> Array:
        """The same for points [k, columns] that are no candidates."""
        mean, variance = self.posterior.predict(points, self.whitened(history))
        return self._improvement(mean, variance, best - self._follow(points))

    def _follow(self, points: Array) -> Array:
        return self.belief * self.trend.at(points) if self.trend and self.belief else np.zeros(len(points))

    def _improvement(self, mean: Single, variance: Single, best: Array) -> Array:
        deviation = np.sqrt(np.maximum(variance.astype(np.float64), LEAST_DEVIATION**2))
        standardised = (best - self.centre) / self.scale
        improvement = log_expected_improvement(mean.astype(np.float64), deviation, standardised)
        return np.asarray(improvement + np.log(self.scale))


@dataclass
class FeasibilityModel:
    """Belief whether candidates can be measured: a regression on +1 and -1, optimistic where nothing is near."""

    hyperparameters: Hyperparameters
    posterior: Posterior
    codes: list[int]
    fitted_to: int

    @classmethod
    def fitted(
        cls, features: FeatureMap, candidates: Array, history: History, start: Hyperparameters | None
    ) -> "FeasibilityModel":
        """Fit to everything told; ``candidates`` are points [m, columns]."""
        known = history.feasible()
        points = features.points(history.stacked(known))
        noise = np.full(len(points), FEASIBILITY_NOISE)
        some = np.unique(np.linspace(0, len(points) - 1, MOST_FITTED).astype(int))
        labels = _labels(known, list(known))
        evidence = Evidence(points[some], labels[some], noise[some], features.groups, features.length_priors)
        hyperparameters = fit(evidence, start)
        posterior = Posterior(hyperparameters, features.groups, candidates)
        posterior.add(points, noise)
        return cls(hyperparameters, posterior, list(known), len(known))

    def extend(self, code: int, point: Array) -> None:
        """Condition on one more outcome at a point [1, columns]."""
        self.posterior.add(point, np.full(1, FEASIBILITY_NOISE))
        self.codes.append(code)

    def log_probability(self, history: History) -> Array:
        """Log probability [m] that a candidate can be measured."""
        return _log_share(self.posterior.mean(self._whitened(history)))

    def log_probability_at(self, points: Array, history: History) -> Array:
        """The same for points [k, columns] that are no candidates."""
        return _log_share(self.posterior.predict(points, self._whitened(history))[0])

    def _whitened(self, history: History) -> Array:
        return self.posterior.whiten(_labels(history.feasible(), self.codes))


def _labels(feasible: Mapping[int, bool], codes: Sequence[int]) -> Array:
    """Targets [n]: +1 and -1, less the mean that stands where nothing is known."""
    return np.array([(1.0 if feasible[code] else -1.0) - OPTIMISM for code in codes])


def _log_share(mean: Single) -> Array:
    share = (OPTIMISM + mean.astype(np.float64) + 1) / 2
    return np.asarray(np.log(np.clip(share, LEAST_FEASIBLE, 1.0)))
