"""Trials of large sizes: which cases they stress, which sizes they draw, and what they leave alone."""

from itertools import pairwise
from pathlib import Path

import pytest

from kernelwright.core.outcome import Check
from kernelwright.problems.case import Trial
from kernelwright.problems.large_trials import MOST_ELEMENTS, MOST_FLOPS
from kernelwright.problems.loader import Problem, bundled_names, load_problem
from kernelwright.problems.source import ProblemSource
from kernelwright.problems.trials import CHEAP_ELEMENTS, MAX_FLOPS, is_cheap
from tests.problems.folders import GOOD, write_problem

SEEDS = range(5)


def large(problem: Problem, *, slow: bool = False, seed: int = 0) -> list[Trial]:
    return list(problem.large_trials(slow=slow, seed=seed))


def drawn(problem: Problem, *, slow: bool = False, seed: int = 0) -> list[Trial]:
    return [trial for trial in large(problem, slow=slow, seed=seed) if trial.check is Check.OTHER_SIZES]


def problem_with(folder: Path, trials: str = "", cases: str = "") -> Problem:
    toml = GOOD.replace("work =", f"trials = {{ {trials} }}\nwork =")
    return load_problem(
        write_problem(folder / "p", toml.replace("{ sizes = { N = 100 } }", cases) if cases else toml)
    )


@pytest.mark.parametrize("name", bundled_names())
@pytest.mark.parametrize("slow", [False, True])
def test_behind_every_threshold_is_a_stressed_case(name: str, slow: bool) -> None:
    problem = load_problem(name)
    cases = problem.cases(slow=slow)
    found = [t for t in problem.every_trial(slow=slow, seed=1) if t.check is Check.STRESS_INPUTS]
    at = {
        kind: [t.sizes for t in found if t.id.startswith(f"stress {kind} ")]
        for kind in ("large", "ends", "changed")
    }
    at["large"] = at["large"] or [
        t.sizes for t in found if t.id.startswith("stress uniform 2 ")
    ]  # reduce_sum's
    for sizes in at.values():
        for size in problem.spec.size_names:
            assert max(entry[size] for entry in sizes) == max(case.sizes[size] for case in cases)
        heaviest = max(cases, key=lambda case: sum(problem.work(case)))
        assert heaviest.sizes in sizes


@pytest.mark.parametrize("name", bundled_names())
@pytest.mark.parametrize("slow", [False, True])
def test_sizes_are_drawn_between_the_cases_and_around_the_largest(name: str, slow: bool) -> None:
    problem = load_problem(name)
    listed = [case.sizes for kind in (False, True) for case in problem.cases(slow=kind)]
    works = sorted(sum(problem.work(case)) for case in problem.cases(slow=slow))
    for seed in SEEDS:
        trials = drawn(problem, slow=slow, seed=seed)
        tried = sorted(sum(problem.work(trial)) for trial in trials)
        assert not any(trial.sizes in listed for trial in trials)
        assert works[-1] < tried[-1] < 1.1 * works[-1]
        assert sum(0.9 * works[-1] < work < works[-1] for work in tried)
        gaps = [(low, high) for low, high in pairwise(works) if high > 1.5 * low]
        assert all(any(low < work < high for work in tried) for low, high in gaps)
        assert all(is_cheap(problem.spec, t.sizes, CHEAP_ELEMENTS if slow else MOST_ELEMENTS,
                            MAX_FLOPS if slow else MOST_FLOPS) for t in trials)  # fmt: skip


def test_wide_accesses_have_every_remainder_above_the_second_largest() -> None:
    problem = load_problem("vector_add")
    for seed in SEEDS:
        sizes = [t.sizes["N"] for t in drawn(problem, seed=seed) if t.sizes["N"] > 0.85 * 67108864]
        assert {size % 4 for size in sizes} == {0, 1, 2, 3}
        assert all(size % 8 for size in sizes)


def test_the_seed_decides_and_the_text_for_candidates_does_not_say() -> None:
    problem = load_problem("gemm")
    first, again, other = (drawn(problem, seed=seed) for seed in (7, 7, 8))
    assert [t.id for t in first] == [t.id for t in again]
    assert not {t.id for t in first} & {t.id for t in other}
    listed = {str(case.sizes[name]) for case in problem.cases(slow=False) for name in case.sizes}
    for trial in first:
        assert trial.told
        own = {str(size) for size in trial.sizes.values()} - listed
        assert not any(number in trial.told for number in own)
    stressed = [t for t in large(problem) if t.check is Check.STRESS_INPUTS]
    assert stressed
    assert not any(t.told for t in stressed)


def test_a_source_answers_for_them_with_the_seed_of_the_campaign() -> None:
    problem = load_problem("vector_add")
    for trial in problem.every_trial(slow=True, seed=3):
        assert ProblemSource(problem, 3, slow=True).case(trial.id) == trial
    other = next(t for t in drawn(problem, slow=True, seed=4))
    with pytest.raises(KeyError):
        ProblemSource(problem, 3, slow=True).case(other.id)


@pytest.mark.parametrize("rule", ["other_sizes = false", "other_sizes = [{ N = 77 }]"])
def test_no_sizes_are_drawn_where_a_problem_names_them_or_wants_none(tmp_path: Path, rule: str) -> None:
    assert not drawn(problem_with(tmp_path, rule))
    assert drawn(problem_with(tmp_path / "free"))


@pytest.mark.parametrize("name", ["ends", "one_hot"])
def test_ends_come_with_one_hot_unless_they_are_left_out(tmp_path: Path, name: str) -> None:
    assert any(t.id.startswith("stress ends") for t in large(problem_with(tmp_path / "all")))
    found = large(problem_with(tmp_path, f'exclude = ["{name}"]'))
    assert found
    assert not any(t.id.startswith(("stress ends", f"stress {name}")) for t in found)


def test_ends_leave_an_output_and_filters_as_they_are() -> None:
    for name, other in (("conv2d", "weights"), ("gemm", "")):
        problem = load_problem(name)
        trial = next(t for t in large(problem, slow=True) if t.id.startswith("stress ends"))
        kinds = {argument: d.distribution for argument, d in trial.distributions.items()}
        assert [argument for argument, kind in kinds.items() if kind != "ends"] == ([other] if other else [])
    bodies = next(t for t in large(load_problem("nbody")) if t.id.startswith("stress ends"))
    assert bodies.distributions["bodies"].distribution == "ends"  # nothing else is there


def test_rounding_errors_of_equal_addends_are_no_fault_unless_a_problem_wants_them() -> None:
    """An honest nbody, whose sums run over the bodies one by one, is wrong at 65536 of them where many are equal."""
    kinds = {t.id.split()[1] for t in large(load_problem("nbody")) if not t.told}
    assert kinds == {"normal", "uniform", "large", "tiny", "negative", "ends", "changed"}
    named = {t.id.split()[1] for t in large(load_problem("reduce_sum")) if not t.told}
    assert {"ties", "one_hot", "structured", "ends"} <= named


def test_a_slow_device_is_given_what_it_can_afford(tmp_path: Path) -> None:
    huge = GOOD.replace("slow_cases = [{ sizes = { N = 10 } }]", "").replace("N = 1000 }", "N = 40000000 }")
    problem = load_problem(write_problem(tmp_path / "p", huge))
    assert max(trial.sizes["N"] for trial in large(problem)) > 40000000
    assert {t.sizes["N"] for t in large(problem, slow=True)} <= set(range(80, 120))
    alone = huge.replace("{ sizes = { N = 100 } }, ", "")
    assert not large(load_problem(write_problem(tmp_path / "q", alone)), slow=True)


def test_nothing_is_tried_twice(tmp_path: Path) -> None:
    one = load_problem(write_problem(tmp_path / "p", GOOD.replace("{ sizes = { N = 100 } }, ", "")))
    for problem in (one, *map(load_problem, bundled_names())):
        for slow in (False, True):
            ids = [trial.id for trial in problem.every_trial(slow=slow, seed=1)]
            assert len(set(ids)) == len(ids)
