"""The surrogate's belief over a fixed set of candidates, updated in place as points are added.

With ``K = L L^T`` over the points and ``V = L^-1 k(points, candidates)``: mean ``V^T L^-1 y``, variance
``signal - sum V^2``. One more point is one more row of ``L`` and ``V``: O(points x candidates) instead of a new
factorisation. A point whose target is unknown (asked, not told) is fantasised at its posterior mean, which leaves all
means as they are and only takes variance away (the kriging believer of Ginsbourger et al. 2010).
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, cholesky, solve_triangular

from kernelwright.optimiser.gaussian_process import JITTER, Array, Hyperparameters, matern52

Single = npt.NDArray[np.float32]
BLOCK = 2048
SPARE = 32


class Posterior:
    """Belief over candidates [m, columns] given points; single precision where there are many numbers."""

    def __init__(
        self, hyperparameters: Hyperparameters, groups: npt.NDArray[np.intp], candidates: Array
    ) -> None:
        self._hyper = hyperparameters
        self._weights = 1.0 / hyperparameters.length_scales[groups]
        self._candidates = self._single(candidates)
        self._norms = _norms(self._candidates)
        self._points: Array = np.zeros((0, candidates.shape[1]))
        self._factor: Array = np.zeros((0, 0))
        self._whitened: Single = np.empty((SPARE, len(candidates)), dtype=np.float32)
        self.variance: Single = np.full(len(candidates), hyperparameters.signal, dtype=np.float32)

    def __len__(self) -> int:
        return len(self._points)

    def _single(self, points: Array) -> Single:
        return np.ascontiguousarray(points * self._weights, dtype=np.float32)

    def _kernel(self, a: npt.NDArray[Any], b: npt.NDArray[Any], norms: npt.NDArray[Any]) -> npt.NDArray[Any]:
        squared = np.einsum("ij,ij->i", a, a)[:, None] + norms[None, :] - 2 * (a @ b.T)
        return np.asarray(matern52(np.maximum(squared, 0, out=squared)) * self._hyper.signal)

    def add(self, points: Array, extra_noise: Array) -> None:
        """Condition on points [k, columns] with noise variances [k] beyond the fitted one."""
        added = points * self._weights
        own = self._kernel(added, added, _norms(added))
        own.flat[:: len(own) + 1] = self._hyper.signal + self._hyper.noise + JITTER + extra_noise
        left = np.zeros((0, len(added)))
        if len(self):
            old = self._kernel(self._points, added, _norms(added))
            left = solve_triangular(self._factor, old, lower=True, check_finite=False)
            own -= left.T @ left
            own.flat[:: len(own) + 1] = np.maximum(np.diag(own), JITTER)
        corner = cholesky(own, lower=True, check_finite=False)
        self._extend_candidates(self._single(points), left.astype(np.float32), corner.astype(np.float32))
        self._factor = np.block([[self._factor, np.zeros((len(self), len(added)))], [left.T, corner]])
        self._points = np.concatenate([self._points, added])

    def _extend_candidates(self, added: Single, left: Single, corner: Single) -> None:
        """New rows of ``V``, block by block: what is computed of one block of candidates stays in the cache."""
        n, m = len(self), len(self._candidates)
        if n + len(added) > len(self._whitened):
            grown = np.empty((2 * n + len(added) + SPARE, m), dtype=np.float32)
            grown[:n] = self._whitened[:n]
            self._whitened = grown
        factor = np.asfortranarray(corner)
        for start in range(0, m, BLOCK):
            block = slice(start, start + BLOCK)
            cross = self._kernel(added, self._candidates[block], self._norms[block])
            if n:
                cross -= left.T @ self._whitened[:n, block]
            # V^T = cross^T L^-T on the transposed view: no copy into Fortran order
            solved = blas.strsm(1.0, factor, cross.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
            self._whitened[n : n + len(added), block] = solved
            self.variance[block] -= np.square(solved, out=solved).sum(axis=0)

    def whiten(self, targets: Array) -> Array:
        """``L^-1 y`` for targets [n]; nan stands for a target that is not known yet."""
        if not np.isnan(targets).any():
            return np.asarray(solve_triangular(self._factor, targets, lower=True, check_finite=False))
        whitened = np.zeros(len(targets))
        for i, target in enumerate(targets):
            if not np.isnan(target):
                whitened[i] = (target - self._factor[i, :i] @ whitened[:i]) / self._factor[i, i]
        return whitened

    def mean(self, whitened: Array) -> Single:
        """Means [m] of the candidates."""
        return np.asarray(whitened.astype(np.float32) @ self._whitened[: len(self)])

    def predict(self, points: Array, whitened: Array) -> tuple[Single, Single]:
        """Means and variances of other points [k, columns]."""
        scaled = self._single(points)
        cross = self._kernel(self._points.astype(np.float32), scaled, _norms(scaled))
        rows = solve_triangular(self._factor.astype(np.float32), cross, lower=True, check_finite=False)
        variance: Any = self._hyper.signal - np.einsum("ij,ij->j", rows, rows)
        return np.asarray(whitened.astype(np.float32) @ rows), np.asarray(variance)

    def draws(self, points: Array, whitened: Array, rng: np.random.Generator, n: int) -> Array:
        """Functions [n, k] drawn from the belief at points [k, columns]."""
        scaled = points * self._weights
        cross = self._kernel(self._points, scaled, _norms(scaled))
        rows = solve_triangular(self._factor, cross, lower=True, check_finite=False)
        covariance = self._kernel(scaled, scaled, _norms(scaled)) - rows.T @ rows
        covariance.flat[:: len(covariance) + 1] += 1e-4 * self._hyper.signal
        factor = cholesky(covariance, lower=True, check_finite=False)
        return np.asarray(whitened @ rows + rng.standard_normal((n, len(points))) @ factor.T)


def _norms(points: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(np.einsum("ij,ij->i", points, points))
