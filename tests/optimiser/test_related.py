"""Warm start: a related space shortens the search, an unrelated one is ignored, odd results do no harm."""

import numpy as np

from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Status
from kernelwright.core.space import SearchSpace, Tunable
from kernelwright.optimiser import RelatedResult, make_optimiser
from kernelwright.optimiser.base import Observation
from kernelwright.optimiser.features import make_features
from kernelwright.optimiser.related import make_trend

POWERS = (1, 2, 4, 8, 16, 32, 64, 128)
SPACE = SearchSpace(tuple(Tunable(name, POWERS) for name in "abcd"))


def time_of(c: Configuration, shift: float = 0.0) -> float:
    return float(
        np.exp(
            sum(
                0.4 * (np.log2(float(c[n])) - w - shift) ** 2
                for n, w in zip("abcd", (6, 1, 5, 2), strict=True)
            )
            ** 0.5
        )
    )


def related(n: int, shift: float = 0.0) -> list[RelatedResult]:
    rng = np.random.default_rng(0)
    chosen = [SPACE.configuration(int(i)) for i in rng.choice(len(SPACE), n, replace=False)]
    return [RelatedResult(c, 7.5 * time_of(c, shift)) for c in chosen]


def best_after(n: int, warm: list[RelatedResult]) -> float:
    optimiser = make_optimiser(SPACE, 3, warm)
    times = []
    for _ in range(n):
        (suggestion,) = optimiser.ask()
        times.append(time_of(suggestion.configuration))
        optimiser.tell(suggestion.configuration, Observation(times[-1], Status.MEASURED))
    return min(times)


def test_a_related_space_shortens_the_search() -> None:
    cold = best_after(8, [])
    assert best_after(8, related(100, shift=0.3)) < 0.7 * cold


def test_a_misleading_space_only_delays() -> None:
    rng = np.random.default_rng(1)
    noise = [RelatedResult(r.configuration, float(rng.uniform(1, 100))) for r in related(100)]
    assert best_after(40, noise) < 1.6


def test_results_are_placed_by_what_both_spaces_have() -> None:
    features = make_features(SPACE, SPACE.indices)
    foreign = [RelatedResult(Configuration({"z": i, "y": 1}), 1.0) for i in range(20)]
    assert make_trend(features, foreign) is None
    assert make_trend(features, related(5)) is None
    partial = [
        RelatedResult(
            Configuration({"a": 3 * r.configuration["a"], "b": r.configuration["b"], "e": 1}), r.value
        )
        for r in related(60)
    ]
    trend = make_trend(features, [*partial, RelatedResult(SPACE.configuration(0), float("nan"))])
    assert trend is not None
    assert np.isfinite(trend.at(features.points(SPACE.indices[:50]))).all()
