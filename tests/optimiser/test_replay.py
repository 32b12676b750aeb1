"""The judge is judged: counting, scores, peers that are missing, and the command."""

import importlib.util
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from kernelwright.cli.bench_optimiser import optimiser as bench_optimiser
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import MissingError, UserError
from kernelwright.core.space import SearchSpace, Tunable
from kernelwright.devices.recorded import BUNDLED, RecordedSpace, read_folder
from kernelwright.optimiser.contest import make_setting, plot, run_contest, table
from kernelwright.optimiser.peers import contestant, kernelwright, random_search
from kernelwright.optimiser.replay import BudgetSpent, Objective, Trace, play, score
from kernelwright.optimiser.replay import random_search as expected_random

NAN = float("nan")


def recorded(times: list[float]) -> RecordedSpace:
    space = SearchSpace((Tunable("a", tuple(range(len(times)))),))
    n = len(times)
    return RecordedSpace("tiny", "k", "d", space, np.array(times), np.full(n, 0.5), ("",) * n)


def test_only_new_valid_configurations_count() -> None:
    objective = Objective(recorded([3.0, NAN, 1.0, 2.0]), budget=3, seed=0)
    assert objective(Configuration({"a": 0})) == 3.0
    assert objective(Configuration({"a": 0})) == 3.0
    assert objective(Configuration({"a": 99})) is None
    assert objective(Configuration({"a": 1})) is None
    assert objective(Configuration({"a": 2})) == 1.0
    assert objective.trace == pytest.approx([3.0, NAN, 1.0], nan_ok=True)
    with pytest.raises(BudgetSpent):
        objective(Configuration({"a": 3}))


def test_calls_that_cost_nothing_end_too() -> None:
    objective = Objective(recorded([1.0, 2.0]), budget=2, seed=0)
    for _ in range(100):
        objective(Configuration({"a": 0}))
    with pytest.raises(BudgetSpent):
        objective(Configuration({"a": 0}))


def test_noise_is_seen_but_does_not_score() -> None:
    objective = Objective(recorded([3.0, 1.0]), budget=3, seed=0, noise=True)
    seen = [objective(Configuration({"a": i})) for i in (0, 1, 0)]
    assert seen[0] != 3.0
    assert seen[0] == seen[2]
    assert objective.trace == [3.0, 1.0]


def test_the_expectation_of_random_search_is_exact() -> None:
    times = np.array([5.0, 1.0, NAN, 2.0, 9.0])
    for draws in (1, 2, 3):
        bests = [np.nanmin(c) for c in combinations(times, draws) if not np.isnan(c).all()]
        assert expected_random(times, 5)[draws - 1] == pytest.approx(np.mean(bests))


def test_scores() -> None:
    space = recorded([4.0, 2.0, 1.0, NAN])
    perfect = score(space, [Trace(np.array([1.0, 2.0]), 0.1)], 2)
    assert (perfect.p, perfect.auc, perfect.ms_per_ask) == (1.0, 1.0, 50.0)
    late = score(space, [Trace(np.array([NAN, 2.0]), 0.0)], 2)
    assert late.curve.tolist() == [0.0, 0.5]
    assert late.p < 0.2
    assert late.as_json()["25"] is None


def test_ours_beats_random_on_the_bundled_spaces() -> None:
    for space in read_folder(BUNDLED):
        ours = score(space, [play(space, kernelwright, seed, 40) for seed in range(4)], 40)
        others = score(space, [play(space, random_search, seed, 40) for seed in range(4)], 40)
        assert ours.p > 0.3 > abs(others.p) - 0.1
        assert ours.at[25] > others.at[25]


def test_a_contest_has_a_table_a_plot_and_json() -> None:
    setting = make_setting(BUNDLED, ["random"], seeds=2, budget=25, noise=True, processes=1)
    contest = run_contest(setting)
    text = table(contest)
    assert "pnpoly-RTX_3090" in text
    assert "mean of 2 spaces" in text
    assert plot(contest).count("<polyline") == 2
    document = contest.as_json()
    assert set(document) == {"spaces", "mean", "against"}
    assert set(document["mean"]) == {"25", "50", "100", "200", "AUC", "P", "ms_per_ask"}
    assert set(document["spaces"]) == {"convolution_v1-A4000_2023", "pnpoly-RTX_3090"}
    assert document["against"]["random"]["mean"]["25"] < 1
    assert run_contest(setting).as_json()["mean"]["25"] == document["mean"]["25"]


def test_the_command_plays_in_parallel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_optimiser(seeds=2, budget=12, jobs=2, plot=tmp_path / "curves.svg", as_json=True)
    assert 0 < json.loads(capsys.readouterr().out)["mean"]["AUC"] <= 1
    assert (tmp_path / "curves.svg").read_text().startswith("<svg")


def test_faults_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown optimiser 'magic': use random, kernel_tuner, optuna, smac"):
        contestant("magic")
    with pytest.raises(UserError, match=r"no \.npz"):
        bench_optimiser(spaces=tmp_path)
    with pytest.raises(UserError, match="cannot be written"):
        bench_optimiser(seeds=1, budget=1, jobs=1, plot=tmp_path / "missing" / "x.svg")


@pytest.mark.parametrize("name", ["kernel_tuner", "optuna", "smac"])
def test_peers_play_or_say_how_to_install_them(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        with pytest.raises(MissingError, match=r"pip install 'kernelwright\[peers\]'"):
            contestant(name)
    else:
        space = read_folder(BUNDLED)[0]
        assert len(play(space, contestant(name), 0, 10).times_ms) == 10
