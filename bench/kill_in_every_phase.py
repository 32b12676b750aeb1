"""Kill a campaign with SIGKILL at one point in every phase, resume it with the plain command, and look for what was lost.

The campaign kills itself at the n-th passage of a point of the product's code (``watched.POINTS``), so that no
phase depends on luck. A model is asked through a mailbox, which a thread here answers once a request. Ends with exit
code 1 when a recorded experiment is gone or changed, a candidate was recorded twice, more than the experiment in
flight was lost, a reply was paid twice, a child outlived its campaign, or ``resume last`` does not finish it.

    python bench/kill_in_every_phase.py
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from command_line import parser_of
from kernelwright.memory.store import Memory
from kill_and_resume import _compare, _is_dead, _recorded, _workers
from scripted import replies, write_problem
from watched import POINTS

PRICE_USD = 0.01
PLAYED_S = 0.15
"""What a played measurement takes: a model's replies come in while experiments are made."""
PASSAGES = {
    "compiling": 5,
    "compiled": 4,
    "measuring": 4,
    "measured, not recorded": 4,
    "recorded": 6,
    "repair recorded": 2,
}


@dataclass
class Answering:
    """Answers every request in a mailbox once, each with the next reply of the script."""

    folder: Path
    seed: int
    answered: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until ``stop`` is set."""
        script = replies(self.seed, 3, 0.4)
        while not self.stop.wait(0.05):
            for page in sorted(self.folder.glob("*.request.md")):
                name = page.name.partition(".")[0]
                reply = self.folder / f"{name}.reply.json"
                if not reply.exists():
                    draft = reply.with_suffix(".part")
                    draft.write_text(json.dumps({"text": next(script), "cost_usd": PRICE_USD}))
                    draft.rename(reply)
                    self.answered.append(name)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--evaluations", type=int, default=14)
    parser.add_argument("--played", action="store_true", help="a played device instead of the cpu")
    parser.add_argument("--points", nargs="+", choices=list(POINTS), default=list(POINTS), metavar="POINT")
    parser.add_argument("--seed", type=int, default=25)
    options = parser.parse_args()
    print(
        f"{'killed at':28}  {'passage':>7}  {'then':>5}  {'in flight':>9}  {'at the end':>10}  {'requests':>8}  {'paid':>5}"
    )
    for point in options.points:
        with tempfile.TemporaryDirectory() as name:
            print(_phase(point, options, Path(name)), flush=True)
    print(
        f"{len(options.points)} kills: nothing recorded was lost or changed, no candidate came twice, no reply was paid twice"
    )


def _phase(point: str, options: argparse.Namespace, folder: Path) -> str:
    """One campaign, killed once and resumed; its row of the table."""
    passage = PASSAGES.get(point, 1)
    problem = write_problem(folder / "axpb")
    (folder / "tmp").mkdir()
    budget = ["--evaluations", str(options.evaluations), "--seconds", "1800", "--dir", str(folder), "--json"]
    run = ["run", str(problem), "--device", "cpu", "--no-catalogue", *budget]
    run += ["--model", f"mailbox:{folder / 'mailbox'}", "--compile-workers", "2"]
    wishes = {"played": options.played, "seconds": PLAYED_S, "log": str(folder / "log.jsonl")}
    with _answers(folder / "mailbox", options.seed) as answering:
        _killed(_child({**wishes, "kill": point, "passage": passage}, run), folder, point)
        before = _recorded(folder)
        lost = _lost(folder, {candidate for _, candidate, _, _ in before}, point)
        _finished(_child(wishes, ["resume", "last", "--dir", str(folder), "--json"]), folder, point, options)
        now = _recorded(folder)
        _compare(before, now)
        requests, paid = _paid(folder, answering.answered, point)
    return (
        f"{point:28}  {passage:7d}  {len(before):5d}  {lost:9d}  {len(now):10d}  {requests:8d}  {paid:5.2f}"
    )


def _child(wishes: dict[str, Any], command: list[str]) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("watched.py")), json.dumps(wishes), *command]


@contextmanager
def _answers(mailbox: Path, seed: int) -> Iterator[Answering]:
    answering = Answering(mailbox, seed)
    thread = threading.Thread(target=answering.run)
    thread.start()
    try:
        yield answering
    finally:
        answering.stop.set()
        thread.join()


def _start(command: list[str], folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp")}, start_new_session=True,
    )  # fmt: skip


def _killed(command: list[str], folder: Path, point: str) -> None:
    """Run until the campaign kills itself; then none of its children may be left for long."""
    process = _start(command, folder)
    children: set[int] = set()
    while process.poll() is None:
        children |= set(_workers(process.pid))
        time.sleep(0.05)
    _, errors = process.communicate()
    if process.returncode != -signal.SIGKILL:
        sys.exit(f"{point}: the campaign was not killed there, it ended with {process.returncode}: {errors}")
    deadline = time.monotonic() + 15
    while left := [pid for pid in children if not _is_dead(pid)]:
        if time.monotonic() > deadline:
            sys.exit(f"{point}: children outlived their campaign: {left}")
        time.sleep(0.05)


def _finished(command: list[str], folder: Path, point: str, options: argparse.Namespace) -> None:
    process = _start(command, folder)
    out, errors = process.communicate()
    if process.returncode:
        sys.exit(f"{point}: resume ended with {process.returncode}: {errors}")
    result = json.loads(out.splitlines()[-1])
    if result["state"] != "finished" or result["experiments"] != options.evaluations:
        sys.exit(f"{point}: resume ended {result['state']} with {result['experiments']} experiments")
    with Memory.open(folder / "memory.db", read_only=True) as memory:
        campaign = memory.campaign("last").id
        led = [milestone.experiment for milestone in memory.milestones(campaign)]
        if any(first == second for first, second in pairwise(led)):
            sys.exit(f"{point}: a milestone was noted twice: {led}")
        if len(memory.certificates(campaign)) != 1 or "confirmation" not in memory.notes(campaign):
            sys.exit(f"{point}: the campaign has no certificate or no confirmation")


def _lost(folder: Path, kept: set[str], point: str) -> int:
    """Experiments that were measured and are not in the memory: one at most, that in flight."""
    log = folder / "log.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    if gone := {row["recorded"] for row in rows if "recorded" in row} - kept:
        sys.exit(f"{point}: recorded experiments are gone: {sorted(gone)}")
    lost = {row["measured"] for row in rows if "measured" in row} - kept
    if len(lost) > 1:
        sys.exit(f"{point}: more than the experiment in flight was lost: {sorted(lost)}")
    return len(lost)


def _paid(folder: Path, answered: list[str], point: str) -> tuple[int, float]:
    """Requests with a reply and what they cost; what was answered was answered once, and all but the last is kept."""
    with Memory.open(folder / "memory.db", read_only=True) as memory:
        requests = [r for r in memory.requests(memory.campaign("last").id) if r.state == "answered"]
    if twice := [name for name, count in Counter(answered).items() if count > 1]:
        sys.exit(f"{point}: requests were answered twice: {twice}")
    if twice := [
        text[:80] for text, n in Counter(r.prompt for r in requests if r.purpose == "repair").items() if n > 1
    ]:
        sys.exit(f"{point}: a repair was paid twice: {twice}")
    if strange := {r.id for r in requests} - set(answered):
        sys.exit(f"{point}: replies that nobody gave: {sorted(strange)}")
    paid = sum(request.cost_usd or 0.0 for request in requests)
    if round(paid / PRICE_USD) != len(requests):
        sys.exit(f"{point}: {len(requests)} replies were paid with {paid:.2f} USD")
    return len(requests), paid


if __name__ == "__main__":
    main()
