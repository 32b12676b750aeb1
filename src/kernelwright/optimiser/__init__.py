"""Tuning numbers: ask and tell over the valid configurations of a template."""

from kernelwright.core.space import SearchSpace
from kernelwright.optimiser.base import Optimiser
from kernelwright.optimiser.bayesian import BayesianOptimiser

__all__ = ["make_optimiser"]


def make_optimiser(space: SearchSpace, seed: int) -> Optimiser:
    """The project's optimiser. Raises PlanError when the space is empty."""
    return BayesianOptimiser(space, seed)
