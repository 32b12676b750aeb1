"""Warm start: what is known of related spaces (a parent template, another device) as a trend of the log time.

A surrogate of the related results predicts log times up to a constant; the optimiser's own surrogate then learns the
difference, and its evidence says how far the trend is believed (not at all is one of the choices).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelwright.core.configuration import Configuration, Value
from kernelwright.core.space import Rows, SearchSpace, Tunable
from kernelwright.optimiser.base import RelatedResult
from kernelwright.optimiser.features import FeatureMap
from kernelwright.optimiser.gaussian_process import Array, Evidence, fit
from kernelwright.optimiser.posterior import Posterior

LEAST = 8
MOST = 150
BELIEFS = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Trend:
    """Predicted log time up to a constant."""

    posterior: Posterior
    whitened: Array
    scale: float

    def at(self, points: Array) -> Array:
        """Log times [k] at points [k, columns]; 0 is the mean of the related results."""
        return self.scale * self.posterior.predict(points, self.whitened)[0].astype(np.float64)


def make_trend(features: FeatureMap, related: Sequence[RelatedResult]) -> Trend | None:
    """Trend over a space; None when too few results can be placed in it.

    A result is placed by the tunables that both spaces have: at the nearest value, or in the middle where the
    related space lacks the tunable. It needs half of the tunables to be shared.
    """
    placed = [
        (row, r.value)
        for r in _spread(related)
        if (row := _place(features.space, r.configuration)) is not None
    ]
    if len(placed) < LEAST:
        return None
    logs = np.log([value for _, value in placed])
    scale = max(float(logs.std()), 1e-6)
    points = features.points(np.stack([row for row, _ in placed]))
    noise = np.zeros(len(placed))
    targets = (logs - logs.mean()) / scale
    hyperparameters = fit(Evidence(points, targets, noise, features.groups, features.length_priors), None)
    posterior = Posterior(hyperparameters, features.groups, points[:0])
    posterior.add(points, noise)
    return Trend(posterior, posterior.whiten(targets), scale)


def _spread(related: Sequence[RelatedResult]) -> list[RelatedResult]:
    """At most ``MOST`` usable results: the faster half of that, and the rest evenly."""
    usable = sorted((r for r in related if r.value > 0 and np.isfinite(r.value)), key=lambda r: r.value)
    if len(usable) <= MOST:
        return usable
    rest = usable[MOST // 2 :]
    places = np.linspace(0, len(rest) - 1, MOST - MOST // 2).astype(int)
    return usable[: MOST // 2] + [rest[i] for i in places]


def _place(space: SearchSpace, configuration: Configuration) -> Rows | None:
    row = np.zeros(len(space.tunables), dtype=np.uint16)
    shared = 0
    for axis, tunable in enumerate(space.tunables):
        index = _nearest(tunable, configuration[tunable.name]) if tunable.name in configuration else None
        shared += index is not None
        row[axis] = len(tunable.values) // 2 if index is None else index
    return row if 2 * shared >= len(space.tunables) and shared else None


def _nearest(tunable: Tunable, value: Value) -> int | None:
    if value in tunable.values:
        return tunable.values.index(value)
    if isinstance(value, str) or any(isinstance(v, str) for v in tunable.values):
        return None
    return int(np.argmin([abs(float(v) - value) for v in tunable.values]))
