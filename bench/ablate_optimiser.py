"""What each part of the optimiser is worth: one part switched off at a time, on recorded spaces.

    python bench/ablate_optimiser.py --spaces DIR --seeds 10 --budget 100

P of the whole optimiser, then the difference that each part makes with its standard error over runs (equal seeds).
"""

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from kernelwright.devices.recorded import BUNDLED, RecordedSpace, read_folder
from kernelwright.optimiser import bayesian, features, gaussian_process
from kernelwright.optimiser.peers import kernelwright
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


def runs(space: RecordedSpace, seeds: int, budget: int) -> list[float]:
    return [score(space, [play(space, kernelwright, seed, budget)], budget).p for seed in range(seeds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spaces", type=Path, default=BUNDLED)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--only", default="", help="parts of space names, separated by commas")
    arguments = parser.parse_args()
    wanted = [part for part in arguments.only.split(",") if part]
    spaces = [
        s for s in read_folder(arguments.spaces) if not wanted or any(part in s.name for part in wanted)
    ]
    whole: np.ndarray | None = None
    for name, part in PARTS.items():
        with part():
            scores = np.array([runs(space, arguments.seeds, arguments.budget) for space in spaces])
        if whole is None:
            whole = scores
            print(f"{name:42} P {scores.mean():.3f}", flush=True)
            continue
        difference = whole - scores
        error = difference.std() / np.sqrt(difference.size)
        print(f"{name:42} worth {difference.mean():+.3f} +- {error:.3f}", flush=True)


if __name__ == "__main__":
    main()
