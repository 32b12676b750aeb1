"""Objectives: what is better, and whom a sacrificed size excludes."""

import pytest

from kernelwright.core.objective import Objective, ObjectiveName

TIMES = {"a": 1.0, "b": 4.0}


@pytest.mark.parametrize(
    ("name", "time", "cost"),
    [("seed", 2.5, 2.65), ("geomean", 2.0, 2.0), ("mean", 2.5, 2.5), ("last", 4.0, 4.0)],
)
def test_time_and_cost(name: str, time: float, cost: float) -> None:
    objective = Objective(ObjectiveName(name))
    assert objective.time(TIMES) == pytest.approx(time)
    assert objective.cost(TIMES) == pytest.approx(cost)
    assert objective.score(TIMES) == pytest.approx(-cost)


def test_only_seed_charges_for_compile_failures() -> None:
    assert Objective(ObjectiveName.SEED).score(TIMES, 2) == pytest.approx(-2.75)
    assert Objective(ObjectiveName.GEOMEAN).score(TIMES, 2) == pytest.approx(-2.0)


def test_seed_excludes_a_candidate_that_sacrifices_a_case_and_names_the_worst() -> None:
    best = {"a": 0.5, "b": 3.9}
    assert Objective(ObjectiveName.SEED).sacrificed_case(TIMES, best) == "a"
    assert Objective(ObjectiveName.SEED).sacrificed_case(TIMES, {"a": 0.8, "b": 3.9}) is None
    assert Objective(ObjectiveName.GEOMEAN).sacrificed_case(TIMES, best) is None
