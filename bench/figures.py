"""Every published figure of a GPU from one command, each part with a time limit and what it printed kept.

    python bench/figures.py --device cuda:0 --out figures [--only spread,replay] [--seconds 1500]

Parts run one after another, the shorter first; one that fails or takes too long does not keep the others from running.
``--seconds`` bounds them all: a part that no longer fits is left out and said so. ``--list`` shows the commands. Exit
code 1 when a part failed, was cut off, or was left out.
"""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from command_line import parser_of
from recorded_campaigns import RECORDED, packed, unpack

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
PYTHON = sys.executable


@dataclass(frozen=True)
class Part:
    """A command, the longest that it may take, and where its figures are published."""

    name: str
    limit_s: float
    published: str
    words: tuple[str, ...]


def bench(script: str, *words: str) -> tuple[str, ...]:
    return (PYTHON, str(BENCH / script), *words)


def kernelwright(*words: str) -> tuple[str, ...]:
    return (PYTHON, "-m", "kernelwright", *words)


def parts(device: str, out: Path) -> list[Part]:
    """In the order in which they run."""
    replays = [
        Part(
            f"replay_{name}",
            120.0,
            "docs/results.md",
            kernelwright(
                "replay",
                "last",
                "--dir",
                str(out / "memories" / name),
                "--device",
                device,
                "--problem",
                problem,
            ),
        )
        for name, problem in RECORDED.items()
    ]
    problems = ("softmax", "reduce_sum", "gemm", "examples/layer_norm")
    live = ("--seconds", "60", "--compile-workers", "12", "--dir", str(out / "live"))
    return [
        Part("doctor", 20.0, "-", kernelwright("doctor")),
        Part("torch", 60.0, "docs/results.md", bench("bench_torch.py", "--problems", *problems)),
        *replays,
        Part("bottlenecks", 120.0, "docs/profiling.md", bench("bench_bottlenecks.py", "--device", device)),
        Part("profile", 40.0, "docs/profiling.md", kernelwright(*PROFILE, "--level", "2")),
        Part("campaign", 120.0, "-", kernelwright("run", "gemm", "--device", device, *live)),
        Part("seen", 20.0, "-", kernelwright("show", "last", "--dir", str(out / "live"))),
        Part("climb", 300.0, "docs/boards.md", bench("climb.py", "--device", device, "--seconds", "90")),
        Part("submissions", 170.0, "docs/boards.md", bench("bench_submission.py", "--device", device)),
        Part("attacks", 120.0, "docs/trust.md", (PYTHON, "-m", "tests.harness.attacks")),
        Part("gauntlet", 420.0, "docs/gauntlet.md", kernelwright("gauntlet", "--device", device)),
        Part("spread", 280.0, "docs/trust.md", bench("bench_duel.py", *SPREAD, "--device", device)),
        Part("places", 30.0, "docs/trust.md", bench("bench_places.py")),
        Part("turn", 20.0, "docs/trust.md", bench("bench_turn.py")),
        Part("queue", 20.0, "docs/trust.md", bench("bench_queue.py")),
        Part("compilers", 420.0, "docs/trust.md", bench("bench_compilers.py", "--device", device)),
        Part("duels", 120.0, "docs/trust.md", bench("bench_duel.py", *DUELS, "--device", device)),
        Part("checks", 60.0, "docs/trust.md", bench("bench_check_cost.py", "--device", device)),
        Part("margins", 240.0, "docs/trust.md", bench("bench_margins.py", "--device", device)),
        Part("tests", 480.0, "-", (PYTHON, "-m", "pytest", "-m", "gpu", "-q", str(ROOT / "tests" / "gpu"))),
    ]


PROFILE = ("profile", "src/kernelwright/problems/bundled/gemm/baseline.cu", "--problem", "gemm")
SPREAD = ("--parts", "spread", "--largest", "600")
DUELS = ("--parts", "equal", "one_percent")


def lay_out(out: Path) -> None:
    """Memories of recorded campaigns, writable: a newer version brings them up to date first."""
    from kernelwright.memory.store import Memory

    for name in RECORDED:
        with Memory.open(unpack(packed(name), out / "memories" / name), create=False):
            pass


def run(part: Part, out: Path, limit_s: float) -> str:
    """What became of it; its output goes into a file as it comes."""
    start = time.monotonic()
    with (out / f"{part.name}.txt").open("wb") as file:
        process = subprocess.Popen(
            part.words, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"cut off after {limit_s:.0f} s"
    took = time.monotonic() - start
    return f"done in {took:.0f} s" if code == 0 else f"exit code {code} after {took:.0f} s"


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--out", type=Path, default=Path("figures"))
    parser.add_argument("--only", default="", help="names with commas")
    parser.add_argument("--seconds", type=float, default=3600.0, help="for everything")
    parser.add_argument("--list", action="store_true", help="show the commands and end")
    options = parser.parse_args()
    out = options.out.resolve()
    every = parts(options.device, out)
    chosen = set(filter(None, options.only.split(","))) or {part.name for part in every}
    if unknown := chosen - {part.name for part in every}:
        parser.error(
            f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in every)}"
        )
    every = [part for part in every if part.name in chosen]
    if options.list:
        for part in every:
            print(f"{part.name:18} {part.limit_s:4.0f} s  {part.published:18} {' '.join(part.words[1:])}")
        return 0
    out.mkdir(parents=True, exist_ok=True)
    lay_out(out)
    end = time.monotonic() + options.seconds
    bad = 0
    for part in every:
        left = end - time.monotonic()
        said = run(part, out, min(part.limit_s, left)) if left > 10 else "left out: no time is left"
        bad += not said.startswith("done")
        print(f"{part.name:18} {said}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
