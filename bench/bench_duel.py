"""How sure a duel is, on one device, by the product's own path (LocalHarness and core.statistics).

    python bench/bench_duel.py --device cuda:0

Three parts, one JSON line each and a table at the end; exit code 1 when a figure misses its limit:

* ``equal``: a candidate against its copy (other text, same binary) on mid cases of three problems. Promoted: 1 % at most.
* ``one_percent``: two kernels whose times are 1 % apart, by a chain of dependent operations in a launch of its own that
  this script tunes by measuring. Ordered rightly (the faster one promoted, the slower one kept out): 99 % at least.
* ``spread``: medians of one candidate, taken as a campaign's end takes those that it reports, from fresh worker
  processes, for kernels over 50 us: (max - min) / median 0.5 % at most.
"""

import argparse
import asyncio
import contextlib
import json
import math
import re
import shutil
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command_line import parser_of
from kernelwright.campaign.duels import CONFIRMATION_LOOKS, STEADY_S
from kernelwright.campaign.steady import in_parts, more_rounds
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.core.outcome import Status
from kernelwright.core.statistics import LOOKS, Decision, Verdict, decide, medians
from kernelwright.devices.base import DuelCase
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import Built
from kernelwright.problems.loader import Problem, load_problem

PROBLEMS = ("gemm", "softmax", "reduce_sum")
APART = 0.01
LONG_MS = 0.05
TOGETHER = 5
LIMITS = {"equal": 0.01, "one_percent": 0.99, "spread": 0.005}
OBJECTIVE = Objective(ObjectiveName.MEAN)

CHAIN = """
// A chain of dependent operations: its time is its length.
extern "C" __global__ void chain(unsigned* sink, int length)
{
    unsigned x = 2463534242u;
    for (int i = 0; i < length; ++i) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    sink[0] = x;
}
"""


@dataclass
class Tally:
    """What the comparisons of one part took and gave."""

    seconds: list[float] = field(default_factory=list)
    device_seconds: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Means over the comparisons; ``ratio_cv`` is the spread of the estimated ratios."""
        return {
            "comparisons": len(self.rounds),
            "wall_seconds_each": round(statistics.fmean(self.seconds), 4),
            "device_seconds_each": round(statistics.fmean(self.device_seconds), 4),
            "rounds_each": round(statistics.fmean(self.rounds), 1),
            "ratio_mean": statistics.fmean(self.ratios),
            "ratio_cv": statistics.pstdev(self.ratios),
        }


def source(problem_source: str, comment: str, chain: int | None = None) -> str:
    """The baseline with another comment, and a chain of operations before it when wanted."""
    if chain is None:
        return f"{problem_source}\n// {comment}\n"
    head, found, body = problem_source.partition("[[launch]]")
    if not found:
        raise SystemExit("the baseline has no [[launch]] to put the chain before")
    launch = f'[[launch]]\nkernel = "chain"\ngrid = [1]\nblock = [1]\nargs = ["sink", "{chain}"]\n'
    table = 'sink = { dtype = "uint32", shape = [1] }\n'
    scratch = (
        head.replace("[scratch]\n", f"[scratch]\n{table}")
        if "[scratch]" in head
        else head + f"[scratch]\n{table}"
    )
    return f"{scratch}{launch}{found}{body}\n// {comment}\n{CHAIN}"


async def build(harness: LocalHarness, text: str) -> Built:
    """Compile; ends the script when that fails."""
    template = parse_template(text, "bench")
    configuration = (
        template.plan.space(harness.facts).configuration(0) if template.plan.tunables else Configuration()
    )
    candidate = Candidate(template, configuration)
    compiled = await harness.compile(candidate)
    if compiled.status is not None:
        raise SystemExit(f"{harness.problem.name}: {compiled.status}: {compiled.reason}\n{compiled.log}")
    return Built(candidate, compiled)


async def compare(
    harness: LocalHarness, sides: tuple[Built, Built], cases: Iterable[str], tally: Tally
) -> Decision:
    """One duel as a campaign fights it: look by look, as its first."""
    batches: list[tuple[DuelCase, ...]] = []
    before, device, start = 0, 0.0, time.perf_counter()
    for look in LOOKS:
        result = await harness.duel(*sides, look - before, tuple(cases))
        if result.status is not Status.MEASURED:
            raise SystemExit(f"{harness.problem.name}: {result.at_fault}: {result.status}: {result.reason}")
        before, device = look, device + result.seconds
        batches.append(result.cases)
        decision = decide(batches, OBJECTIVE, 1)
        if decision.verdict is not Verdict.MORE:
            break
    tally.seconds.append(time.perf_counter() - start)
    tally.device_seconds.append(device)
    tally.rounds.append(decision.rounds)
    tally.ratios.append(decision.ratio or math.nan)
    return decision


def middle_case(harness: LocalHarness) -> str:
    """A case of middling work."""
    return harness.cases[len(harness.cases) // 2].id


def open_harness(options: argparse.Namespace, problem: str) -> LocalHarness:
    """On the cpu the small cases, without its checked mode."""
    slow = not options.device.startswith("cuda")
    return LocalHarness(problem, options.device, slow_cases=slow, compile_workers=2, checked=False)


async def equal(options: argparse.Namespace) -> dict[str, Any]:
    """A/A."""
    tally, promoted = Tally(), 0
    for index, problem in enumerate(options.problems):
        number = (options.comparisons + index) // len(options.problems)
        async with open_harness(options, problem) as harness:
            text = harness.problem.baseline_source
            copies = [await build(harness, source(text, f"copy {n}")) for n in range(2)]
            case = middle_case(harness)
            for trial in range(number):
                sides = (copies[trial % 2], copies[1 - trial % 2])
                promoted += (await compare(harness, sides, [case], tally)).verdict is Verdict.PROMOTE
    share = promoted / len(tally.rounds)
    return {"promoted": promoted, "share": share, "ok": share <= LIMITS["equal"], **tally.figures()}


async def one_percent(options: argparse.Namespace) -> dict[str, Any]:
    """Two kernels 1 % apart, each the challenger in half of the trials."""
    tally, right = Tally(), 0
    async with open_harness(options, options.problems[0]) as harness:
        case = middle_case(harness)
        text = harness.problem.baseline_source
        length, more = await tuned(harness, text, case)
        fast = await build(harness, source(text, "fast", length))
        slow = await build(harness, source(text, "slow", length + more))
        for trial in range(options.comparisons):
            faster = trial % 2 == 0
            sides = (fast, slow) if faster else (slow, fast)
            decision = await compare(harness, sides, [case], Tally() if not faster else tally)
            right += decision.verdict is (Verdict.PROMOTE if faster else Verdict.KEEP)
    share = right / options.comparisons
    return {
        "right": right, "share": share, "ok": share >= LIMITS["one_percent"], "chain": [length, length + more],
        "trials": options.comparisons, **tally.figures(),
    }  # fmt: skip


async def tuned(harness: LocalHarness, text: str, case: str) -> tuple[int, int]:
    """Length of the chain and what makes it 1 % slower, from duels of known lengths."""
    length = 2000
    while True:
        sides = [await build(harness, source(text, f"tune {n}", n)) for n in (2 * length, length)]
        result = await harness.duel(sides[0], sides[1], LOOKS[-1], [case])
        if not result.cases:
            raise SystemExit(f"{harness.problem.name}: {result.status}: {result.reason}")
        longer, shorter = (
            statistics.median(samples)
            for samples in (result.cases[0].challenger_ms, result.cases[0].incumbent_ms)
        )
        if longer > 1.02 * shorter or length > 1 << 28:
            return length, max(1, round(APART * shorter / ((longer - shorter) / length)))
        length *= 2


def smaller(problem: Problem, largest: int | None, place: Path) -> str:
    """The problem, or its folder without the cases that have a larger size: inputs of large ones take long to draw."""
    if largest is None:
        return str(problem.folder)
    kept = [case.sizes for case in problem.spec.cases if max(case.sizes.values()) <= largest]
    head, *blocks = re.split(r"(?=^\[\[(?:slow_)?cases\]\])", problem_toml(problem), flags=re.MULTILINE)
    chosen = [b for b in blocks if b.startswith("[[slow") or tomllib.loads(b)["cases"][0]["sizes"] in kept]
    folder = place / problem.name
    shutil.copytree(problem.folder, folder)
    (folder / "problem.toml").write_text(head + "".join(chosen), encoding="utf-8")
    return str(folder)


def problem_toml(problem: Problem) -> str:
    return (problem.folder / "problem.toml").read_text(encoding="utf-8")


async def reported(harness: LocalHarness) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The baseline's medians in ms by case, taken as a campaign takes those that it reports at its end.

    Also the medians of the duels of which they are made: what differs between them has other reasons than the process.
    """
    sides = [await build(harness, source(harness.problem.baseline_source, name)) for name in ("one", "two")]
    batches = [(await harness.duel(sides[0], sides[1], sum(CONFIRMATION_LOOKS))).cases]
    more, cases = more_rounds(batches, STEADY_S)
    parts: dict[str, list[float]] = {}
    for rounds in in_parts(more):
        batches.append((await harness.duel(sides[0], sides[1], rounds, cases)).cases)
        for name, ms in medians(batches[-1:], "incumbent_ms").items():
            parts.setdefault(name, []).append(ms)
    if not all(batches):
        raise SystemExit(f"{harness.problem.name}: a duel of the baseline with its copy was not measured")
    return medians(batches, "incumbent_ms"), parts


async def spread(options: argparse.Namespace) -> dict[str, Any]:
    """Medians from fresh processes. A few start together, then each measures while the others rest."""
    medians: dict[str, list[float]] = {}
    within: dict[str, list[float]] = {}
    left = options.processes
    place = tempfile.TemporaryDirectory(prefix="kernelwright-spread-")
    problem = smaller(load_problem(options.problems[0]), options.largest, Path(place.name))
    while left > 0:
        group = [open_harness(options, problem) for _ in range(min(TOGETHER, left))]
        left -= len(group)
        print(f"{options.processes - left} of {options.processes} processes", file=sys.stderr, flush=True)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(place.cleanup if not left else lambda: None)
            await asyncio.gather(*(harness.start() for harness in group))
            for harness in group:
                stack.push_async_callback(harness.close)
            for harness in group:
                found, parts = await reported(harness)
                print(json.dumps(found), file=sys.stderr, flush=True)
                for name, each in parts.items():
                    within.setdefault(name, []).append(statistics.pstdev(each) / statistics.fmean(each))
                for name, ms in found.items():
                    medians.setdefault(name, []).append(ms)
    cases = {
        name: {
            "median_ms": statistics.median(times),
            "range": (max(times) - min(times)) / statistics.median(times),
            "cv": statistics.pstdev(times) / statistics.fmean(times),
            "cv_within": statistics.fmean(within.get(name, [math.nan])),
        }
        for name, times in medians.items()
    }
    worst = max((c["range"] for c in cases.values() if c["median_ms"] > LONG_MS), default=math.nan)
    return {"processes": options.processes, "worst": worst, "ok": worst <= LIMITS["spread"], "cases": cases}


PARTS = {"equal": equal, "one_percent": one_percent, "spread": spread}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument(
        "--problems", nargs="+", default=list(PROBLEMS), help="the first one also for parts 2 and 3"
    )
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--largest", type=int, help="spread: leave out cases with a larger size")
    options = parser.parse_args()
    rows = {}
    for part in options.parts:
        start = time.perf_counter()
        rows[part] = asyncio.run(PARTS[part](options))
        rows[part]["wall_seconds"] = round(time.perf_counter() - start, 1)
        print(json.dumps({"part": part, "device": options.device, **rows[part]}), flush=True)
    for part, row in rows.items():
        figure = row["worst"] if part == "spread" else row["share"]
        verdict = "ok" if row["ok"] else "MISSED"
        print(f"{part:12} {figure:9.4%}  limit {LIMITS[part]:.1%}  {row['wall_seconds']:7.1f} s  {verdict}")
    if not all(row["ok"] for row in rows.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
