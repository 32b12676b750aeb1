"""How far honest kernels stay from a tolerance, in every case and trial: how likely a check refuses what is right.

    python bench/bench_margins.py --device cuda:0 --seeds 3

The baseline of each bundled problem and a configuration from the middle of each space of its catalogue meet all trials,
once a seed: other inputs, other sizes off the list. A row a problem: its worst error in multiples of the tolerance, where
it was, and what was refused. Exit code 1 when anything was refused, or an error passed the limit of 0.5.
"""

import argparse
import asyncio
import json
import sys
from typing import Any

from command_line import parser_of
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.outcome import Status
from kernelwright.generation.catalogue import Catalogue
from kernelwright.harness.local import LocalHarness
from kernelwright.problems.loader import bundled_names
from kernelwright.problems.tolerance import TIGHT


async def measure(problem: str, seed: int, device: str, row: dict[str, Any]) -> None:
    """One problem with one seed; adds to ``row``."""
    async with LocalHarness(problem, device, seed=seed, slow_cases=device == "cpu") as harness:
        templates = [parse_template(harness.problem.baseline_source, "baseline.cu")]
        catalogue = Catalogue(harness.problem)
        while (proposal := await catalogue.propose()) is not None:
            templates.append(proposal.template)
        for template in templates:
            space = template.plan.space(harness.facts)
            candidate = Candidate(template, space.configuration(len(space) // 2))
            compiled = await harness.compile(candidate)
            if compiled.status is not None:
                row["not_built"] += 1
                continue
            result = await harness.try_all(candidate, compiled)
            row["kernels"] += 1
            if result.status is not Status.MEASURED:
                row["refused"].append(f"{template.name}, seed {seed}: {result.reason}")
            for case, error in result.errors:
                if error > row["worst"]:
                    row |= {"worst": error, "where": f"{template.name}, seed {seed}, {case}"}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--problems", nargs="+", default=list(bundled_names()))
    parser.add_argument("--seeds", type=int, default=3)
    options: argparse.Namespace = parser.parse_args()
    ok = True
    for problem in options.problems:
        row: dict[str, Any] = {"kernels": 0, "not_built": 0, "refused": [], "worst": 0.0, "where": ""}
        for seed in range(options.seeds):
            asyncio.run(measure(problem, seed, options.device, row))
        ok = ok and not row["refused"] and row["worst"] <= TIGHT
        print(json.dumps({"problem": problem, **row}), flush=True)
    if not ok:
        sys.exit(1)


if __name__ == "__main__":
    main()
