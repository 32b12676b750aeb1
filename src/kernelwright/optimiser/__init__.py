"""Tuning numbers: ask and tell over the valid configurations of a template."""

from collections.abc import Sequence

from kernelwright.core.space import SearchSpace
from kernelwright.optimiser.base import Optimiser, RelatedResult

__all__ = ["RelatedResult", "make_optimiser"]


def make_optimiser(space: SearchSpace, seed: int, related: Sequence[RelatedResult] = ()) -> Optimiser:
    """The project's optimiser; ``related`` results of other templates or devices are its warm start.

    Raises PlanError when the space is empty.
    """
    # Only who tunes loads SciPy, which takes longer than all else that a command loads.
    from kernelwright.optimiser.bayesian import BayesianOptimiser

    return BayesianOptimiser(space, seed, related)
