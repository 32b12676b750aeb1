"""Exported files in a harness of a board's protocol, against the same candidates in ours, on one GPU with PyTorch.

    python bench/bench_submission.py --device cuda:0 --json submissions.json

For each problem of ``examples/boards``: the baseline and the fast template are exported as ``submission.py``, built
(all at once), and run in a fresh process as GPU MODE's ranked runs do: new inputs for every run, L2 cleared by a fill of
256 MiB, torch events around one call, every output checked, until the standard error is below 0.1 % of the mean. Ours is
LocalHarness with events also for short cases, as boards have no graphs. Both are means in milliseconds.

Two things in such a loop have nothing to do with the candidate (docs/trust.md). A GPU reads its queue in groups of four
entries; a kernel whose group begins right before it starts up to 0.9 us later, and a loop stands wherever its own launches
put it. And a slow host is late: the fill takes 65 us, Python and two launches took 35 to 80 us. Ours stands at every place
of a group equally often and waits until all is queued. So theirs is given 0, 1, 2, 3, 0, ... launches of nothing and a
pause of half a millisecond before the fill, and is timed once more without both: "plain" is the ratio of medians then.

And a kernel that lives on atomics takes some per cent more or less by where its few counters lie in memory. So
outputs below a page of the GPU's memory change their place on both sides: theirs in both loops, ours in ``--places``
blocks of runs.
Exit code 1 when something is wrong or missing, or means differ by more than ``--limit`` and twice their standard error.
"""

import argparse
import asyncio
import importlib.util
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from command_line import parser_of

BOARDS = Path(__file__).parents[1] / "examples" / "boards"
PROBLEMS = ("vectoradd", "grayscale", "histogram", "matmul")
SOURCES = ("baseline", "fast")
MAX_RUNS = 100
CASE_S = 2.5
QUEUE_GROUP = 4
PAUSE_CYCLES = 1_000_000
PAGE, PLACES = 2 << 20, 16
BUILD_S = 120.0
"""A board's own limit."""
EVALUATE_S = 90.0
PROBLEM_S = 25.0
"""What one problem takes, both sides."""
_CASE = re.compile(r"\[\[cases\]\]\nsizes = \{([^}]*)\}\n")


@dataclass(frozen=True)
class Row:
    """One case of one candidate; ``None`` is missing.

    ``ms`` are means, which boards rank by, ``middle_ms`` medians; ``spread`` is the standard error over the mean.
    """

    problem: str
    candidate: str
    case: str
    ours_ms: float | None = None
    ours_spread: float | None = None
    theirs_ms: float | None = None
    theirs_spread: float | None = None
    theirs_runs: int | None = None
    right: bool | None = None
    error: str = ""
    ours_middle_ms: float | None = None
    theirs_middle_ms: float | None = None
    ours_mhz: int | None = None
    theirs_mhz: int | None = None
    """SM clock right after a run, as far as NVML tells; a GPU that is idle between runs may be slower."""
    plain_middle_ms: float | None = None
    """Their median without launches of nothing and pauses."""

    @property
    def middle_ratio(self) -> float | None:
        """The same of medians, which a few late launches do not move."""
        both = self.theirs_middle_ms and self.ours_middle_ms
        return self.theirs_middle_ms / self.ours_middle_ms if both else None  # type: ignore[operator]

    @property
    def plain_ratio(self) -> float | None:
        """The same of medians, of a loop without launches of nothing and pauses."""
        both = self.plain_middle_ms and self.ours_middle_ms
        return self.plain_middle_ms / self.ours_middle_ms if both else None  # type: ignore[operator]

    def agrees(self, limit: float) -> bool:
        """Whether the means are as close as asked for, or as their own errors let anybody tell (two of them)."""
        error = math.hypot(self.ours_spread or 0.0, self.theirs_spread or 0.0)
        return bool(self.right and self.ratio) and abs((self.ratio or 0.0) - 1) <= max(limit, 2 * error)

    @property
    def ratio(self) -> float | None:
        """Theirs over ours."""
        return self.theirs_ms / self.ours_ms if self.theirs_ms and self.ours_ms else None


def prepare(name: str, folder: Path, most_bytes: int) -> Path:
    """The problem's folder with the cases that are small enough; bytes are uniform, as both sides can draw them."""
    from kernelwright.core.expressions import parse
    from kernelwright.problems.loader import load_problem

    work = parse(load_problem(BOARDS / name).spec.work.bytes)
    target = folder / name
    shutil.copytree(BOARDS / name, target)
    text = (target / "problem.toml").read_text(encoding="utf-8")

    def kept(match: re.Match[str]) -> str:
        sizes = {key.strip(): int(value) for key, value in (pair.split("=") for pair in match[1].split(","))}
        return match.group() if work.evaluate(sizes) <= most_bytes else ""

    text = _CASE.sub(kept, text)
    if name == "histogram":
        uniform = 'values = { distribution = "integers", low = 0, high = 256 }\n'
        text = re.sub(r"values = \[.*\]\n", uniform, text)
    (target / "problem.toml").write_text(text, encoding="utf-8")
    return target


def candidate_of(folder: Path, source: str, facts: Any) -> Any:
    from kernelwright.core.candidate import Candidate, parse_template

    template = parse_template((folder / f"{source}.cu").read_text(encoding="utf-8"), f"{source}.cu")
    return Candidate(template, template.plan.space(facts).configuration(0))


def export(folder: Path, source: str, facts: Any, arch: str) -> Path:
    """``submission.py`` in a folder of its own."""
    from kernelwright.leaderboard.board_file import read_board_file
    from kernelwright.leaderboard.export import write_submission
    from kernelwright.problems.loader import load_problem

    board = read_board_file(folder)
    assert board.abi
    candidate = candidate_of(folder, source, facts)
    text = write_submission(
        candidate, load_problem(folder).spec.arguments, board.abi, (arch,), board.leaderboard, "H100"
    )
    path = folder / source / "submission.py"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path


# -- builds -----------------------------------------------------------------------------------------------


def environment(folder: Path) -> dict[str, str]:
    """Extensions in the temporary folder; programs beside Python and CUDA's are found."""
    found = dict(os.environ)
    homes = [found.get("CUDA_HOME"), "/usr/local/cuda", *map(str, sorted(Path("/usr/local").glob("cuda-*")))]
    home = next((h for h in homes if h and (Path(h) / "bin" / "nvcc").exists()), None)
    if home:
        found["CUDA_HOME"] = home
    extra = [str(Path(sys.executable).parent), *([f"{home}/bin"] if home else [])]
    found["PATH"] = os.pathsep.join([*extra, found.get("PATH", "")])
    found["TORCH_EXTENSIONS_DIR"] = str(folder / "extensions")
    found["MAX_JOBS"] = "2"
    return found


def start_build(path: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    """A board runs the file once by itself: that compiles it."""
    with (path.parent / "build.log").open("wb") as log:
        return subprocess.Popen([sys.executable, path.name], cwd=path.parent, env=env, stdout=log, stderr=log)


def end_builds(builds: dict[Path, subprocess.Popen[bytes]], started: float) -> dict[Path, str]:
    """What went wrong, by file."""
    faults = {}
    for path, process in builds.items():
        try:
            process.wait(timeout=max(1.0, BUILD_S - (time.monotonic() - started)))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            faults[path] = f"not built within {BUILD_S:g} s"
        if process.returncode:
            log = (path.parent / "build.log").read_text(errors="replace")
            faults.setdefault(path, f"does not build: {log.strip().splitlines()[-1] if log.strip() else '?'}")
            print(f"--- {path.parent.parent.name}/{path.parent.name}\n{log[-6000:]}", file=sys.stderr)
    return faults


# -- theirs: runs in a process of its own ---------------------------------------------------------------------


def evaluate(job: dict[str, Any]) -> list[dict[str, Any]]:
    """All cases of all submissions of one problem."""
    reference = load(job["folder"] + "/torch_reference.py", "torch_reference")
    results = []
    for source, path in job["submissions"].items():
        try:
            entry = load(path, f"submission_{source}").custom_kernel
            one_case(entry, reference, job["cases"][0]["arguments"], held=False)  # a board's warm-up
        except Exception:  # noqa: BLE001 - a stranger's process would say it too, and the others go on
            traceback.print_exc()
            results.append({"source": source, "case": "", "error": traceback.format_exc(limit=-1)[-300:]})
            continue
        for case in job["cases"]:
            found = {"source": source, "case": case["case"]}
            try:
                timed = one_case(entry, reference, dict(case["arguments"]), held=True)
                plain = (
                    one_case(entry, reference, dict(case["arguments"]), held=False) if timed["right"] else {}
                )
                results.append(found | timed | {"plain_middle_ms": plain.get("middle_ms")})
            except Exception:  # noqa: BLE001
                traceback.print_exc()
                results.append(found | {"error": traceback.format_exc(limit=-1)[-300:]})
    return results


def load(path: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def one_case(entry: Any, reference: Any, arguments: dict[str, int], *, held: bool) -> dict[str, Any]:
    """Mean and standard error in ms; every output is checked. ``held``: at all places of the queue, which is ahead."""
    import torch

    clock = sm_clock()
    clocks: list[int] = []
    pages = torch.empty(PLACES * PAGE, dtype=torch.uint8, device="cuda")
    first = True  # checked and not timed, as boards do
    samples: list[float] = []
    began = time.monotonic()
    while len(samples) < MAX_RUNS:
        arguments["seed"] += 13
        data = reference.generate_input(**arguments)
        data = (*data[:-1], elsewhere(data[-1], len(samples) // QUEUE_GROUP % PLACES, pages))
        copy = tuple(tensor.clone() for tensor in data)
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for cycles in [PAUSE_CYCLES, *[0] * (len(samples) % QUEUE_GROUP)] if held else []:
            torch.cuda._sleep(cycles)  # noqa: SLF001 - PyTorch has no other launch of nothing
        torch.empty((32, 1024, 1024), dtype=torch.int64, device="cuda").fill_(42)  # clears L2
        start.record()
        output = entry(data)
        end.record()
        torch.cuda.synchronize()
        clocks += [clock()] if clock else []
        if not reference.is_right(copy, output):
            return {"right": False, "error": f"wrong in run {len(samples) + 1}"}
        if not all(torch.equal(a, b) for a, b in zip(copy[:-1], data[:-1], strict=True)):
            return {"right": False, "error": "an input was changed"}
        samples += [] if first else [start.elapsed_time(end)]
        first = False
        if len(samples) > 2:
            mean, error = mean_and_error(samples)
            if error < 0.001 * mean or time.monotonic() - began > CASE_S:
                break
    mean, error = mean_and_error(samples)
    middle = statistics.median(samples)
    mhz = int(statistics.median(clocks)) if clocks else None
    found = {"right": True, "ms": mean, "spread": error / mean, "runs": len(samples)}
    return found | {"middle_ms": middle, "mhz": mhz}


def elsewhere(output: Any, place: int, pages: Any) -> Any:
    """A small output's like in another page, somewhere in it; large ones have pages of their own."""
    nbytes = output.numel() * output.element_size()
    if nbytes > PAGE // 2:
        return output
    start = place * (PAGE + 4096)
    return pages[start : start + nbytes].view(output.dtype).view(output.shape)


def sm_clock() -> Callable[[], int] | None:
    """Reads the first GPU's SM clock in MHz; ``None`` where NVML cannot be asked."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
    except Exception:  # noqa: BLE001 - it explains a number, nothing hangs on it
        return None
    return lambda: int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))


def mean_and_error(samples: list[float]) -> tuple[float, float]:
    mean = statistics.fmean(samples)
    return mean, statistics.stdev(samples) / math.sqrt(len(samples)) if len(samples) > 1 else math.inf


def theirs(folder: Path, submissions: dict[str, str], env: dict[str, str]) -> list[dict[str, Any]]:
    from kernelwright.leaderboard.board_file import read_board_file
    from kernelwright.problems.loader import load_problem

    ours = {case.id for case in load_problem(folder).cases(slow=False)}
    cases: dict[str, dict[str, Any]] = {}
    for case in read_board_file(folder).cases:
        arguments = dict(case.arguments) | ({"contention": 0} if "contention" in case.arguments else {})
        if case.case in ours:
            cases.setdefault(case.case, {"case": case.case, "arguments": arguments})
    job, answer = folder / "job.json", folder / "answer.json"
    job.write_text(
        json.dumps({"folder": str(folder), "submissions": submissions, "cases": list(cases.values())})
    )
    command = [sys.executable, str(Path(__file__).resolve()), "--evaluate", str(job), str(answer)]
    try:
        subprocess.run(command, env=env, check=True, timeout=EVALUATE_S)
        found: list[dict[str, Any]] = json.loads(answer.read_text())
    except (OSError, ValueError, subprocess.SubprocessError):
        traceback.print_exc()
        found = [
            {"source": s, "case": "", "error": "the evaluating process ended early"} for s in submissions
        ]
    return found


# -- ours -------------------------------------------------------------------------------------------------


async def ours(folder: Path, device: str, places: int) -> dict[tuple[str, str], dict[str, Any]]:
    """By source and case; ``places`` blocks of runs, each with its outputs at other addresses."""
    from kernelwright.devices.base import TimingProtocol
    from kernelwright.harness.local import LocalHarness

    found: dict[tuple[str, str], dict[str, Any]] = {}
    timing = TimingProtocol(runs=40 // places + 5, dropped=5, graph_below_ms=0.0)
    async with LocalHarness(
        folder, device, compile_workers=2, timing=timing, maker="scattered:Maker"
    ) as harness:
        for source in SOURCES:
            candidate = candidate_of(folder, source, harness.facts)
            compiled = await harness.compile(candidate)
            outcomes = (
                [compiled.as_outcome()]
                if compiled.status
                else [await harness.benchmark(candidate, compiled) for _ in range(places)]
            )
            found |= {(source, case): result for case, result in pooled(outcomes, f"{folder.name}/{source}")}
    return found


def pooled(outcomes: list[Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What all blocks of runs say of each case, or the first fault."""
    from kernelwright.core.outcome import Status

    for finding in dict.fromkeys(finding for outcome in outcomes for finding in outcome.findings):
        print(f"ours: {name}: {finding}", file=sys.stderr)
    for outcome in outcomes:
        if outcome.status is not Status.MEASURED:
            print(f"ours: {name}: {outcome.status} {outcome.reason}", file=sys.stderr)
            yield "", {"error": f"{outcome.status}: {outcome.reason}"}
            return
    for blocks in zip(*(outcome.cases for outcome in outcomes), strict=True):
        samples = [sample for block in blocks for sample in block.samples_ms]
        mean, error = mean_and_error(samples)
        conditions = blocks[-1].conditions
        yield blocks[0].case, {
            "ms": mean, "spread": error / mean, "middle_ms": statistics.median(samples),
            "mhz": conditions.sm_clock_mhz if conditions else None,
        }  # fmt: skip


def joined(
    name: str,
    mine: dict[tuple[str, str], dict[str, Any]],
    board: list[dict[str, Any]],
    faults: dict[str, str],
) -> list[Row]:
    by_case = {(entry["source"], entry["case"]): entry for entry in board}
    cases = list(dict.fromkeys(case for _, case in [*mine, *by_case] if case)) or [""]
    rows = []
    for source in SOURCES:
        for case in cases:
            a = mine.get((source, case), mine.get((source, ""), {"error": "ours: not measured"}))
            b = by_case.get((source, case), by_case.get((source, ""), {"error": "theirs: not measured"}))
            error = "; ".join(filter(None, (faults.get(source), a.get("error"), b.get("error"))))
            rows.append(
                Row(
                    name,
                    source,
                    case,
                    a.get("ms"),
                    a.get("spread"),
                    b.get("ms"),
                    b.get("spread"),
                    b.get("runs"),
                    b.get("right"),
                    " ".join(error.split()),
                    a.get("middle_ms"),
                    b.get("middle_ms"),
                    a.get("mhz"),
                    b.get("mhz"),
                    b.get("plain_middle_ms"),
                )
            )
    return rows


def measure(options: argparse.Namespace, root: Path) -> Iterator[list[Row]]:
    """Rows of one problem after the other, as soon as they are there."""
    from kernelwright.leaderboard.export.targets import gpu_facts

    began, env = time.monotonic(), environment(root)
    facts = gpu_facts(options.gpu)
    folders = {name: prepare(name, root, options.most_bytes) for name in options.problems}
    paths = {(n, s): export(folder, s, facts, facts.arch) for n, folder in folders.items() for s in SOURCES}
    builds = {path: start_build(path, env) for path in paths.values()}
    mine = {name: guarded(folder, options) for name, folder in folders.items()} if options.overlap else {}
    faults = end_builds(builds, began)
    print(f"built after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    for name, folder in folders.items():
        if time.monotonic() - began > options.budget - PROBLEM_S:
            print(f"{name}: left out, {options.budget:g} s are not enough for it", file=sys.stderr)
            yield [Row(name, source, "", error="left out: no time") for source in SOURCES]
            continue
        if name not in mine:
            mine[name] = guarded(folder, options)
        broken = {s: faults[paths[name, s]] for s in SOURCES if paths[name, s] in faults}
        good = {s: str(paths[name, s]) for s in SOURCES if s not in broken}
        yield joined(name, mine[name], theirs(folder, good, env) if good else [], broken)
        print(f"{name} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def guarded(folder: Path, options: argparse.Namespace) -> dict[tuple[str, str], dict[str, Any]]:
    try:
        return asyncio.run(ours(folder, options.device, options.places))
    except Exception as error:  # noqa: BLE001 - the other problems are measured all the same
        traceback.print_exc()
        return {(source, ""): {"error": f"ours: {error}"} for source in SOURCES}


def show(rows: list[Row]) -> None:
    print(
        f"{'problem':10} {'candidate':9} {'case':22} {'ours ms':>9} {'theirs ms':>9} {'means':>7} {'medians':>7} {'plain':>7}  result"
    )
    for row in rows:
        numbers = [f"{v:9.5f}" if v else f"{'-':>9}" for v in (row.ours_ms, row.theirs_ms)]
        numbers += [f"{v:7.4f}" if v else f"{'-':>7}" for v in (row.ratio, row.middle_ratio, row.plain_ratio)]
        result = "right" if row.right else "WRONG" if row.right is False else "missing"
        runs = (
            f" ({row.theirs_runs} runs, +-{row.theirs_spread:.2%})" if row.theirs_spread is not None else ""
        )
        clocks = f" {row.ours_mhz or '?'}/{row.theirs_mhz or '?'} MHz"
        print(
            f"{row.problem:10} {row.candidate:9} {row.case:22} {' '.join(numbers)}  {result}{runs}{clocks} {row.error}"
        )


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--gpu", default="H200", help="the GPU's name, for architecture and plans")
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument(
        "--most-bytes", type=int, default=2**28, help="larger cases take long to draw and are left out"
    )
    parser.add_argument("--limit", type=float, default=0.02)
    parser.add_argument("--overlap", action="store_true", help="measure ours while the builds run")
    parser.add_argument(
        "--places", type=int, default=4, help="blocks of runs of ours, outputs at new addresses"
    )
    parser.add_argument(
        "--budget", type=float, default=145.0, help="seconds: no problem is begun that may not end"
    )
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--keep", type=Path, default=None, help="where the exported files stay")
    parser.add_argument("--evaluate", nargs=2, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.evaluate:
        job, answer = map(Path, options.evaluate)
        answer.write_text(json.dumps(evaluate(json.loads(job.read_text()))))
        return 0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        for found in measure(options, Path(temporary)):
            rows += found
            show(found)
            if options.json:
                table = [asdict(row) | {"ratio": row.ratio} for row in rows]
                options.json.write_text(json.dumps(table, indent=1))
        if options.keep:
            shutil.copytree(
                temporary, options.keep, ignore=shutil.ignore_patterns("extensions"), dirs_exist_ok=True
            )
    limit = options.limit
    right = sum(bool(row.right) for row in rows)
    means = sum(row.ratio is not None and abs(row.ratio - 1) <= limit for row in rows)
    middles, plain = (
        sum(ratio is not None and abs(ratio - 1) <= limit for ratio in ratios)
        for ratios in ([row.middle_ratio for row in rows], [row.plain_ratio for row in rows])
    )
    agree = sum(row.agrees(limit) for row in rows)
    print(
        f"of {len(rows)}: right {right}; means within {limit:.0%} {means}, or within twice their standard error {agree}; "
        f"medians within {limit:.0%} {middles}, plain {plain}"
    )
    return 0 if rows and agree == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
