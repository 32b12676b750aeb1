"""What the harness itself costs: starts, the round trip of a request that does nothing, and where a candidate's time goes.

Figures depend on the machine and are for the harness's developers.

    python bench/bench_harness.py [--device cpu] [--problem vector_add] [--candidates 8] [--requests 200]
"""

import asyncio
import hashlib
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from command_line import parser_of
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import CaseTiming, Outcome, Status
from kernelwright.devices.base import BuildResult, CaseSource, RunRequest, RunResult
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.setup import DEVICES, WorkerSetup
from kernelwright.harness.wire import Ceilings


class NothingMaker:
    """A device that answers at once."""

    facts = DeviceFacts("nothing", "nothing", "nothing", "", "bench-nothing", 1, 32, 1024, 1 << 16, 1 << 20, 1 << 34,
                        65536, 1 << 17, 2048, 32, "nothing")  # fmt: skip

    def prepare(self, setup: WorkerSetup) -> None:
        """Nothing."""

    def compiler(self, setup: WorkerSetup) -> tuple["NothingMaker", str]:
        """Itself."""
        del setup
        return self, "nothing"

    def runner(self, setup: WorkerSetup) -> tuple["NothingMaker", Ceilings]:
        """Itself."""
        del setup
        return self, Ceilings()

    def build(self, request: BuildRequest, scratch: Path) -> BuildResult:
        """A file with the source."""
        content = request.source.encode()
        digest = hashlib.sha256(content).hexdigest()
        (scratch / digest).write_bytes(content)
        return BuildResult(str(scratch / digest), digest)

    def run(self, request: RunRequest, source: CaseSource) -> RunResult:
        """One ms for every case."""
        del source
        timings = tuple(CaseTiming(case.case, (1.0,) * 8, "clock") for case in request.cases)
        return RunResult(Status.MEASURED, timings=timings)

    def close(self) -> None:
        """Nothing."""


def variants(harness: LocalHarness, count: int) -> list[Candidate]:
    """The baseline, made different by a comment and by a constant that lands in the binary."""
    source = harness.problem.baseline_source
    tails = (f'\nextern "C" __global__ void variant_{n}(int* out) {{ *out = {n}; }}\n' for n in range(count))
    templates = (parse_template(source + tail, f"variant {n}") for n, tail in enumerate(tails))
    return [
        Candidate(template, first_configuration(harness, template.plan.tunables)) for template in templates
    ]


def first_configuration(harness: LocalHarness, tunables: tuple[object, ...]) -> Configuration:
    """The baseline's first valid one."""
    template = parse_template(harness.problem.baseline_source)
    return template.plan.space(harness.facts).configuration(0) if tunables else Configuration()


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds."""
    begin = time.perf_counter()
    await call()
    return 1e3 * (time.perf_counter() - begin)


async def bench_requests(requests: int) -> None:
    """Starts and round trips without any work behind them."""
    harness = LocalHarness("vector_add", "nothing", compile_workers=1, maker="bench_harness:NothingMaker")
    begin = time.perf_counter()
    await harness.start()
    try:
        print(f"start with one compile worker       {time.perf_counter() - begin:10.2f} s")
        candidate = variants(harness, 1)[0]
        compiled = await harness.compile(candidate)
        for name, call in (
            ("compile, nothing to do", lambda: harness.compile(candidate)),
            ("benchmark, nothing to do", lambda: harness.benchmark(candidate, compiled)),
        ):
            times = [await timed(call) for _ in range(requests)]
            low, high = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            print(f"{name:36}{low:10.2f} ms median {high:8.2f} ms 95 %")
        await harness._worker.kill()  # noqa: SLF001 - as after a crash
        again = await timed(lambda: harness.benchmark(candidate, compiled))
        print(f"benchmark after the worker's death  {again:10.0f} ms")
    finally:
        await harness.close()


async def bench_candidates(device: str, problem: str, count: int) -> None:
    """Seconds of real candidates, split, and candidates a second with both lanes busy."""
    begin = time.perf_counter()
    async with LocalHarness(problem, device, slow_cases=device == "cpu", maker=DEVICES) as harness:
        print(f"start on {device:27}{time.perf_counter() - begin:10.2f} s")
        candidates = variants(harness, count)
        await evaluate(harness, replace(candidates[0]))  # data and right outputs are made once
        begin = time.perf_counter()
        outcomes = await asyncio.gather(*(evaluate(harness, candidate) for candidate in candidates))
        wall = time.perf_counter() - begin
    failed = [outcome for outcome in outcomes if outcome.status is not Status.MEASURED]
    if failed:
        raise SystemExit(f"{len(failed)} of {count} failed: {failed[0].status}: {failed[0].reason}")
    for part in ("compile", "check", "time", "overhead"):
        mean = statistics.mean(outcome.seconds[part] for outcome in outcomes)
        print(f"{part + ', mean':36}{mean:10.3f} s")
    print(f"candidates a second                 {count / wall:10.2f}")


async def evaluate(harness: LocalHarness, candidate: Candidate) -> Outcome:
    """Compile and benchmark."""
    compiled = await harness.compile(candidate)
    return compiled.as_outcome() if compiled.status else await harness.benchmark(candidate, compiled)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--problem", default="vector_add")
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--requests", type=int, default=200)
    options = parser.parse_args()
    asyncio.run(bench_requests(options.requests))
    asyncio.run(bench_candidates(options.device, options.problem, options.candidates))


if __name__ == "__main__":
    main()
