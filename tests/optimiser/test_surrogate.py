"""The numbers under the optimiser: gradients, conditioning, fantasies, acquisition, feasibility."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from kernelwright.core.expressions import parse
from kernelwright.core.outcome import Status
from kernelwright.core.space import Constraint, SearchSpace, Tunable
from kernelwright.optimiser.acquisition import log_expected_improvement
from kernelwright.optimiser.base import Observation
from kernelwright.optimiser.candidates import all_or_sample
from kernelwright.optimiser.features import make_features, unevenness
from kernelwright.optimiser.gaussian_process import Evidence, Hyperparameters, fit, matern52
from kernelwright.optimiser.history import History
from kernelwright.optimiser.posterior import Posterior
from kernelwright.optimiser.surrogate import FeasibilityModel

RNG = np.random.default_rng(0)
GROUPS = np.array([0, 1, 2, 2, 2])
PRIORS = np.array([[0.0, 1.0]] * 3)


def test_the_gradient_of_the_evidence_is_right() -> None:
    points, targets = RNG.random((20, 5)), RNG.standard_normal(20)
    evidence = Evidence(points, targets, np.full(20, 0.01), GROUPS, PRIORS)
    vector = evidence.start + 0.3 * RNG.standard_normal(5)
    _, gradient = evidence(vector)
    steps = 1e-5 * np.eye(5)
    numeric = [(evidence(vector + step)[0] - evidence(vector - step)[0]) / 2e-5 for step in steps]
    assert gradient == pytest.approx(numeric, rel=1e-5, abs=1e-6)


def test_fitting_finds_the_column_that_matters() -> None:
    points = RNG.random((60, 3))
    evidence = Evidence(points, np.sin(6 * points[:, 1]), np.zeros(60), np.arange(3), PRIORS)
    scales = fit(evidence, None).length_scales
    assert scales[1] < 0.5 * min(scales[0], scales[2])


def exact(
    points: np.ndarray, targets: np.ndarray, noise: np.ndarray, at: np.ndarray, h: Hyperparameters
) -> tuple[np.ndarray, np.ndarray]:
    weights = 1 / h.length_scales[GROUPS]

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return h.signal * matern52((((a[:, None] - b[None]) * weights) ** 2).sum(axis=2))

    inverse = np.linalg.inv(kernel(points, points) + np.diag(h.noise + 1e-5 + noise))
    cross = kernel(at, points)
    return cross @ inverse @ targets, h.signal - np.einsum("ij,jk,ik->i", cross, inverse, cross)


def test_conditioning_in_steps_equals_the_closed_form() -> None:
    points, targets, at = RNG.random((24, 5)), RNG.standard_normal(24), RNG.random((50, 5))
    noise = 0.05 * RNG.random(24)
    h = Hyperparameters(np.array([0.4, 0.8, 1.5]), 1.3, 0.01)
    posterior = Posterior(h, GROUPS, at)
    for part in (slice(0, 10), slice(10, 11), slice(11, 24)):
        posterior.add(points[part], noise[part])
    mean, variance = exact(points, targets, noise, at, h)
    whitened = posterior.whiten(targets)
    assert posterior.mean(whitened) == pytest.approx(mean, abs=2e-3)
    assert posterior.variance == pytest.approx(variance, abs=2e-3)
    other_mean, other_variance = posterior.predict(at[:7], whitened)
    assert other_mean == pytest.approx(mean[:7], abs=2e-3)
    assert other_variance == pytest.approx(variance[:7], abs=2e-3)
    draws = posterior.draws(at, whitened, np.random.default_rng(0), 4000)
    assert draws.mean(axis=0) == pytest.approx(mean, abs=0.08)
    assert draws.std(axis=0) == pytest.approx(np.sqrt(variance), abs=0.08)


def test_a_pending_point_takes_variance_and_leaves_means() -> None:
    points, targets, at = RNG.random((10, 5)), RNG.standard_normal(10), RNG.random((30, 5))
    h = Hyperparameters(np.array([0.4, 0.8, 1.5]), 1.0, 0.01)
    posterior = Posterior(h, GROUPS, at)
    posterior.add(points, np.zeros(10))
    mean, variance = posterior.mean(posterior.whiten(targets)), posterior.variance.copy()
    posterior.add(at[:1], np.zeros(1))
    assert posterior.mean(posterior.whiten(np.append(targets, np.nan))) == pytest.approx(mean, abs=1e-4)
    assert posterior.variance[0] < 0.1 * variance[0]
    assert (posterior.variance <= variance + 1e-6).all()


@pytest.mark.parametrize("mean", [-1.0, 0.0, 2.0, 7.0])
def test_expected_improvement_is_the_integral(mean: float) -> None:
    value = log_expected_improvement(np.array([mean]), np.array([1.0]), 0.0)[0]
    integral, _ = quad(lambda f: -f * norm.pdf(f, mean), -40, 0, epsabs=0)
    assert value == pytest.approx(np.log(integral), abs=0.06)


def test_expected_improvement_orders_hopeless_candidates() -> None:
    values = log_expected_improvement(np.array([5.9, 6.1, 50.0, 500.0]), np.full(4, 1.0), 0.0)
    assert np.isfinite(values).all()
    assert (np.diff(values) < 0).all()


def test_features_know_alignment_names_and_quantities() -> None:
    space = SearchSpace(
        (
            Tunable("bx", (32, 48, 64, 80, 96)),
            Tunable("by", (1, 2, 4)),
            Tunable("method", (0, 1, 2)),
            Tunable("layout", ("a", "b", "c")),
            Tunable("fast", (False, True)),
        ),
        (Constraint("threads", parse("bx * by <= 256")),),
    )
    features = make_features(space, space.indices)
    points = features.points(space.indices)
    # bx: scale, alignment, power of two, five values; by: scale, three values; method: the same; layout: three; fast
    assert points.shape == (len(space), (3 + 5) + (1 + 3) + (1 + 3) + 3 + 1 + 1)
    assert features.scales == 4 + 2 + 2 + 1 + 1 + 1
    assert features.length_priors.shape == (features.scales, 2)
    assert points[:, :3].min() == 0
    assert points.max() == pytest.approx(1)
    aligned = {space.configuration(i)["bx"]: points[i, 1] for i in range(len(space))}
    assert aligned[64] > aligned[32] == aligned[96] > aligned[48] == aligned[80]
    power = {space.configuration(i)["bx"]: points[i, 2] for i in range(len(space))}
    assert power == {32: 1, 48: 0, 64: 1, 80: 0, 96: 0}
    assert sorted(set(unevenness(space, space.indices))) == [0, 1]


def test_feasibility_is_learned() -> None:
    values = tuple(range(1, 33))
    space = SearchSpace((Tunable("a", values), Tunable("b", values)))
    rng = np.random.default_rng(0)
    candidates = all_or_sample(space, rng)
    features = make_features(space, candidates.rows)
    history = History()
    for i in rng.permutation(len(candidates.rows))[:60]:
        status = Status.LAUNCH_FAILED if candidates.rows[i, 0] > 16 else Status.MEASURED
        history.tell(int(candidates.codes[i]), candidates.rows[i], Observation(1.0, status))
    model = FeasibilityModel.fitted(features, features.points(candidates.rows), history, None)
    probability = np.exp(model.log_probability(history))
    fails = candidates.rows[:, 0] > 16
    assert probability[fails].mean() < 0.25
    assert probability[~fails].mean() > 0.75
    assert np.log(probability[:5]) == pytest.approx(
        model.log_probability_at(features.points(candidates.rows[:5]), history), abs=1e-3
    )
