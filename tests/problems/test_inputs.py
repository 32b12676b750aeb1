import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from kernelwright.problems.inputs import Distribution, draw, generator
from kernelwright.problems.loader import load_problem

ADAPTER: TypeAdapter[Distribution] = TypeAdapter(Distribution)
NAMES = ("normal", "uniform", "large", "tiny", "negative", "ties", "one_hot", "ends", "structured")


def sample(
    spec: object, shape: tuple[int, ...] = (64, 257), dtype: str = "float32", seed: int = 1
) -> np.ndarray:
    return draw(ADAPTER.validate_python(spec), generator(seed, "case", 0, "A"), shape, dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_distribution_is_finite_and_of_the_asked_type(name: str, dtype: str) -> None:
    values = sample(name, dtype=dtype)
    assert values.dtype == dtype
    assert values.shape == (64, 257)
    assert values.flags.c_contiguous
    assert np.isfinite(values).all()


def test_ends_are_all_that_counts() -> None:
    spec = {"distribution": "ends", "value": 3.0}
    vector = sample(spec, (1000,))
    assert np.flatnonzero(vector).tolist() == [0, 999]
    rows = sample(spec, (4, 20))
    assert (rows[:, [0, -1]] == 3).all()
    assert np.count_nonzero(rows) == 8
    bodies = sample(spec, (50, 4))  # short rows are records
    assert np.flatnonzero(bodies).tolist() == [0, 199]
    assert sample(spec, (1,)).tolist() == [3.0]


def test_distributions_are_what_they_say() -> None:
    normal = sample({"distribution": "normal", "mean": 5.0, "std": 2.0})
    assert abs(normal.mean() - 5) < 0.1
    assert abs(normal.std() - 2) < 0.1
    uniform = sample({"distribution": "uniform", "low": 2.0, "high": 3.0})
    assert uniform.min() >= 2
    assert uniform.max() <= 3
    assert np.abs(sample("large")).max() > 2000
    assert np.abs(sample("tiny")).max() < 1e-5
    assert sample("negative").max() <= -1
    assert set(np.unique(sample({"distribution": "ties", "levels": 3}))) == {0, 1, 2}
    one_hot = sample({"distribution": "one_hot", "value": 7.0})
    assert (one_hot.sum(axis=1) == 7).all()
    assert (np.count_nonzero(one_hot, axis=1) == 1).all()
    structured = sample("structured").ravel()
    assert (np.diff(structured) != 0).all()
    assert (sample({"distribution": "constant", "value": 3.0}) == 3).all()
    integers = sample({"distribution": "integers", "low": -5, "high": 6}, dtype="int64")
    assert set(np.unique(integers)) == set(range(-5, 6))


@pytest.mark.parametrize(
    "spec",
    ["gauss", {"distribution": "normal", "std": -1}, {"distribution": "ties", "levels": 0}, {"std": 1}, 7,
     {"distribution": "constant"}, {"distribution": "uniform", "low": float("inf")}],
)  # fmt: skip
def test_wrong_distributions_are_refused(spec: object) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(spec)


@given(st.integers(0, 2**64 - 1), st.integers(0, 50), st.sampled_from(NAMES))
@settings(max_examples=40, deadline=None)
def test_a_stream_is_its_seed(seed: int, index: int, name: str) -> None:
    distribution = ADAPTER.validate_python(name)

    def values(*parts: str | int) -> np.ndarray:
        return draw(distribution, generator(*parts), (3, 97), "float32")  # type: ignore[arg-type]

    first = values(seed, "M=1", index, "A")
    np.testing.assert_array_equal(first, values(seed, "M=1", index, "A"))
    if name in {"normal", "uniform", "large", "tiny", "negative", "ties"}:
        for other in (
            (seed ^ 1, "M=1", index, "A"),
            (seed, "M=2", index, "A"),
            (seed, "M=1", index + 1, "A"),
            (seed, "M=1", index, "B"),
        ):
            assert (values(*other) != first).any()


def test_input_sets_of_a_problem_differ_and_take_their_distributions_in_turn() -> None:
    problem = load_problem("softmax")
    case = problem.cases(slow=True)[0]
    sets = [problem.make_inputs(case, index, 11)["X"] for index in range(4)]
    again = problem.make_inputs(case, 1, 11)["X"]
    np.testing.assert_array_equal(sets[1], again)
    for index, values in enumerate(sets):
        for other in sets[index + 1 :]:
            assert (values != other).mean() > 0.99
    assert np.abs(sets[1]).max() > 100
    assert sets[2].max() <= -1
    assert abs(sets[3].std() - 1) < 0.1
    assert (problem.make_inputs(case, 0, 12)["X"] != sets[0]).mean() > 0.99
