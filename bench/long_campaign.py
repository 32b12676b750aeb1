"""A long campaign with a scripted model, watched from outside: memory, time of a prompt, pace.

The product's own command runs in a process of its own; proposals come from a file of recorded replies (hundreds of
templates of different structure, a share of them broken). Ends with exit code 1 when the resident memory of the last
quarter is above that of the second by more than 15 %, or a prompt takes more than twice the time.

    python bench/long_campaign.py --evaluations 2000

By default the device is played (a formula answers): what is measured is the campaign and not the device. With
``--real`` candidates are compiled and run on the cpu device. A prompt's time is CPU time of the thread that builds
it, taken in the campaign itself.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from command_line import parser_of
from kernelwright.core.errors import MemoryFileError
from kernelwright.memory.store import Memory
from scripted import replies, write_problem

MOST_RSS: float = 1.15
MOST_PROMPT: float = 2.0
LOOK_S: float = 0.5


@dataclass(frozen=True)
class Look:
    """Resident memory after so many seconds and experiments."""

    seconds: float
    experiments: int
    rss_mb: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--evaluations", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--proposals", type=int, default=6)
    parser.add_argument("--broken", type=float, default=0.25, help="share of broken proposals")
    parser.add_argument("--rows", type=int, default=8, help="rows of the table")
    parser.add_argument("--real", action="store_true", help="the cpu device instead of a played one")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        looks = _campaign(options, folder)
        prompts = [json.loads(line) for line in (folder / "prompts.jsonl").read_text().splitlines()]
        _print(looks, prompts, options.evaluations // options.rows)
        print(_counts(folder), flush=True)
        sys.exit(_verdict(looks, prompts))


def _campaign(options: argparse.Namespace, folder: Path) -> list[Look]:
    problem = write_problem(folder / "axpb")
    lines = [
        json.dumps({"id": f"{number:04d}", "text": text, "cost_usd": 0.01})
        for number, text in enumerate(replies(options.seed, options.proposals, options.broken), 1)
    ]
    (folder / "replies.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    wishes = {"played": not options.real, "prompts": str(folder / "prompts.jsonl")}
    command = [
        *(sys.executable, str(Path(__file__).with_name("watched.py")), json.dumps(wishes)),
        *("run", str(problem), "--device", "cpu", "--no-catalogue", "--json"),
        *("--model", f"recorded:{folder / 'replies.jsonl'}", "--proposals", str(options.proposals)),
        *("--evaluations", str(options.evaluations), "--seconds", str(options.seconds)),
        *("--dir", str(folder), "--seed", str(options.seed)),
    ]
    # A folder of its own for temporary files: no other campaign on this machine is waited for.
    temporary = folder / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)}
    )
    looks, start = [], time.monotonic()
    while process.poll() is None:
        if done := _experiments(folder):
            looks.append(Look(time.monotonic() - start, done, _rss_mb(process.pid)))
        time.sleep(LOOK_S)
    out, _ = process.communicate()
    if process.returncode:
        sys.exit(f"the campaign ended with {process.returncode}")
    result = json.loads(out.splitlines()[-1])
    if result["experiments"] != options.evaluations:
        sys.exit(f"the campaign ended {result['state']} after {result['experiments']} experiments")
    return [look for look in looks if look.rss_mb]


def _rss_mb(pid: int) -> float:
    """Resident memory of one process, without its children; 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _experiments(folder: Path) -> int:
    try:
        with Memory.open(folder / "memory.db", read_only=True) as memory:
            known = memory.campaigns()
            return sum(memory.counts(known[-1].id).values()) if known else 0
    except MemoryFileError:
        return 0


def _print(looks: list[Look], prompts: list[dict[str, float]], step: int) -> None:
    print(
        f"{'experiments':>11}  {'RSS MB':>7}  {'prompt ms':>9}  {'characters':>10}  {'prompts':>7}  {'exp/s':>6}"
    )
    marks = [
        looks[0],
        *(look for look, after in pairwise(looks) if look.experiments // step < after.experiments // step),
    ]
    for before, look in pairwise([*marks, looks[-1]]):
        if look.experiments == before.experiments:
            continue
        between = [p for p in prompts if before.experiments <= p["experiments"] < look.experiments]
        ms = f"{median(p['ms'] for p in between):9.2f}" if between else f"{'-':>9}"
        characters = f"{median(p['characters'] for p in between):10.0f}" if between else f"{'-':>10}"
        pace = (look.experiments - before.experiments) / (look.seconds - before.seconds)
        print(
            f"{look.experiments:11d}  {look.rss_mb:7.1f}  {ms}  {characters}  {len(between):7d}  {pace:6.1f}"
        )


def _counts(folder: Path) -> str:
    with Memory.open(folder / "memory.db", read_only=True) as memory:
        campaign = memory.campaign("last").id
        counts = ", ".join(f"{count} {status}" for status, count in memory.counts(campaign).items())
        requests = memory.requests(campaign)
        repairs = sum(request.purpose == "repair" for request in requests)
        return f"{counts}; {len(memory.templates(campaign))} templates; {len(requests)} requests, {repairs} of them repairs"


def _verdict(looks: list[Look], prompts: list[dict[str, float]]) -> int:
    """Compare the last quarter (in experiments) with the second one."""
    last = looks[-1].experiments
    second, fourth = (last / 4, last / 2), (3 * last / 4, last + 1)
    rss = [median(k.rss_mb for k in looks if low <= k.experiments < high) for low, high in (second, fourth)]
    times = [[p["ms"] for p in prompts if low <= p["experiments"] < high] for low, high in (second, fourth)]
    print(f"memory, last quarter over the second: {rss[1] / rss[0]:.3f}")
    failed = rss[1] > MOST_RSS * rss[0]
    if all(times):
        ratio = median(times[1]) / median(times[0])
        print(f"time of a prompt, likewise: {ratio:.3f}")
        failed |= ratio > MOST_PROMPT
    return int(failed)


if __name__ == "__main__":
    main()
