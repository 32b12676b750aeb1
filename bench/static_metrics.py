"""What the compiler's numbers bring: GPU evaluations until the optimum of our own recorded spaces, with and without.

With them, a configuration that was compiled is left out when its chance to beat the best is below a limit: it
costs a compile, but no time of the GPU.

    python bench/static_metrics.py --seeds 20
"""

import statistics
from pathlib import Path

from command_line import parser_of
from kernelwright.devices.recorded import RecordedSpace, read_folder
from kernelwright.optimiser import make_optimiser
from kernelwright.optimiser.base import Observation

COMPILES = 150
LIMITS = (0.0, 0.001, 0.01)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--spaces", type=Path, default=Path(__file__).with_name("spaces_h200"))
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    for space in read_folder(arguments.spaces):
        print(
            f"{space.name}: {len(space.space)} configurations, {COMPILES} compiled, {arguments.seeds} seeds (means)"
        )
        print(
            "  left out below   GPU evaluations   ms of kernels   optimum / best   optimum found at evaluation"
        )
        for limit in LIMITS:
            runs = [_search(space, seed, limit) for seed in range(arguments.seeds)]
            used, spent, best, when = (statistics.mean(run[k] for run in runs) for k in range(4))
            name = "never" if limit == 0 else f"{limit:g}"
            print(f"  {name:>14}   {used:15.1f}   {spent:13.1f}   {best:14.4f}   {when:10.1f}", flush=True)


def _search(space: RecordedSpace, seed: int, limit: float) -> tuple[int, float, float, int]:
    """Evaluations, summed times, optimum / best, evaluation at which the best was found."""
    optimiser = make_optimiser(space.space, seed)
    used, spent, best, when = 0, 0.0, float("inf"), 0
    for _ in range(COMPILES):
        configuration = optimiser.ask(1)[0].configuration
        static = space.static(configuration)
        if static is not None and limit:
            optimiser.tell_static(configuration, static)
            chance = optimiser.chance(configuration)
            if chance is not None and chance < limit:
                continue
        outcome = space.outcome(configuration)
        time = outcome.cases[0].median_ms if outcome.cases else None
        optimiser.tell(configuration, Observation(time, outcome.status, static=static if limit else None))
        used += 1
        spent += time or 0.0
        if time is not None and time < best:
            best, when = time, used
    return used, spent, space.optimum_ms / best, when


if __name__ == "__main__":
    main()
