"""A live search against its own recording: optimum / best after 25, 50, 100 and 200 evaluations.

The rows of an exported space stand in the order in which a live campaign measured them, so the file holds both:
the exhaustively measured space, and what the optimiser did on it live (several compilers ahead, other templates
in between). The replay asks the same optimiser, one configuration at a time, with several seeds.

    python bench/live_curve.py --seeds 20
"""

import statistics
from pathlib import Path

import numpy as np

from command_line import parser_of
from kernelwright.core.outcome import Status
from kernelwright.devices.recorded import read_recorded
from kernelwright.optimiser import make_optimiser
from kernelwright.optimiser.base import Observation

CHECKPOINTS = (25, 50, 100, 200)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--spaces", type=Path, default=Path(__file__).with_name("spaces_h200"))
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    for path in sorted(arguments.spaces.glob("*.npz")):
        live = np.load(path)["time_ms"]
        best = np.nanmin(live)
        replays = [_replay(path, seed) for seed in range(arguments.seeds)]
        print(f"{path.stem}: {len(live)} configurations, optimum {best:.4f} ms")
        print("  evaluations   live   replay median (min to max)")
        for count in CHECKPOINTS:
            shares = sorted(best / np.nanmin(times[:count]) for times in replays)
            print(
                f"  {count:11}  {best / np.nanmin(live[:count]):.4f}  {statistics.median(shares):.4f}"
                f" ({shares[0]:.4f} to {shares[-1]:.4f})"
            )


def _replay(path: Path, seed: int) -> list[float]:
    space = read_recorded(path)
    optimiser = make_optimiser(space.space, seed)
    times = []
    for _ in range(CHECKPOINTS[-1]):
        configuration = optimiser.ask(1)[0].configuration
        outcome = space.outcome(configuration)
        time = outcome.cases[0].median_ms if outcome.status is Status.MEASURED else None
        optimiser.tell(configuration, Observation(time, outcome.status))
        times.append(np.nan if time is None else time)
    return times


if __name__ == "__main__":
    main()
