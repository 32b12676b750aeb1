"""The bandit over templates."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kernelwright.campaign.policy import Policy
from kernelwright.campaign.settings import Settings
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import Outcome, Status
from kernelwright.core.space import SearchSpace
from kernelwright.generation.base import Proposal
from kernelwright.optimiser.base import Suggestion

from .fakes import FACTS, measured, template


class FakeOptimiser:
    """Asks its configurations in order; its expected gain is given."""

    def __init__(self, space: SearchSpace, gains: Mapping[int, float], seed: int) -> None:
        self.left = [space.configuration(i) for i in range(len(space))]
        self.gain = gains[seed % 1009]
        self.told: list[Status] = []

    def ask(self, n: int = 1) -> list[Suggestion]:
        return [Suggestion(self.left.pop(0), 0.0, "in order")] if self.left else []

    def tell(self, configuration: Configuration, observation: object) -> None:
        self.told.append(observation.status)  # type: ignore[attr-defined]

    def expected_gain(self, best_value: float | None) -> float:
        return self.gain

    @property
    def exhausted(self) -> bool:
        return not self.left


def policy(gains: dict[int, float], values: int = 60, young: int = 2, pause: int = 3) -> Policy:
    settings = Settings(problem="p", device="cpu", young_budget=young, pause_after=pause, pause_experiments=5)
    made = Policy(
        settings,
        lambda p: p.template.plan.space(FACTS),
        lambda space, seed: FakeOptimiser(space, gains, seed),  # type: ignore[arg-type, return-value]
    )
    for number in gains:
        name = f"t{number}"
        made.add(Proposal(template(name, values), name, "test"))
    return made


def names(made: Policy, count: int) -> list[str]:
    chosen = []
    for _ in range(count):
        work = made.next(1.0)
        assert work is not None
        chosen.append(work.candidate.template.name)
        made.record(work.candidate, measured(1.0), 1.0)
    return chosen


def test_new_templates_get_their_first_configurations_in_turn() -> None:
    assert names(policy({0: 1.0, 1: 5.0, 2: 0.1}), 6) == ["t0", "t1", "t2"] * 2


def test_then_the_device_goes_where_most_is_expected_and_nobody_starves() -> None:
    chosen = names(policy({0: 0.01, 1: 0.05}, values=200), 200)[4:]
    assert chosen.count("t1") > 0.8 * len(chosen)
    assert "t0" in chosen


def test_gain_counts_per_second() -> None:
    made = policy({0: 0.05, 1: 0.04})
    for _ in range(4):
        work = made.next(1.0)
        assert work is not None
        slow = work.candidate.template.name == "t0"
        outcome = replace(measured(1.0), seconds={"check": 1.0 if slow else 0.01})
        made.record(work.candidate, outcome, 1.0)
    chosen = names(made, 20)
    assert chosen.count("t1") > 15


def test_nothing_is_left_when_every_space_is_exhausted() -> None:
    made = policy({0: 1.0, 1: 1.0}, values=3)
    assert len(names(made, 6)) == 6
    assert made.next(1.0) is None


def test_a_known_template_is_not_added_twice() -> None:
    made = policy({0: 1.0})
    made.add(Proposal(template("t0", 60), "other", "test"))
    assert len(made.arms) == 1


def test_more_than_three_compile_failures_pause_a_direction_for_a_while() -> None:
    made = policy({0: 9.0, 1: 0.001}, young=1)
    names(made, 2)
    failed = Outcome(Status.COMPILE_FAILED, reason="line 1: no")
    first = next(iter(made.arms.values())).proposal.template
    paused = [made.record(_candidate(first), failed, None) for _ in range(4)]
    assert paused == [False, False, False, True]
    assert list(made.paused()) == ["t0"]
    assert names(made, 5) == ["t1"] * 5
    assert list(made.paused()) == []
    assert "t0" in names(made, 5)


def test_a_paused_direction_is_asked_when_nothing_else_is_left() -> None:
    made = policy({0: 1.0}, values=9, pause=1)
    first = next(iter(made.arms.values())).proposal.template
    for _ in range(2):
        made.record(_candidate(first), Outcome(Status.COMPILE_FAILED, reason="no"), None)
    assert list(made.paused()) == ["t0"]
    assert made.next(1.0) is not None


def test_a_template_of_which_nothing_passes_waits_while_models_may_mend_it() -> None:
    made, wrong = policy({0: 9.0}), Outcome(Status.WRONG, reason="1 of 8 values wrong")
    tried = []
    while (work := made.next(1.0, unproven=lambda _: 2)) is not None:
        tried.append(work.candidate)
    assert len(tried) == 2  # also before anything came back
    assert not made.is_exhausted
    for candidate in tried:
        made.record(candidate, wrong, None)
    assert made.next(1.0, unproven=lambda _: 2) is None
    assert made.is_exhausted
    last = made.next(1.0)  # nobody can mend it: its other numbers are what is left
    assert last is not None
    made.record(last.candidate, measured(1.0), 1.0)
    assert made.next(1.0, unproven=lambda _: 2) is not None
    assert not made.is_exhausted


def _candidate(of: object) -> object:
    from kernelwright.core.candidate import Candidate

    return Candidate(of, Configuration({"X": 1}))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [0, 7])
def test_choices_repeat_with_the_seed(seed: int) -> None:
    assert names(policy({0: 0.01, 1: 0.02}), 50) == names(policy({0: 0.01, 1: 0.02}), 50)


def test_a_template_whose_candidates_all_fail_loses_its_turn() -> None:
    made = policy({0: 0.5, 1: 0.01}, values=200)
    tried = {"t0": 0, "t1": 0}
    for _ in range(150):
        work = made.next(1.0)
        assert work is not None
        name = work.candidate.template.name
        tried[name] += 1
        broken = Outcome(Status.RULE_BROKEN, reason="r", seconds={"compile": 0.01})
        made.record(work.candidate, broken if name == "t0" else measured(1.0), None if name == "t0" else 1.0)
    assert tried["t1"] > tried["t0"]


def test_when_nothing_is_expected_any_more_the_search_stays_near_the_best() -> None:
    made = policy({0: 0.0, 1: 0.0}, values=300)
    tried = {"t0": 0, "t1": 0}
    for _ in range(200):
        work = made.next(1.0)
        assert work is not None
        name = work.candidate.template.name
        tried[name] += 1
        made.record(work.candidate, measured(1.0 if name == "t1" else 2.0), 1.0 if name == "t1" else 2.0)
    assert tried["t1"] > 150
