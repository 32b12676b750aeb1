"""Kill a campaign with SIGKILL at random moments, resume it each time, and look for what was lost.

Ends with exit code 1 when a recorded experiment is gone or changed, a candidate was recorded twice, a child
outlived its campaign, or the last resume does not finish.

    python bench/kill_and_resume.py --kills 20
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command_line import parser_of
from kernelwright.core.errors import MemoryFileError
from kernelwright.memory.store import Memory

Recorded = list[tuple[int, str, str, tuple[float, ...]]]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--problem", default="vector_add")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--longest", type=float, default=6.0, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        seen: Recorded = []
        for number in range(arguments.kills):
            wait = rng.uniform(0.2, arguments.longest)
            _start_and_kill(_command(arguments, Path(folder), evaluations=100_000), wait)
            now = _recorded(Path(folder))
            _compare(seen, now)
            print(
                f"kill {number + 1} after {wait:.2f} s: {len(now)} experiments, {len(now) - len(seen)} new",
                flush=True,
            )
            seen = now
        _finish(arguments, Path(folder), seen)


def _command(arguments: argparse.Namespace, folder: Path, evaluations: int) -> list[str]:
    base = [sys.executable, "-m", "kernelwright"]
    budget = ["--evaluations", str(evaluations), "--seconds", "3600", "--dir", str(folder), "--json"]
    if _recorded(folder) or _has_campaign(folder):
        return [*base, "resume", "last", *budget]
    return [*base, "run", arguments.problem, "--device", arguments.device, *budget]


def _has_campaign(folder: Path) -> bool:
    try:
        with Memory.open(folder / "memory.db", read_only=True) as memory:
            return bool(memory.campaigns())
    except MemoryFileError:
        return False


def _start_and_kill(command: list[str], wait: float) -> None:
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    time.sleep(wait)
    if process.poll() is not None:
        sys.exit(
            f"{' '.join(command)} ended by itself with {process.returncode}: {process.stderr.read().decode()}"
        )
    before = _workers(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 10
    while left := [pid for pid in before if Path(f"/proc/{pid}").exists() and not _is_dead(pid)]:
        if time.monotonic() > deadline:
            sys.exit(f"children outlived their campaign: {left}")
        time.sleep(0.05)


def _workers(parent: int) -> list[int]:
    """Children of a process, and theirs."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found += [int(entry.name), *_workers(int(entry.name))]
    return found


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in {"Z", "X"}
    except OSError:
        return True


def _recorded(folder: Path) -> Recorded:
    try:
        with Memory.open(folder / "memory.db", read_only=True) as memory:
            if not memory.campaigns():
                return []
            return [
                (
                    e.number,
                    e.candidate,
                    e.outcome.status,
                    tuple(s for t in e.outcome.cases for s in t.samples_ms),
                )
                for e in memory.experiments(memory.campaign("last").id)
            ]
    except MemoryFileError:
        return []


def _compare(before: Recorded, now: Recorded) -> None:
    if now[: len(before)] != before:
        sys.exit("a recorded experiment is gone or changed")
    if len({candidate for _, candidate, _, _ in now}) != len(now):
        sys.exit("a candidate was recorded twice")


def _finish(arguments: argparse.Namespace, folder: Path, seen: Recorded) -> None:
    command = _command(arguments, folder, evaluations=len(seen) + 3)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the last resume ended with {done.returncode}: {done.stderr}")
    now = _recorded(folder)
    _compare(seen, now)
    result = json.loads(done.stdout.splitlines()[-1])
    if result["experiments"] != len(now) or len(now) != len(seen) + 3:
        sys.exit(f"the last resume reports {result['experiments']} experiments, the memory has {len(now)}")
    print(f"all {len(now)} experiments are there, none twice; {arguments.kills} kills", flush=True)


if __name__ == "__main__":
    main()
