"""The optimiser's promises: never twice, deterministic, learns, bears failures, pending points and large spaces."""

import numpy as np
import pytest

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import PlanError
from kernelwright.core.expressions import parse
from kernelwright.core.outcome import KernelStatics, StaticMetrics, Status
from kernelwright.core.space import Constraint, SearchSpace, Tunable
from kernelwright.optimiser import make_optimiser
from kernelwright.optimiser.base import Observation

POWERS = (1, 2, 4, 8, 16, 32, 64, 128)


def make_space(limit: int = 100_000) -> SearchSpace:
    tunables = (
        Tunable("bx", POWERS),
        Tunable("by", POWERS),
        Tunable("tile", (1, 2, 4, 8)),
        Tunable("method", (0, 1, 2)),
        Tunable("layout", ("rows", "columns")),
        Tunable("fast", (False, True)),
    )
    return SearchSpace(tunables, (Constraint("threads", parse("32 <= bx * by <= 1024")),), limit=limit)


def time_of(c: Configuration) -> float:
    bx, by, tile = float(c["bx"]), float(c["by"]), float(c["tile"])
    away = abs(np.log2(bx) - 5) + 0.7 * abs(np.log2(by) - 2) + 0.5 * abs(np.log2(tile) - 2)
    away += {0: 0.8, 1: 0.0, 2: 0.5}[int(c["method"])] + 0.3 * (c["layout"] == "rows") + 0.1 * (not c["fast"])
    return float(np.exp(0.3 * away))


def told(c: Configuration, *, failing: bool = False) -> Observation:
    if failing and float(c["bx"]) * float(c["by"]) * float(c["tile"]) > 1024:
        return Observation(None, Status.LAUNCH_FAILED)
    return Observation(time_of(c), Status.MEASURED)


def search(space: SearchSpace, seed: int, n: int, *, failing: bool = False) -> list[Configuration]:
    optimiser = make_optimiser(space, seed)
    asked = []
    for _ in range(n):
        asked += [suggestion.configuration for suggestion in optimiser.ask()]
        optimiser.tell(asked[-1], told(asked[-1], failing=failing))
    return asked


@pytest.mark.parametrize("failing", [False, True])
def test_it_finds_the_optimum_of_a_smooth_space(failing: bool) -> None:
    space = make_space()
    for seed in range(3):
        asked = search(space, seed, 45, failing=failing)
        assert len(set(asked)) == 45
        assert all(space.contains(c) for c in asked)
        assert min(time_of(c) for c in asked) < 1.05


def test_equal_seeds_and_tells_give_equal_asks() -> None:
    assert search(make_space(), 7, 25, failing=True) == search(make_space(), 7, 25, failing=True)
    assert search(make_space(), 7, 8) != search(make_space(), 8, 8)


def test_a_batch_has_no_repetition_and_pending_points_spread() -> None:
    space = make_space()
    optimiser = make_optimiser(space, 0)
    first = [s.configuration for s in optimiser.ask(12)]
    for c in first:
        optimiser.tell(c, told(c))
    batch = [s.configuration for s in optimiser.ask(20)]
    assert len({*first, *batch}) == 32
    for c in reversed(batch):
        optimiser.tell(c, told(c))
    assert optimiser.ask(1)[0].configuration not in {*first, *batch}


def test_a_small_space_is_exhausted() -> None:
    space = SearchSpace((Tunable("a", (1, 2, 3)), Tunable("b", (False, True))))
    optimiser = make_optimiser(space, 0)
    asked = [s.configuration for s in optimiser.ask(4)]
    for c in asked:
        optimiser.tell(c, Observation(float(c["a"]), Status.MEASURED))
    assert not optimiser.exhausted
    asked += [s.configuration for s in optimiser.ask(10)]
    assert optimiser.exhausted
    assert len(set(asked)) == len(asked) == 6
    assert optimiser.ask(1) == []
    assert optimiser.expected_gain(1.0) == 0.0


def test_no_tunables_is_one_configuration() -> None:
    optimiser = make_optimiser(SearchSpace(()), 0)
    assert [s.configuration for s in optimiser.ask(3)] == [Configuration()]
    assert optimiser.exhausted
    optimiser.tell(Configuration(), Observation(1.0, Status.MEASURED))
    assert optimiser.analysis().importance == ()


def test_only_failures_never_break_it() -> None:
    optimiser = make_optimiser(make_space(), 0)
    asked = set()
    for _ in range(30):
        (suggestion,) = optimiser.ask()
        asked.add(suggestion.configuration)
        optimiser.tell(suggestion.configuration, Observation(None, Status.COMPILE_FAILED))
    assert len(asked) == 30
    assert optimiser.expected_gain(1.0) > 0


def test_equal_times_never_break_it() -> None:
    optimiser = make_optimiser(make_space(), 0)
    for _ in range(20):
        (suggestion,) = optimiser.ask()
        optimiser.tell(suggestion.configuration, Observation(2.5, Status.MEASURED))
    assert np.isfinite(optimiser.expected_gain(None))


def test_the_gain_falls_with_a_better_incumbent() -> None:
    space = make_space()
    optimiser = make_optimiser(space, 0)
    optimistic = optimiser.expected_gain(1.0)
    for _ in range(30):
        (suggestion,) = optimiser.ask()
        optimiser.tell(suggestion.configuration, told(suggestion.configuration))
    assert optimistic > 0.1
    assert optimiser.expected_gain(5.0) > optimiser.expected_gain(1.0) > optimiser.expected_gain(0.1)


def test_candidates_stopped_early_count_with_the_cases_they_have() -> None:
    optimiser = make_optimiser(make_space(), 0)
    for i in range(24):
        (suggestion,) = optimiser.ask()
        time = time_of(suggestion.configuration)
        cases = {"small": time / 4, "large": time * 3}
        if i % 3 == 2:
            stopped = Observation(None, Status.MEASURED, cases={"small": time / 4})
            optimiser.tell(suggestion.configuration, stopped)
        else:
            optimiser.tell(suggestion.configuration, Observation(time, Status.MEASURED, cases=cases))
    assert optimiser.analysis().observations == 24


def test_spills_make_a_compiled_configuration_hopeless() -> None:
    """Times follow spills, which no tunable explains: the compiler's numbers tell losers from winners."""
    space = make_space()
    optimiser = make_optimiser(space, 0)
    spills = {
        space.configuration(i): int(v)
        for i, v in enumerate(np.random.default_rng(0).integers(0, 2, len(space)))
    }

    def static(c: Configuration) -> StaticMetrics:
        return StaticMetrics(
            (KernelStatics("k", registers=64, spill_bytes=400 * spills[c]),), code_bytes=1000
        )

    assert optimiser.chance(space.configuration(0)) is None
    for _ in range(40):
        (suggestion,) = optimiser.ask()
        c = suggestion.configuration
        time = time_of(c) * (4 if spills[c] else 1)
        optimiser.tell(c, Observation(time, Status.MEASURED, static=static(c)))
    chances: dict[int, list[float]] = {0: [], 1: []}
    for suggestion in optimiser.ask(20):
        optimiser.tell_static(suggestion.configuration, static(suggestion.configuration))
        chance = optimiser.chance(suggestion.configuration)
        assert chance is not None
        chances[spills[suggestion.configuration]].append(chance)
    assert max(chances[1]) < 0.05
    assert max(chances[0]) > max(chances[1])


def test_what_was_only_compiled_can_still_be_asked() -> None:
    space = SearchSpace((Tunable("a", (1, 2)),))
    optimiser = make_optimiser(space, 0)
    optimiser.tell_static(space.configuration(0), StaticMetrics())
    assert len(optimiser.ask(5)) == 2


def test_a_foreign_configuration_is_refused() -> None:
    optimiser = make_optimiser(make_space(), 0)
    with pytest.raises(PlanError, match="does not fit"):
        optimiser.tell(Configuration({"a": 1}), Observation(1.0, Status.MEASURED))


def test_analysis_finds_what_matters() -> None:
    space = make_space()
    optimiser = make_optimiser(space, 0)
    for _ in range(40):
        (suggestion,) = optimiser.ask()
        optimiser.tell(suggestion.configuration, told(suggestion.configuration))
    analysis = optimiser.analysis()
    shares = {entry.tunables[0]: entry.share for entry in analysis.importance}
    assert analysis.importance[0].share == max(shares.values())
    assert shares["bx"] > 4 * shares["fast"]
    assert all(entry.uncertainty >= 0 for entry in (*analysis.importance, *analysis.interactions))
    assert len(analysis.interactions) == 15


def test_a_space_too_large_to_enumerate_is_searched() -> None:
    values = tuple(range(1, 65))
    space = SearchSpace(
        tuple(Tunable(name, values) for name in "abcdefgh"),
        (Constraint("x", parse("a * b <= 64")), Constraint("y", parse("c % d == 0"))),
    )
    assert not space.enumerable
    optimiser = make_optimiser(space, 0)
    asked = []
    for _ in range(30):
        asked += [s.configuration for s in optimiser.ask()]
        value = 1 + sum((np.log2(float(asked[-1][name])) - 3) ** 2 for name in "aceg")
        optimiser.tell(asked[-1], Observation(float(value), Status.MEASURED))
    values_seen = [1 + sum((np.log2(float(c[name])) - 3) ** 2 for name in "aceg") for c in asked]
    assert len(set(asked)) == 30
    assert min(values_seen[15:]) < 0.5 * min(values_seen[:8])
