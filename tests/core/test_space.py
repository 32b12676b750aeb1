"""Search spaces: enumeration equals brute force, large spaces are sampled, errors are clear."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import ExpressionError, PlanError
from kernelwright.core.expressions import parse
from kernelwright.core.space import Constraint, SearchSpace, Tunable


def space(
    tunables: dict[str, tuple[int | bool | str, ...]], *constraints: str, **more: object
) -> SearchSpace:
    return SearchSpace(
        tuple(Tunable(name, values) for name, values in tunables.items()),
        tuple(Constraint(f"c{i}", parse(text)) for i, text in enumerate(constraints)),
        **more,  # type: ignore[arg-type]
    )


GEMM = {"BM": (32, 64, 128), "BN": (32, 64, 128), "TM": (4, 8, 16), "VEC": (1, 2, 4), "fast": (False, True)}


def test_enumeration_is_lexicographic_and_invertible() -> None:
    s = space(GEMM, "BM % TM == 0", "32 <= TPB <= 256", derived=(("TPB", parse("BM / TM * BN / 8")),))
    expected = [
        dict(zip(GEMM, values, strict=True))
        for values in itertools.product(*GEMM.values())
        if (values[0] // values[2] * values[1]) % 8 == 0
        and 32 <= values[0] // values[2] * values[1] // 8 <= 256
    ]
    assert [dict(s.configuration(i)) for i in range(len(s))] == [dict(sorted(e.items())) for e in expected]
    assert all(s.index_of(s.configuration(i)) == i for i in range(len(s)))
    assert s.indices.dtype == np.uint8
    assert not s.indices.flags.writeable


def test_membership_names_the_violated_constraint() -> None:
    s = space({"a": (1, 2, 3), "b": (2, 3)}, "a < b", "b != 3", derived=(("h", parse("b / a")),))
    assert s.contains(Configuration({"a": 1, "b": 2}))
    assert s.violated(Configuration({"a": 3, "b": 2})) == "h"
    assert s.violated(Configuration({"a": 1, "b": 3})) == "c1"
    assert "not one of" in str(s.violated(Configuration({"a": 9, "b": 3})))
    assert "'b'" in str(s.violated(Configuration({"a": 1})))
    with pytest.raises(PlanError, match="c1"):
        s.index_of(Configuration({"a": 1, "b": 3}))


def test_an_inexact_division_makes_a_combination_invalid() -> None:
    s = space({"a": (1, 2, 3), "b": (4, 6)}, "b / a >= 2")
    assert [tuple(s.configuration(i).values()) for i in range(len(s))] == [
        (1, 4),
        (1, 6),
        (2, 4),
        (2, 6),
        (3, 6),
    ]


def test_constants_texts_and_a_space_without_tunables() -> None:
    s = space({"layout": ("nhwc", "nchw"), "a": (1, 2)}, "a <= limit", constants={"limit": 1})
    assert [c["layout"] for c in map(s.configuration, range(len(s)))] == ["nhwc", "nchw"]
    nothing = space({})
    assert len(nothing) == 1
    assert nothing.configuration(0) == Configuration()
    assert nothing.neighbours(nothing.indices[0]).shape == (0, 0)


def test_many_values_need_a_wider_index() -> None:
    s = space({"a": tuple(range(300)), "b": (0, 1)}, "a % 2 == b")
    assert s.indices.dtype == np.uint16
    assert len(s) == 300


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: space({"a": (1, 1)}), PlanError, "twice"),
        (lambda: space({"a": ()}), PlanError, "no values"),
        (lambda: len(space({"a": (1, 2)}, "a > 2")), PlanError, "'c0' \\(a > 2\\) holds for no"),
        (lambda: len(space({"a": (1, 2), "b": (1, 2)}, "a < b", "b < a")), PlanError, "no configuration"),
        (
            lambda: len(space({"a": (1, 2)}, "a > size")),
            ExpressionError,
            "unknown name 'size' \\(known: a\\)",
        ),
        (lambda: len(space({"a": ("x", "y")}, "a > 1")), PlanError, "text values"),
        (lambda: len(space({"a": (1, 2)}, "1 > 2")), PlanError, "'c0'"),
        (lambda: space({"a": (1, 2), "b": (1, 2)}, limit=3).indices, PlanError, "more than 3"),
    ],
)
def test_faults_are_plan_errors(build: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build()  # type: ignore[operator]


def test_a_million_constrained_configurations_in_two_seconds() -> None:
    values = tuple(range(1, 17))
    s = space(
        dict.fromkeys("abcdefg", values),
        "a*b*c <= 64",
        "c*d % e == 0",
        "(f+g) % 4 == 0",
        "a+b+c+d+e+f+g < 50",
    )
    start = time.process_time()
    assert len(s) == 1_693_286
    assert time.process_time() - start < 2  # 0.6 s on one core


def test_a_space_too_large_to_enumerate_is_sampled() -> None:
    values = tuple(range(1, 65))
    s = space(
        dict.fromkeys("abcdefghijkl", values), "a*b <= 64", "c % d == 0", "e + f + g == h", "i < j < k < l"
    )
    assert not s.enumerable
    rng = np.random.default_rng(0)
    rows = s.sample(rng, 500)
    assert len(np.unique(rows, axis=0)) == 500
    assert s.valid(rows).all()
    near = s.neighbours(rows[0])
    assert s.valid(near).all()
    assert ((near != rows[0]).sum(axis=1) == 1).all()
    assert np.array_equal(s.row_of(s.configuration_of(rows[3])), rows[3])
    assert len(np.unique(s.codes(rows))) == 500
    with pytest.raises(PlanError, match="more than"):
        len(s)


def test_sampling_an_enumerable_space_is_without_repetition() -> None:
    s = space({"a": (1, 2, 3), "b": (1, 2, 3)}, "a <= b")
    assert len(np.unique(s.sample(np.random.default_rng(1), 99), axis=0)) == len(s) == 6


CONSTRAINTS = st.lists(
    st.sampled_from(
        ["a % b == 0", "a*b*c <= 12", "a/b + c < 6", "c != 2 or d == 1", "a < c or d", "b + c > 3"]
    ),
    max_size=4,
    unique=True,
)


@settings(max_examples=100, deadline=None)
@given(CONSTRAINTS, st.lists(st.sets(st.integers(0, 6), min_size=1, max_size=4), min_size=4, max_size=4))
def test_enumeration_equals_brute_force(texts: list[str], values: list[set[int]]) -> None:
    tunables = {name: tuple(sorted(v)) for name, v in zip("abcd", values, strict=True)}
    expected = []
    for row in itertools.product(*(range(len(v)) for v in tunables.values())):
        known = {name: v[i] for (name, v), i in zip(tunables.items(), row, strict=True)}
        try:
            if all(parse(text).evaluate(known) for text in texts):
                expected.append(row)
        except ExpressionError:
            continue
    s = space(tunables, *texts)
    if not expected:
        with pytest.raises(PlanError, match=r"no con|no combination"):
            len(s)
    else:
        assert [tuple(row) for row in s.indices.tolist()] == expected


@pytest.mark.parametrize("condition", ["T0 + T1 > 0", "1 == 1"])
def test_very_many_tunables_are_counted_before_they_are_enumerated(condition: str) -> None:
    tunables = tuple(Tunable(f"T{i}", (0, 1)) for i in range(2000))
    space = SearchSpace(tunables, (Constraint("c", parse(condition)),))
    started = time.process_time()
    assert not space.enumerable
    assert time.process_time() - started < 2.0  # once over a minute
    with pytest.raises(PlanError, match="holds for no combination"):
        _ = SearchSpace(tunables, (Constraint("c", parse("T0 > 1")),)).enumerable


def test_tunables_that_no_rule_looks_at_multiply_what_the_others_leave() -> None:
    tunables = tuple(Tunable(name, (1, 2, 3)) for name in "abcd")
    assert len(SearchSpace(tuple(Tunable(f"T{i}", (7,)) for i in range(70)))) == 1
    constraints = (Constraint("c", parse("b < d")),)
    space = SearchSpace(tunables, constraints)
    rows = [row for row in itertools.product(range(3), repeat=4) if row[1] < row[3]]
    assert [tuple(row) for row in space.indices.tolist()] == rows
    assert SearchSpace(tunables, constraints, limit=len(rows)).enumerable
    assert not SearchSpace(tunables, constraints, limit=len(rows) - 1).enumerable
