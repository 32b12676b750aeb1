"""Gaussian process regression with one length scale per feature group, fitted by maximum a posteriori.

Matern-5/2 kernel (Rasmussen & Williams 2006, eq. 4.17) on standardised targets; hyperparameters from the marginal
likelihood (eq. 5.9) and log-normal priors, by L-BFGS with analytic gradients.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, lapack
from scipy.optimize import minimize

Array = npt.NDArray[np.float64]
JITTER = 1e-5
SIGNAL_PRIOR = (0.0, 1.0)
NOISE_PRIOR = (-7.0, 1.5)
"""Mean and standard deviation of the logarithms of the variances."""
_ROOT5 = float(np.sqrt(5.0))
_FAILED = 1e10


@dataclass(frozen=True)
class Hyperparameters:
    """``length_scales`` [groups]; ``signal`` and ``noise`` are variances in units of the standardised target."""

    length_scales: Array
    signal: float
    noise: float

    @property
    def vector(self) -> Array:
        """Logarithms: length scales, signal, noise."""
        return np.concatenate([np.log(self.length_scales), [np.log(self.signal), np.log(self.noise)]])

    @classmethod
    def of(cls, vector: Array) -> "Hyperparameters":
        """Inverse of :attr:`vector`."""
        return cls(np.exp(vector[:-2]), float(np.exp(vector[-2])), float(np.exp(vector[-1])))


def matern52(squared: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Correlation at squared scaled distances."""
    distance = _ROOT5 * np.sqrt(squared)
    polynomial = (5 / 3) * squared
    polynomial += distance
    polynomial += 1
    np.negative(distance, out=distance)
    return np.asarray(np.multiply(polynomial, np.exp(distance, out=distance), out=polynomial))


@dataclass(frozen=True)
class Evidence:
    """Negative log posterior of hyperparameters for data: points [n, columns], targets [n], extra noise [n]."""

    points: Array
    targets: Array
    extra_noise: Array
    groups: npt.NDArray[np.intp]
    length_priors: Array

    @cached_property
    def pairs(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Indices of the upper triangle."""
        rows, columns = np.triu_indices(len(self.points), 1)
        return rows, columns

    @cached_property
    def distances(self) -> Array:
        """Squared distances [groups, pairs]."""
        rows, columns = self.pairs
        squares = (self.points[rows] - self.points[columns]) ** 2
        membership = np.zeros((len(self.groups), len(self.length_priors)))
        membership[np.arange(len(self.groups)), self.groups] = 1.0
        return np.ascontiguousarray((squares @ membership).T)

    @cached_property
    def _prior_moments(self) -> tuple[Array, Array]:
        moments = np.vstack([self.length_priors, SIGNAL_PRIOR, NOISE_PRIOR])
        return moments[:, 0], moments[:, 1]

    @property
    def start(self) -> Array:
        """The prior's mean."""
        return self._prior_moments[0]

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """Value and gradient (constants left out)."""
        n, scales = len(self.points), len(vector) - 2
        weights, signal, noise = np.exp(-2 * vector[:scales]), np.exp(vector[-2]), np.exp(vector[-1])
        squared = weights @ self.distances
        distance = np.sqrt(squared)
        decay = np.exp(-_ROOT5 * distance)
        correlation = (1 + _ROOT5 * distance + (5 / 3) * squared) * decay
        covariance = np.zeros((n, n))
        covariance[self.pairs] = signal * correlation
        covariance.flat[:: n + 1] = signal + noise + JITTER + self.extra_noise
        factor, failed = lapack.dpotrf(covariance, lower=0)
        if failed:
            return _FAILED, np.zeros_like(vector)
        solved = cho_solve((factor, False), self.targets)
        value = 0.5 * self.targets @ solved + np.log(np.diag(factor)).sum()
        inverse, _ = lapack.dpotri(factor, lower=0)
        off = inverse[self.pairs] - solved[self.pairs[0]] * solved[self.pairs[1]]
        diagonal = (np.diag(inverse) - solved**2).sum()
        gradient = np.empty_like(vector)
        gradient[:scales] = (
            signal * weights * (self.distances @ (off * (5 / 3) * (1 + _ROOT5 * distance) * decay))
        )
        gradient[-2] = signal * (off @ correlation + 0.5 * diagonal)
        gradient[-1] = 0.5 * noise * diagonal
        mean, deviation = self._prior_moments
        pull = (vector - mean) / deviation
        return float(value + 0.5 * pull @ pull), gradient + pull / deviation


def fit(evidence: Evidence, start: Hyperparameters | None, iterations: int = 25) -> Hyperparameters:
    """Most probable hyperparameters, searched from ``start`` (the prior's mean without one)."""
    vector = evidence.start if start is None else start.vector
    bounds = [(-3.5, 4.0)] * (len(vector) - 2) + [(-3.0, 3.0), (-12.0, 0.0)]
    found = minimize(
        evidence, vector, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations}
    )
    return Hyperparameters.of(found.x)
