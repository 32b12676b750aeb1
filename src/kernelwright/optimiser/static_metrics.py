"""What the compiler says (registers, spills, shared memory, occupancy, size of code) as further columns.

They are known only for configurations that were compiled, so they cannot rank all candidates; but they say of a
compiled one whether its run is worth the device's time.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from kernelwright.core.outcome import StaticMetrics
from kernelwright.optimiser.features import FeatureMap
from kernelwright.optimiser.gaussian_process import Array, Evidence, Hyperparameters, fit
from kernelwright.optimiser.history import History
from kernelwright.optimiser.posterior import Posterior

LEAST = 12
NOISE_FLOOR = 1e-4
LENGTH_PRIOR = (0.0, 1.0)


def static_columns(static: StaticMetrics) -> Array:
    """Numbers [6] on scales where equal steps mean about equally much; nan where unknown."""
    kernels = static.kernels
    shared = [(k.static_shared_bytes or 0) + (k.dynamic_shared_bytes or 0) for k in kernels]
    stacks = [k.stack_bytes for k in kernels if k.stack_bytes is not None]
    occupancies = [k.theoretical_occupancy for k in kernels if k.theoretical_occupancy is not None]
    return np.array(
        [
            _log2(static.registers),
            _log2(static.spill_bytes),
            _log2(sum(stacks) if stacks else None),
            _log2(max(shared) if shared else None),
            min(occupancies) if occupancies else np.nan,
            _log2(static.code_bytes),
        ]
    )


def _log2(value: float | None) -> float:
    return float("nan") if value is None else float(np.log2(1 + value))


@dataclass(frozen=True)
class StaticModel:
    """Belief about log times from tunables and the compiler's numbers together."""

    features: FeatureMap
    posterior: Posterior
    whitened: Array
    hyperparameters: Hyperparameters
    usable: npt.NDArray[np.bool_]
    low: Array
    width: Array
    centre: float
    scale: float
    observations: int

    @classmethod
    def fitted(cls, features: FeatureMap, history: History) -> "StaticModel | None":
        """Fit to what was told and compiled; None while that is too little or says nothing."""
        known = {code: entry for code, entry in history.log_times().items() if code in history.statics}
        if len(known) < LEAST:
            return None
        columns = np.stack([static_columns(history.statics[code]) for code in known])
        usable = np.array([not np.isnan(column).any() and np.ptp(column) > 0 for column in columns.T])
        if not usable.any():
            return None
        low = columns[:, usable].min(axis=0)
        width = np.ptp(columns[:, usable], axis=0)
        points = np.hstack([features.points(history.stacked(known)), (columns[:, usable] - low) / width])
        first = features.scales
        groups = np.concatenate([features.groups, np.arange(first, first + len(low))])
        priors = np.vstack([features.length_priors, [LENGTH_PRIOR] * len(low)])
        values = np.array([value for value, _ in known.values()])
        centre, scale = float(values.mean()), max(float(values.std()), 1e-6)
        targets, noise = (values - centre) / scale, np.full(len(values), NOISE_FLOOR)
        hyperparameters = fit(Evidence(points, targets, noise, groups, priors), None)
        posterior = Posterior(hyperparameters, groups, points[:0])
        posterior.add(points, noise)
        whitened = posterior.whiten(targets)
        return cls(
            features, posterior, whitened, hyperparameters, usable, low, width, centre, scale, len(known)
        )

    def chance(self, history: History, code: int, best: float) -> float | None:
        """Probability that a compiled configuration is faster than ``best`` (a log time); None without its numbers."""
        columns = static_columns(history.statics[code])[self.usable]
        if np.isnan(columns).any():
            return None
        point = np.concatenate(
            [self.features.points(history.rows[code][None])[0], (columns - self.low) / self.width]
        )
        mean, variance = self.posterior.predict(point[None], self.whitened)
        deviation = float(np.sqrt(max(float(variance[0]), 0.0) + self.hyperparameters.noise + NOISE_FLOOR))
        return float(ndtr(((best - self.centre) / self.scale - float(mean[0])) / deviation))
