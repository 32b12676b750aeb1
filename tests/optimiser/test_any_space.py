"""Any space, any outcomes: asks stay valid, new and finite."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.core.configuration import Value
from kernelwright.core.expressions import parse
from kernelwright.core.outcome import KernelStatics, StaticMetrics, Status
from kernelwright.core.space import Constraint, SearchSpace, Tunable
from kernelwright.optimiser import make_optimiser
from kernelwright.optimiser.base import Observation

NUMBERS = st.one_of(
    st.integers(-5, 300),
    st.sampled_from([0, 1, 2, 4, 8, 16, 32, 48, 64, 2**31]),
    st.floats(-2, 9).map(lambda x: round(x, 1)),
)
VALUES: st.SearchStrategy[list[Value]] = st.one_of(
    st.lists(NUMBERS, min_size=1, max_size=7, unique=True).map(list),
    st.just([False, True]),
    st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=4, unique=True).map(list),
    st.just(list(range(280))),
)
OUTCOMES = st.lists(
    st.tuples(
        st.sampled_from([Status.MEASURED] * 4 + [Status.COMPILE_FAILED, Status.NOT_RUN, Status.UNSTABLE]),
        st.floats(1e-6, 1e6),
    ),
    min_size=1,
    max_size=6,
)

# What is not enumerated has more configurations than are asked: a real limit is a million.
STEPS, LARGEST_BATCH = 14, 5
MOST_ASKED = STEPS * LARGEST_BATCH


@settings(max_examples=40, deadline=None)
@given(
    st.lists(VALUES, max_size=4), OUTCOMES, st.integers(0, 99), st.integers(1, LARGEST_BATCH), st.booleans()
)
def test_any_space(
    values: list[list[Value]], outcomes: list[tuple[Status, float]], seed: int, batch: int, small: bool
) -> None:
    tunables = tuple(Tunable(f"t{i}", tuple(v)) for i, v in enumerate(values))
    numeric = [t.name for t in tunables if not any(isinstance(v, str) for v in t.values)]
    constraints = tuple(
        Constraint(name, parse(f"{name} * 1 <= 2**40 and ({name} + 1) % 7 != 9")) for name in numeric
    )
    space = SearchSpace(tunables, constraints, limit=MOST_ASKED if small else 10_000)
    optimiser = make_optimiser(space, seed)
    asked = []
    for step in range(STEPS):
        for suggestion in optimiser.ask(batch if step % 3 == 0 else 1):
            configuration = suggestion.configuration
            assert space.contains(configuration)
            assert np.isfinite(suggestion.expected_improvement)
            asked.append(configuration)
            status, time = outcomes[len(asked) % len(outcomes)]
            static = StaticMetrics((KernelStatics("k", registers=len(asked)),))
            value = time if status is Status.MEASURED else None
            optimiser.tell(configuration, Observation(value, status, noise=0.01, static=static))
        assert optimiser.expected_gain(1.0) >= 0
    assert len(set(asked)) == len(asked)
    assert len(asked) >= (min(STEPS, len(space)) if space.enumerable else 1)
    for entry in optimiser.analysis().importance:
        assert np.isfinite(entry.share)
