"""The climb: a leaderboard with real entries on a device, and a campaign that begins at its bottom.

    python bench/climb.py --device cuda:0 --entries 57 --seconds 180 --goal 'rank<=15'
    python bench/climb.py --device cpu --problem vector_add --entries 8 --seconds 60 --goal 'rank<=2'

A server (kernelwright board serve) measures the entries of the catalogue at many configurations; then a campaign
runs from the naive baseline with the catalogue and submits as it goes. Both share the device and take turns. Shown are
the milestones with their ranks, the ranks over time and where the time went; a report is written beside. Exit code 1
when the campaign has not climbed, or calibration failed (on the cpu it is not asked for: its times are too noisy).
"""

import argparse
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from command_line import parser_of

START_S = 120.0
COMMAND = [sys.executable, "-m", "kernelwright"]


def kernelwright(*words: str, folder: Path, token: str = "", code: int | None = 0) -> str:
    """What a command prints; it runs in ``folder``."""
    env = {**os.environ, "KERNELWRIGHT_BOARD_TOKEN": token} if token else dict(os.environ)
    done = subprocess.run(
        [*COMMAND, *words], cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    if code is not None and done.returncode != code:
        sys.exit(f"kernelwright {words[0]} {words[1]} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


@contextlib.contextmanager
def serving(problem: str, device: str, folder: Path, *, slow: bool) -> Iterator[str]:
    """A server in a process of its own; gives its address."""
    words = ["board", "serve", problem, "--device", device, "--port", "0", "--data", "board.db"]
    words += [
        "--slow-cases" if slow else "--full-cases",
        "--ranked-per-hour",
        "100",
        "--test-per-hour",
        "200",
    ]
    log = folder / "server.log"
    with log.open("w", encoding="utf-8") as out:
        server = subprocess.Popen([*COMMAND, *words], cwd=folder, stderr=out, stdout=out)
    try:
        end = time.monotonic() + START_S
        while not (
            found := re.search(r"^board: (http://\S+)$", log.read_text(encoding="utf-8"), re.MULTILINE)
        ):
            if server.poll() is not None or time.monotonic() > end:
                sys.exit(f"the server did not start: {log.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(0.1)
        yield found[1]
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def campaign(
    url: str, options: argparse.Namespace, folder: Path, token: str, *, slow: bool
) -> dict[str, Any]:
    """The result of ``run --json``."""
    words = ["run", options.problem, "--device", options.device, "--seconds", f"{options.seconds}", "--json"]
    words += ["--board", url, "--submit", "--max-submissions", f"{options.max_submissions}"]
    words += ["--goal", options.goal, "--seed", f"{options.seed}"]
    words += ["--slow-cases" if slow else "--full-cases"]
    words += ["--uncalibrated"] if options.device == "cpu" else []
    return dict(json.loads(kernelwright(*words, folder=folder, token=token).splitlines()[-1]))


def tell(shown: dict[str, Any], ended: dict[str, Any], spent: dict[str, float], table: str) -> None:
    """Everything worth knowing, as text."""
    print("\n| seconds | to baseline | rank | strategy |\n|---|---|---|---|")
    for row in shown["milestones"]:
        rank = "" if row["rank"] is None else row["rank"]
        print(f"| {row['seconds']:.0f} | {row['ratio']:.4f} | {rank} | {row['strategy'][:110]} |")
    board = shown["board"]
    print("\n| seconds | rank | of | score ms | to the next place |\n|---|---|---|---|---|")
    for place in board["places"]:
        score = "" if place["score_ms"] is None else f"{place['score_ms']:.4g}"
        gap = "" if place["gap"] is None else f"{100 * place['gap']:.2g} %"
        print(f"| {place['seconds']:.0f} | {place['rank'] or ''} | {place['entries']} | {score} | {gap} |")
    print(f"\ncalibration: {board['calibration']}\n{board['summary']}")
    sent = [f"{row['mode']} {row['state']}" for row in board["submissions"]]
    print("sent: " + ", ".join(f"{sent.count(kind)} {kind}" for kind in dict.fromkeys(sent)))
    goal = ended["goal"]
    print(f"goal {goal['text']}: {'reached' if goal['reached'] else 'not reached'}")
    print(f"{ended['experiments']} experiments, {ended['duels']} duels, confirmed: {ended['confirmed']}")
    print("seconds: " + ", ".join(f"{name} {seconds:.0f}" for name, seconds in spent.items()))
    print(f"\n{table}")


def climbed(shown: dict[str, Any], *, calibrated: bool) -> bool:
    """Whether the last rank is better than the first, and times agreed where that is asked."""
    ranks = [place["rank"] for place in shown["board"]["places"] if place["rank"] is not None]
    agreed = not calibrated or "differ" not in shown["board"]["calibration"]
    return len(ranks) > 1 and ranks[-1] < ranks[0] and agreed


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--problem", default="gemm")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=180.0, help="of the campaign's search")
    parser.add_argument("--entries", type=int, default=57, help="of others, before the campaign begins")
    parser.add_argument("--goal", default="rank<=15")
    parser.add_argument("--max-submissions", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow-cases", action="store_true", help="the smaller cases; always on the cpu")
    parser.add_argument("--out", type=Path, help="a folder for the report and the JSON")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server ends too
    slow = options.slow_cases or options.device == "cpu"
    spent: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="climb-") as scratch:
        folder = Path(scratch)
        start = time.monotonic()
        with serving(options.problem, options.device, folder, slow=slow) as address:
            url = f"{address}/{options.problem}"
            spent["server started"] = time.monotonic() - start
            seeder = kernelwright("board", "token", "others", "--seeder", "--data", "board.db", folder=folder)
            us = kernelwright("board", "token", "campaign", "--data", "board.db", folder=folder).strip()
            start = time.monotonic()
            words = ["board", "seed", url, "--count", f"{options.entries}", "--problem", options.problem]
            print(kernelwright(*words, folder=folder, token=seeder.strip()).splitlines()[-1], flush=True)
            spent["entries of others"] = time.monotonic() - start
            print(f"after {spent['entries of others']:.0f} s; the campaign begins", flush=True)
            start = time.monotonic()
            ended = campaign(url, options, folder, us, slow=slow)
            spent["campaign"] = time.monotonic() - start
            table = kernelwright("board", "rank", url, "--limit", "70", folder=folder, token=us)
        shown = json.loads(kernelwright("show", "--json", folder=folder))
        tell(shown, ended, spent, table)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            kernelwright("report", "--force", "-o", f"{options.out.absolute() / 'climb.html'}", folder=folder)
            with (
                contextlib.closing(sqlite3.connect(folder / ".kernelwright" / "memory.db")) as memory,
                contextlib.closing(sqlite3.connect(options.out / "memory.db")) as copy,
            ):
                memory.backup(copy)
            (options.out / "climb.json").write_text(
                json.dumps({"shown": shown, "ended": ended, "spent": spent}), encoding="utf-8"
            )
    return 0 if climbed(shown, calibrated=options.device != "cpu") else 1


if __name__ == "__main__":
    sys.exit(main())
