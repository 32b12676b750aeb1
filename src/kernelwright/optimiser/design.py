"""The first configurations: spread over the valid ones, before there is anything to learn from."""

import numpy as np

from kernelwright.core.space import Rows
from kernelwright.optimiser.features import FeatureMap

SUBSET = 500


def space_filling(features: FeatureMap, rows: Rows, n: int, rng: np.random.Generator) -> list[int]:
    """Positions in ``rows`` [m, d] of ``n`` points, each far from the ones before (randomised maximin)."""
    subset = rng.permutation(len(rows))[:SUBSET]
    points = features.points(rows[subset])[:, list(features.scale_columns)]
    chosen = [0]
    nearest = ((points - points[0]) ** 2).sum(axis=1)
    while len(chosen) < min(n, len(subset)):
        following = int(np.argmax(nearest * rng.uniform(0.7, 1.0, len(subset))))
        chosen.append(following)
        nearest = np.minimum(nearest, ((points - points[following]) ** 2).sum(axis=1))
    return [int(subset[i]) for i in dict.fromkeys(chosen)]
