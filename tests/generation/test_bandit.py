"""The bandit over models."""

from kernelwright.generation.bandit import Bandit


def test_everyone_is_asked_once_and_then_the_one_that_pays() -> None:
    bandit = Bandit(("a", "b", "c"))
    asked = []
    for _ in range(60):
        name = bandit.choose()
        asked.append(name)
        bandit.spent(name, 0.01, 5.0)
        bandit.earned(name, 0.2 if name == "b" else 0.0)
    assert asked[:3] == ["a", "b", "c"]
    assert asked.count("b") > 40
    assert asked.count("a") >= 2


def test_equal_gain_for_less_money_pays_more() -> None:
    bandit = Bandit(("dear", "cheap"))
    for _ in range(60):
        name = bandit.choose()
        bandit.spent(name, 1.0 if name == "dear" else 0.02, 5.0)
        bandit.earned(name, 0.1)
    assert bandit.records["cheap"].requests > bandit.records["dear"].requests


def test_a_choice_can_be_narrowed() -> None:
    assert Bandit(("a", "b")).choose(frozenset({"b"})) == "b"
