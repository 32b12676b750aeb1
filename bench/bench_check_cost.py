"""GPU time that checks and statistics add to a screening evaluation in steady state, on a CUDA device.

    python bench/bench_check_cost.py --device cuda:0 --problem gemm --candidates 60

Random configurations of the problem's catalogue go through LocalHarness as in a campaign: each is screened against the
best so far, contenders get the trials, one whose medians are better fights a duel. In the device worker a subclass of
this script's puts CUDA events around what belongs to checks. *Timing* is what a harness without checks needs too: timed
runs, clearing of the L2 cache, restoring and poisoning of outputs. *Checks and statistics* are the checked first runs,
comparisons, guard bands, fingerprints, trials and duels. Counted over the second half of the candidates; limit 40 %.
Ends with one JSON line; exit code 1 above the limit.
"""

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bench_duel import OBJECTIVE, Tally, compare
from command_line import parser_of
from kernelwright.core.candidate import Candidate
from kernelwright.core.outcome import Status
from kernelwright.core.screen import Screen
from kernelwright.core.statistics import Verdict
from kernelwright.devices.base import CaseSource, DuelRequest, DuelResult, RunRequest, RunResult
from kernelwright.devices.cuda import CudaRunner
from kernelwright.devices.cuda.gpu import Gpu
from kernelwright.devices.cuda.operations import Operation
from kernelwright.generation.catalogue import Catalogue
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import Built
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import Ceilings
from kernelwright.harness.worker.devices import DeviceMaker

LIMIT = 0.4
MARK = "bench gpu ms: "
CHECKS = ("kw_compare", "kw_guard", "kw_hash", "kw_fill_shared", "kw_fill_local")
Run = Callable[..., bool]


class Meter:
    """Wraps a GPU's ``run``: milliseconds of device time on checks and on everything."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.spent = gpu, {"timing": 0.0, "checks": 0.0}
        self._run: Run = gpu.run
        self._events: list[Any] = []
        self.all_checks = False
        gpu.run = self  # type: ignore[method-assign, assignment]

    def __call__(
        self, operations: Sequence[Operation], timeout_s: float, *, gated: bool, **more: Any
    ) -> bool:
        """Run with events where the kind of work changes."""
        if not operations:
            return self._run(operations, timeout_s, gated=gated, **more)
        marked: list[Operation] = []
        kinds: list[str] = []
        for operation in operations:
            checks = self.all_checks or not gated or operation.what.startswith(CHECKS)
            kind = "checks" if checks else "timing"
            if not kinds or kinds[-1] != kind:
                marked.append(self._record(len(kinds)))
                kinds.append(kind)
            marked.append(operation)
        marked.append(self._record(len(kinds)))
        done = self._run(marked, timeout_s, gated=gated, **more)
        for index, kind in enumerate(kinds if done else []):
            start, stop = self._events[index : index + 2]
            self.spent[kind] += self.gpu.driver.elapsed_ms(start, stop)
        return done

    def _record(self, index: int) -> Operation:
        driver = self.gpu.driver
        while len(self._events) <= index:
            self._events.append(driver.event())
        return Operation(driver.api.cuEventRecord, (self._events[index], driver.stream), "cuEventRecord")

    def take(self) -> str:
        """What was spent since the last call, as a finding."""
        text = MARK + json.dumps(self.spent)
        self.spent = dict.fromkeys(self.spent, 0.0)
        return text


class MeteredRunner(CudaRunner):
    """Tells with every result what it took."""

    meter: Meter

    def run(self, request: RunRequest, source: CaseSource) -> RunResult:
        """As always; a request that only checks is all checks."""
        self.meter.all_checks = request.check_only
        result = super().run(request, source)
        return replace(result, findings=(*result.findings, self.meter.take()))

    def duel(self, request: DuelRequest, source: CaseSource) -> DuelResult:
        """As always, all statistics."""
        self.meter.all_checks = True
        result = super().duel(request, source)
        return replace(result, findings=(*result.findings, self.meter.take()))


class Maker(DeviceMaker):
    """The product's devices, metered."""

    def runner(self, setup: WorkerSetup) -> tuple[Any, Ceilings]:
        """As always, with a meter on the finished runner."""
        runner, ceilings = super().runner(setup)
        if not isinstance(runner, CudaRunner):
            raise SystemExit("bench_check_cost.py measures a CUDA device")
        runner.__class__ = MeteredRunner
        runner.meter = Meter(runner.gpu)  # type: ignore[attr-defined]
        return runner, ceilings


class MeteredHarness(LocalHarness):
    """Adds up what duels took."""

    spent: Counter[str]

    async def duel(self, *arguments: Any, **more: Any) -> DuelResult:
        """As always."""
        result = await super().duel(*arguments, **more)
        self.spent.update(read(result.findings))
        return result


def read(findings: Sequence[str]) -> Counter[str]:
    """What the meter says."""
    total: Counter[str] = Counter()
    for finding in findings:
        if finding.startswith(MARK):
            total.update(json.loads(finding.removeprefix(MARK)))
    return total


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Evaluate as a campaign does; GPU milliseconds of the second half."""
    harness = MeteredHarness(options.problem, options.device, maker="bench_check_cost:Maker")
    harness.spent, statuses, duels, contenders = Counter(), Counter[str](), 0, 0
    tally, best, leader = Tally(), None, None
    async with harness:
        for number, candidate in enumerate(await candidates(harness, options)):
            if number == options.candidates // 2:
                harness.spent.clear()
                duels = contenders = 0
            compiled = await harness.compile(candidate)
            if compiled.status is not None:
                continue
            screen = Screen(OBJECTIVE, best) if best else None
            outcome = await harness.benchmark(candidate, compiled, screen)
            statuses[outcome.status] += 1
            harness.spent.update(read(outcome.findings))
            if outcome.status is not Status.MEASURED:
                continue
            times, built = outcome.times_ms(), Built(candidate, compiled)
            contenders += screen is None or screen.is_contender(times)
            if best is None or leader is None:
                best, leader = times, built
            elif OBJECTIVE.cost(times) < OBJECTIVE.cost(best):
                duels += 1
                decision = await compare(harness, (built, leader), times, tally)
                if decision.verdict is Verdict.PROMOTE:
                    best, leader = times, built
    added = harness.spent["checks"] / harness.spent["timing"]
    return {
        "problem": options.problem, "timing_ms": harness.spent["timing"], "checks_ms": harness.spent["checks"],
        "added": added, "ok": added <= LIMIT, "statuses": statuses, "contenders": contenders, "duels": duels,
    }  # fmt: skip


async def candidates(harness: LocalHarness, options: argparse.Namespace) -> list[Candidate]:
    """Random configurations of the catalogue's templates."""
    rng, catalogue, found = random.Random(options.seed), Catalogue(harness.problem), []
    templates = []
    while (proposal := await catalogue.propose()) is not None:
        templates.append(proposal.template)
    spaces = [template.plan.space(harness.facts) for template in templates]
    for number in range(options.candidates):
        template, space = templates[number % len(templates)], spaces[number % len(templates)]
        found.append(Candidate(template, space.configuration(rng.randrange(len(space)))))
    return found


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--problem", default="gemm")
    parser.add_argument("--candidates", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    row = asyncio.run(measure(parser.parse_args()))
    print(json.dumps(row))
    if not row["ok"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
