"""Which tunables matter, and which only together: a variance decomposition of the surrogate.

Shares of the variance over the valid configurations as in functional ANOVA (Hutter, Hoos & Leyton-Brown 2014),
computed on draws from the posterior, so that every share has an uncertainty. Constraints couple tunables, so the
shares need not add up to one.
"""

from itertools import combinations

import numpy as np
import numpy.typing as npt

from kernelwright.core.space import Rows
from kernelwright.optimiser.base import Analysis, Importance
from kernelwright.optimiser.candidates import Candidates
from kernelwright.optimiser.features import FeatureMap
from kernelwright.optimiser.gaussian_process import Array
from kernelwright.optimiser.history import History
from kernelwright.optimiser.surrogate import SpeedModel

SUBSET = 1000
DRAWS = 24


def analyse(
    features: FeatureMap, candidates: Candidates, speed: SpeedModel | None, history: History
) -> Analysis:
    """Shares of tunables and pairs; empty while there is no surrogate."""
    told = len(history.log_times())
    if speed is None:
        return Analysis(told, (), ())
    rng = np.random.default_rng(told)
    rows = candidates.rows[rng.permutation(len(candidates.rows))[:SUBSET]]
    draws = speed.posterior.draws(features.points(rows), speed.whitened(history), rng, DRAWS)
    total = np.maximum(draws.var(axis=1), 1e-12)
    axes = [axis for axis, size in enumerate(features.space.shape) if size > 1]
    names = features.space.names
    single = {axis: _explained(draws, rows[:, [axis]]) / total for axis in axes}
    importance = [_summary((names[axis],), shares) for axis, shares in single.items()]
    interactions = [
        _summary((names[a], names[b]), _explained(draws, rows[:, [a, b]]) / total - single[a] - single[b])
        for a, b in combinations(axes, 2)
    ]
    return Analysis(told, _sorted(importance), _sorted(interactions))


def _explained(draws: Array, keys: Rows) -> Array:
    """Variance [draws] of the means over groups of rows with equal keys [n, k], without what chance explains."""
    _, group, sizes = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    membership = np.zeros((len(sizes), len(keys)))
    membership[group.ravel(), np.arange(len(keys))] = 1.0
    means = (draws @ membership.T) / sizes
    weights = sizes / len(keys)
    centred = means - draws.mean(axis=1, keepdims=True)
    between = (weights * centred**2).sum(axis=1)
    within = np.maximum(draws.var(axis=1) - between, 0)
    by_chance = within * (len(sizes) - 1) / max(len(keys) - len(sizes), 1)
    explained: npt.NDArray[np.float64] = np.maximum(between - by_chance, 0)
    return explained


def _summary(names: tuple[str, ...], shares: Array) -> Importance:
    return Importance(names, float(max(shares.mean(), 0.0)), float(shares.std()))


def _sorted(entries: list[Importance]) -> tuple[Importance, ...]:
    return tuple(sorted(entries, key=lambda entry: -entry.share))
