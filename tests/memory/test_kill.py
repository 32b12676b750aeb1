"""A writer killed at any instant loses at most the experiment in flight."""

import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from kernelwright.memory.store import Memory

from .samples import PROBLEM, campaign

ROUNDS = 20

# Recalls what is there and goes on from it, as a resumed campaign does; each acknowledged number is one line.
WRITER = """
import itertools, sys
from pathlib import Path
from kernelwright.memory.store import Memory
from tests.memory.samples import TEMPLATE, experiment, measured
with Memory.open(Path(sys.argv[1]), create=False) as memory:
    known = {one.candidate for one in memory.experiments("c1")}
    print("ready", flush=True)
    for index in itertools.count():
        one = experiment(index, measured(*[index + 1.0] * 5))
        if one.candidate not in known:
            print(f"{memory.record(one, TEMPLATE)} {index}", flush=True)
"""


def kill_a_writer(path: Path, rng: random.Random) -> dict[int, int]:
    """Let a writer work, kill it after a random number of records and a random moment; what it acknowledged."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    lines = [writer.stdout.readline() for _ in range(rng.randrange(60))]
    for _ in range(rng.randrange(20_000)):
        pass  # moves the kill through the phases of a transaction
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate()
    assert writer.returncode == -signal.SIGKILL
    # A line that the kill cut off acknowledges nothing.
    whole = [line for line in [*lines, *rest.splitlines(keepends=True)] if line.endswith("\n")]
    return {int(number): int(index) for number, index in map(str.split, whole)}


def test_sigkill_loses_no_acknowledged_experiment_and_repeats_none(memory_file: Path) -> None:
    rng = random.Random(20)
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign(), PROBLEM)
    acknowledged: dict[int, int] = {}
    for _ in range(ROUNDS):
        acknowledged |= kill_a_writer(memory_file, rng)
        db = sqlite3.connect(memory_file)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        db.close()
        with Memory.open(memory_file, create=False) as memory:
            kept = {one.number: one for one in memory.experiments("c1")}
        assert acknowledged.items() <= {n: one.configuration["BM"] for n, one in kept.items()}.items()
        assert len({one.candidate for one in kept.values()}) == len(kept)
        assert [one.configuration["BM"] for one in kept.values()] == list(range(len(kept)))
        assert all(len(one.outcome.cases) == 5 for one in kept.values())
    assert len(acknowledged) > ROUNDS
