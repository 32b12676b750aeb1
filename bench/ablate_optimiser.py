"""What each part of the optimiser is worth: one part switched off at a time, on recorded spaces.

    python bench/ablate_optimiser.py --spaces DIR --seeds 10 --budget 100

First how well the surrogate ranks configurations that it has not seen, from some that a search might have seen (half
of them random, half from the fastest fifth): precise and cheap. Then P of whole searches, which vary much more. Both as
the value of the whole optimiser and the difference that each part makes, with its standard error over runs.
"""

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.stats import spearmanr

from command_line import parser_of
from kernelwright.devices.recorded import BUNDLED, RecordedSpace, read_folder
from kernelwright.optimiser import bayesian, features, gaussian_process
from kernelwright.optimiser.peers import kernelwright
from kernelwright.optimiser.posterior import Posterior
from kernelwright.optimiser.replay import play, score

Part = Callable[[], AbstractContextManager[Any]]
PARTS: dict[str, Part] = {
    "everything": nullcontext,
    "powers of two as columns": lambda: patch.object(features, "_powers_of_two", lambda _numbers: []),
    "quantities of the plan as columns": lambda: patch.object(features, "MAX_QUANTITIES", 0),
    "membership columns": lambda: patch.object(features, "MAX_NAMES", 0),
    "extra columns count little at first": lambda: patch.multiple(
        features, DERIVED_PRIOR=features.SCALE_PRIOR, MEMBERSHIP_PRIOR=features.SCALE_PRIOR
    ),
    "logarithmic scales": lambda: patch.object(features, "LOG_RATIO", 1e9),
    "start with powers of two": lambda: patch.object(
        bayesian, "unevenness", lambda _space, rows: np.zeros(len(rows), dtype=int)
    ),
    "exploration when nothing better comes": lambda: patch.object(bayesian, "EXPLORATION", 0.0),
    "feasibility model": lambda: patch.object(
        bayesian.BayesianOptimiser, "_update_feasibility", lambda _self: None
    ),
    "length scales from the evidence": lambda: patch.object(
        gaussian_process, "minimize", lambda _f, start, **_: argparse.Namespace(x=start)
    ),
}
MODEL = dict(list(PARTS.items())[:6]) | {
    "length scales from the evidence": PARTS["length scales from the evidence"]
}
KNOWN = (25, 100)
UNSEEN = 400


def ranking(space: RecordedSpace, seeds: int, known: int) -> list[float]:
    """Rank correlation of predicted and true times, as many unseen random as unseen fast configurations."""
    logs = np.log(space.times_ms)
    measured = np.flatnonzero(~np.isnan(logs))
    fast = measured[np.argsort(logs[measured])[: len(measured) // 5]]
    columns = features.make_features(space.space, space.space.indices)
    points = columns.points(space.space.indices)
    correlations = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        seen = np.unique(
            np.concatenate([rng.choice(measured, known // 2), rng.choice(fast, known - known // 2)])
        )
        unseen = [rng.choice(np.setdiff1d(pool, seen), UNSEEN) for pool in (measured, fast)]
        targets = (logs[seen] - logs[seen].mean()) / logs[seen].std()
        noise = np.zeros(len(seen))
        evidence = gaussian_process.Evidence(
            points[seen], targets, noise, columns.groups, columns.length_priors
        )
        posterior = Posterior(
            gaussian_process.fit(evidence, None), columns.groups, points[np.concatenate(unseen)]
        )
        posterior.add(points[seen], noise)
        predicted = posterior.mean(posterior.whiten(targets))
        correlations.append(float(spearmanr(predicted, logs[np.concatenate(unseen)]).statistic))
    return correlations


def searches(space: RecordedSpace, seeds: int, budget: int) -> list[float]:
    return [score(space, [play(space, kernelwright, seed, budget)], budget).p for seed in range(seeds)]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--spaces", type=Path, default=BUNDLED)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--only", default="", help="parts of space names, separated by commas")
    parser.add_argument("--ranking-only", action="store_true", help="leave the searches out")
    arguments = parser.parse_args()
    wanted = [part for part in arguments.only.split(",") if part]
    spaces = [
        s for s in read_folder(arguments.spaces) if not wanted or any(part in s.name for part in wanted)
    ]
    for known in KNOWN:
        compare(
            f"rank correlation from {known} observations",
            MODEL,
            lambda s, n=known: ranking(s, arguments.seeds, n),
            spaces,
        )
    if not arguments.ranking_only:
        compare("P of searches", PARTS, lambda s: searches(s, arguments.seeds, arguments.budget), spaces)


def compare(
    what: str,
    parts: dict[str, Part],
    measure: Callable[[RecordedSpace], list[float]],
    spaces: list[RecordedSpace],
) -> None:
    print(f"\n{what}")
    whole: np.ndarray | None = None
    for name, part in parts.items():
        with part():
            scores = np.array([measure(space) for space in spaces])
        if whole is None:
            whole = scores
            print(f"{name:42}       {scores.mean():.3f}", flush=True)
            continue
        difference = whole - scores
        error = difference.std() / np.sqrt(difference.size)
        print(f"{name:42} worth {difference.mean():+.3f} +- {error:.3f}", flush=True)


if __name__ == "__main__":
    main()
