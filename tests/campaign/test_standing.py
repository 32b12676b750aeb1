"""The incumbent under the objective's rules, duels and faults found later."""

from kernelwright.campaign.standing import Standing, median_errors
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.core.outcome import CaseTiming, Outcome, Status


def standing(name: str = "seed") -> Standing:
    return Standing(Objective(ObjectiveName(name)))


def leader(board: Standing) -> str:
    assert board.incumbent is not None
    return board.incumbent.candidate


def contender(board: Standing) -> str | None:
    found = board.contender()
    return found and found.candidate


def test_the_first_leads_and_a_better_score_only_challenges() -> None:
    board = standing()
    assert board.add(1, "base", {"a": 2.0, "b": 4.0})
    assert not board.add(2, "faster", {"a": 1.9, "b": 2.0})
    assert not board.add(3, "slower", {"a": 1.9, "b": 2.1})
    assert (leader(board), contender(board)) == ("base", "faster")
    board.promote("faster")
    assert (leader(board), contender(board)) == ("faster", None)


def test_a_loser_does_not_challenge_again_by_its_old_medians() -> None:
    board = standing()
    board.add(1, "base", {"a": 2.0})
    board.add(2, "lucky", {"a": 1.9})
    board.beat("lucky", "base")
    assert contender(board) is None
    board.add(3, "better", {"a": 1.95})
    assert contender(board) == "better"
    board.promote("better")
    assert (leader(board), contender(board)) == ("better", None)


def test_who_was_beaten_by_a_cheat_may_challenge_again() -> None:
    board = standing()
    board.add(1, "base", {"a": 2.0})
    board.add(2, "cheat", {"a": 1.0})
    board.promote("cheat")
    board.add(3, "honest", {"a": 0.99})
    board.beat("honest", "cheat")
    assert board.disqualify("cheat")
    assert (leader(board), contender(board)) == ("base", "honest")


def test_a_disqualified_leader_gives_way_to_the_one_before() -> None:
    board = standing()
    for number, time in enumerate((3.0, 2.0, 1.0)):
        board.add(number, f"c{number}", {"a": time})
        board.promote(f"c{number}")
    assert board.disqualify("c2")
    assert leader(board) == "c1"
    assert board.disqualify("c1")
    assert leader(board) == "c0"
    assert not board.disqualify("c0")
    assert leader(board) == "c0", "somebody has to lead"


def test_a_twin_never_challenges() -> None:
    board = standing()
    board.add(1, "base", {"a": 2.0})
    board.add(2, "first", {"a": 1.0})
    board.beat("first", "base")
    board.add(3, "second", {"a": 1.0}, twin=True)
    assert contender(board) is None


def test_a_candidate_that_sacrifices_a_size_never_challenges_under_seed() -> None:
    board = standing()
    board.add(1, "base", {"a": 1.0, "b": 4.0})
    board.add(2, "greedy", {"a": 1.4, "b": 1.0})
    assert contender(board) is None
    board.add(3, "balanced", {"a": 1.0, "b": 1.2})
    assert contender(board) == "balanced"


def test_geomean_lets_it_challenge() -> None:
    board = standing("geomean")
    board.add(1, "base", {"a": 1.0, "b": 4.0})
    board.add(2, "greedy", {"a": 1.4, "b": 1.0})
    assert contender(board) == "greedy"


def test_a_leader_that_a_new_best_case_makes_ineligible_gives_way_to_an_eligible_one() -> None:
    board = standing()
    board.add(1, "base", {"a": 1.0, "b": 4.0})
    board.add(2, "middle", {"a": 1.0, "b": 3.5})
    board.promote("middle")
    board.add(3, "balanced", {"a": 1.29, "b": 3.4})
    assert leader(board) == "middle"
    assert board.add(4, "specialist", {"a": 9.0, "b": 2.6})
    assert leader(board) == "balanced"


def test_as_long_as_somebody_looks_better_a_duel_decides() -> None:
    board = standing()
    board.add(1, "base", {"a": 1.0, "b": 4.0})
    assert not board.add(2, "other", {"a": 1.0, "b": 2.0})
    assert (leader(board), contender(board)) == ("base", "other")
    board.beat("other", "base")
    assert leader(board) == "other", "the baseline sacrifices b, and nobody else is left"


def test_one_lucky_median_disqualifies_nobody() -> None:
    """Two of the eight samples make a median 8 % low: within its own noise nobody is 1.3 times as slow."""
    board = standing()
    board.add(1, "base", {"a": 1.25, "b": 9.0})
    board.add(2, "leader", {"a": 1.25, "b": 4.0})
    board.promote("leader")
    samples = (0.7, 0.72, 0.93, 0.93, 0.95, 1.1, 1.2, 1.25)
    timing = CaseTiming("a", samples, "events")
    errors = median_errors(Outcome(Status.MEASURED, cases=(timing,)))
    assert 1.3 * timing.median_ms < 1.25
    assert not board.add(3, "lucky", {"a": timing.median_ms, "b": 9.0}, errors)
    assert leader(board) == "leader"
    assert board.add(4, "really fast", {"a": 0.93, "b": 9.0}, {"a": 0.001}) or leader(board) == "leader"
    assert not board.eligible({"a": 1.25, "b": 4.0})


def test_the_spread_of_a_median_ignores_a_spike() -> None:
    quiet = CaseTiming("a", (1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.0), "events")
    spiked = CaseTiming("a", (*quiet.samples_ms[:7], 9.0), "events")
    first, second = (median_errors(Outcome(Status.MEASURED, cases=(t,)))["a"] for t in (quiet, spiked))
    assert 0 < second < 0.01
    assert first < 0.01


def test_there_is_always_a_leader() -> None:
    board = standing()
    board.add(1, "left", {"a": 1.0, "b": 4.0})
    board.add(2, "right", {"a": 4.0, "b": 1.0})
    assert leader(board) == "left"


def test_equal_scores_keep_the_older() -> None:
    board = standing()
    board.add(1, "first", {"a": 1.0})
    board.add(2, "second", {"a": 1.0})
    assert contender(board) is None


def test_in_front_is_who_would_win_or_else_the_incumbent() -> None:
    board = standing()
    assert board.front is None
    board.add(1, "base", {"a": 2.0})
    assert board.front is board.incumbent
    board.add(2, "faster", {"a": 1.0})
    assert (leader(board), board.front.candidate if board.front else "") == ("base", "faster")
    board.beat("faster", "base")
    assert board.front is board.incumbent
