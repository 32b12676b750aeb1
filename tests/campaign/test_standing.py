"""The incumbent under the objective's rules."""

from kernelwright.campaign.standing import Standing
from kernelwright.core.objective import Objective, ObjectiveName


def standing(name: str = "seed") -> Standing:
    return Standing(Objective(ObjectiveName(name)))


def test_the_better_score_leads() -> None:
    board = standing()
    assert board.add(1, "base", {"a": 2.0, "b": 4.0})
    assert board.add(2, "faster", {"a": 1.9, "b": 2.0})
    assert not board.add(3, "slower", {"a": 1.9, "b": 2.1})
    assert board.incumbent is not None
    assert board.incumbent.candidate == "faster"


def test_a_candidate_that_sacrifices_a_size_never_leads_under_seed() -> None:
    board = standing()
    board.add(1, "base", {"a": 1.0, "b": 4.0})
    assert not board.add(2, "greedy", {"a": 1.4, "b": 1.0})
    assert board.incumbent is not None
    assert board.incumbent.candidate == "base"
    assert board.add(3, "balanced", {"a": 1.0, "b": 1.2})


def test_geomean_lets_it_lead() -> None:
    board = standing("geomean")
    board.add(1, "base", {"a": 1.0, "b": 4.0})
    assert board.add(2, "greedy", {"a": 1.4, "b": 1.0})


def test_a_leader_that_a_new_best_case_makes_ineligible_gives_way_to_an_eligible_one() -> None:
    board = standing()
    board.add(1, "base", {"a": 1.0, "b": 4.0})
    board.add(2, "middle", {"a": 1.0, "b": 3.5})
    assert board.add(3, "other", {"a": 1.1, "b": 2.5})
    assert board.incumbent is not None
    assert board.incumbent.candidate == "other"


def test_there_is_always_a_leader() -> None:
    board = standing()
    board.add(1, "left", {"a": 1.0, "b": 4.0})
    board.add(2, "right", {"a": 4.0, "b": 1.0})
    assert board.incumbent is not None
    assert board.incumbent.candidate == "left"


def test_equal_scores_keep_the_older() -> None:
    board = standing()
    board.add(1, "first", {"a": 1.0})
    assert not board.add(2, "second", {"a": 1.0})
