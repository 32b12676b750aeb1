"""Memory and pace of the search when it goes on for long: two real spaces, every configuration asked and told.

python bench/bench_search_memory.py
"""

import resource
import time
from pathlib import Path

import numpy as np

from command_line import parser_of
from kernelwright.core.outcome import Status
from kernelwright.devices.recorded import RecordedSpace, read_folder
from kernelwright.optimiser import make_optimiser
from kernelwright.optimiser.base import Observation, Optimiser


def main() -> None:
    spaces = read_folder(Path(__file__).with_name("spaces_h200"))
    arms = [(space, make_optimiser(space.space, seed)) for seed, space in enumerate(spaces)]
    asks: list[float] = []
    print(f"{'experiments':>11} {'ms per ask':>10} {'peak RSS MB':>11}")
    while any(not optimiser.exhausted for _, optimiser in arms):
        for space, optimiser in arms:
            if not optimiser.exhausted:
                asks.append(_step(space, optimiser))
        if len(asks) % 400 < len(arms):
            _report(asks)
    _report(asks)


def _step(space: RecordedSpace, optimiser: Optimiser) -> float:
    start = time.perf_counter()
    optimiser.expected_gain(space.optimum_ms)
    configuration = optimiser.ask(1)[0].configuration
    seconds = time.perf_counter() - start
    outcome = space.outcome(configuration)
    value = outcome.cases[0].median_ms if outcome.status is Status.MEASURED else None
    optimiser.tell(configuration, Observation(value, outcome.status))
    return seconds


def _report(asks: list[float]) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"{len(asks):11} {1e3 * float(np.mean(asks[-400:])):10.1f} {peak:11.0f}", flush=True)


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    main()
