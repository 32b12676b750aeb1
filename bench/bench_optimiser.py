"""Time of one ask and of an enumeration, and the memory they take.

python bench/bench_optimiser.py
"""

import resource
import time

import numpy as np

from command_line import parser_of
from kernelwright.core.configuration import Configuration
from kernelwright.core.expressions import parse
from kernelwright.core.outcome import Status
from kernelwright.core.space import Constraint, SearchSpace, Tunable
from kernelwright.optimiser import make_optimiser
from kernelwright.optimiser.base import Observation

POWERS = (1, 2, 4, 8, 16, 32, 64, 128)
OBSERVATIONS = 200


def space_of(names: str, *constraints: str) -> SearchSpace:
    return SearchSpace(
        tuple(Tunable(name, POWERS) for name in names),
        tuple(Constraint(text, parse(text)) for text in constraints),
    )


def value_of(configuration: Configuration) -> float:
    logs = [np.log2(float(value)) for value in configuration.values()]
    return float(np.exp(0.2 * sum((x - 3) ** 2 for x in logs) ** 0.5 + 0.05 * logs[0] * logs[1]))


def bench(name: str, space: SearchSpace) -> None:
    start = time.perf_counter()
    n = len(space)
    enumeration = time.perf_counter() - start
    optimiser = make_optimiser(space, 0)
    rng = np.random.default_rng(0)
    for index in rng.choice(n, OBSERVATIONS - 30, replace=False):
        configuration = space.configuration(int(index))
        optimiser.tell(configuration, Observation(value_of(configuration), Status.MEASURED))
    asks = []
    for _ in range(30):
        start, cpu = time.perf_counter(), time.process_time()
        (suggestion,) = optimiser.ask()
        asks.append((time.perf_counter() - start, time.process_time() - cpu))
        optimiser.tell(
            suggestion.configuration, Observation(value_of(suggestion.configuration), Status.MEASURED)
        )
    wall, cpu = np.array(asks).T
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:14} {n:9} valid of {space.cartesian:.1e}  enumerated in {enumeration:5.2f} s  ask "
        f"median {np.median(wall):.3f} s, with fit at most {wall.max():.3f} s (cpu {cpu.max():.3f} s)  peak {peak:.0f} MiB"
    )


def main() -> None:
    parser_of(__doc__).parse_args()
    bench("small", space_of("abcde", "a * b <= 1024"))
    bench("50 thousand", space_of("abcdefg", "a * b <= 128", "c * d <= 64", "e * f * g == 1024"))
    bench("a million", space_of("abcdefgh", "a * b <= 1024", "c % d == 0", "e * f >= 128", "g * h <= 128"))


if __name__ == "__main__":
    main()
