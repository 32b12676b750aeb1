"""Cost of a prompt as a campaign grows: milliseconds, characters, resident memory, at 1,000 to 100,000 experiments.

Experiments are made up (times by template, a few kinds of failures); the notebook and the builder are the product's.

    python bench/bench_prompt.py
"""

import json
import random
import statistics
import time
from pathlib import Path

from command_line import parser_of
from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.core.outcome import CaseTiming, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.generation.base import Proposal
from kernelwright.generation.notebook import Notebook
from kernelwright.generation.prompt import Ask, PromptBuilder
from kernelwright.problems.loader import load_problem

FACTS = DeviceFacts(
    name="cuda:0", kind="cuda", model="NVIDIA H200", arch="sm_90a", uuid="GPU-1", num_sms=132, warp_size=32,
    max_threads_per_block=1024, max_shared_bytes=232_448, l2_bytes=60 << 20, memory_bytes=140 << 30,
    registers_per_sm=65536, shared_bytes_per_sm=233_472, max_threads_per_sm=2048, max_blocks_per_sm=32,
    toolchain="nvrtc 13.0",
)  # fmt: skip
REPEATS = 20


def resident_mb() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def variants(problem_source: str, number: int) -> list[Template]:
    """Templates of realistic length that differ in their text."""
    return [parse_template(problem_source + f"// variant {i}\n", f"variant-{i}") for i in range(number)]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--templates", type=int, default=300)
    parser.add_argument("--counts", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options = parser.parse_args()
    problem, objective, rng = load_problem("gemm"), Objective(ObjectiveName.SEED), random.Random(1)
    cases = problem.cases(slow=False)
    templates = variants(problem.catalogue()[0][1], options.templates)
    builder = PromptBuilder(problem, FACTS, objective, cases)
    notebook = Notebook()
    for number, template in enumerate(templates):
        notebook.add(Proposal(template, f"direction {number % 20}", "bench"))
    static = StaticMetrics((KernelStatics("k", 96, 0, theoretical_occupancy=0.5),))
    best: Candidate | None = None
    best_outcome, done = Outcome(Status.WRONG), 0
    for count in sorted(options.counts):
        for number in range(done, count):
            candidate = Candidate(rng.choice(templates), Configuration({"X": number}))
            if rng.random() < 0.1:
                failed = Outcome(Status.WRONG, f"case M={number}: {number} values wrong")
                notebook.learn(candidate, failed, None, number)
                continue
            times = tuple(CaseTiming(c.id, (rng.uniform(0.1, 1.0),), "events") for c in cases)
            outcome = Outcome(Status.MEASURED, cases=times, static=static)
            cost = objective.cost(outcome.times_ms())
            if best is None or cost < objective.cost(best_outcome.times_ms()):
                best, best_outcome = candidate, outcome
            notebook.learn(candidate, outcome, cost, number)
        done = count
        assert best is not None
        ask = Ask(3, best_outcome.times_ms(), best, best_outcome.times_ms(), "some time left")
        times_ms = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            prompt = builder.structure(notebook, ask)
            times_ms.append(1e3 * (time.perf_counter() - start))
        print(
            json.dumps({
                "experiments": count, "prompt_ms": round(statistics.median(times_ms), 2),
                "characters": len(prompt.prompt), "instructions": len(prompt.instructions),
                "resident_mb": round(resident_mb(), 1),
            })
        )  # fmt: skip


if __name__ == "__main__":
    main()
