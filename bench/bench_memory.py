"""How fast the memory takes and gives experiments, each recorded in a transaction of its own.

Prints one JSON object; exit code 1 when fewer than 1000 experiments a second were recorded.

    python bench/bench_memory.py --experiments 5000
"""

import json
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from command_line import parser_of
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import CaseTiming, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.memory.records import CampaignRecord, Experiment, ProblemRecord, TemplateRecord
from kernelwright.memory.store import Memory

CASES = 5
SAMPLES = 8
NEEDED_PER_S = 1000
TEMPLATE = TemplateRecord("t1", "tile.cu", "// code\n" * 200, "bench", "tiling")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--experiments", type=int, default=5000)
    parser.add_argument(
        "--dir", type=Path, help="Folder on the disk to measure; by default the temporary one."
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        result = _measure(Path(folder) / "memory.db", arguments.experiments)
    print(json.dumps(result))
    sys.exit(result["recorded_per_s"] < NEEDED_PER_S)


def _measure(path: Path, count: int) -> dict[str, Any]:
    experiments = [_experiment(number) for number in range(count)]
    with Memory.open(path) as memory:
        problem = ProblemRecord("p1", "gemm", "{}", "", "")
        memory.start_campaign(CampaignRecord("c1", "p1", "{}", '{"model": "none"}', "seed", 0.0), problem)
        start = time.perf_counter()
        for experiment in experiments:
            memory.record(experiment, TEMPLATE)
        recorded = time.perf_counter() - start
        start = time.perf_counter()
        found = list(memory.experiments("c1"))
        read = time.perf_counter() - start
        if [e.outcome for e in found] != [e.outcome for e in experiments]:
            sys.exit("the memory gave back something else than it was given")
    return {
        "experiments": count,
        "samples_each": CASES * SAMPLES,
        "recorded_per_s": round(count / recorded),
        "read_per_s": round(count / read),
        "bytes_each": round(path.stat().st_size / count),
        "sqlite": sqlite3.sqlite_version,
    }


def _experiment(number: int) -> Experiment:
    timings = tuple(
        CaseTiming(f"n={case}", tuple((number + 1) / (7 + case + i) for i in range(SAMPLES)), "events", 0.1)
        for case in range(CASES)
    )
    static = StaticMetrics((KernelStatics("sgemm", registers=128, static_shared_bytes=32768),), 9000)
    outcome = Outcome(Status.MEASURED, "", static, timings, f"digest {number}", {"compile": 0.4, "time": 0.1})
    values = Configuration({"BM": number, "BN": 64, "TM": 8, "TN": 8})
    return Experiment(
        "c1", f"c{number:016x}", "t1", values, outcome, "expected to gain", float(number), 1.0, -1.0
    )


if __name__ == "__main__":
    main()
