"""A campaign that was killed in the worst moments goes on: the short form of ``bench/kill_in_every_phase.py``."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench" / "kill_in_every_phase.py"
POINTS = ("measured, not recorded", "repair recorded", "confirmation begins")


def test_nothing_is_lost_twice_or_paid_twice() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--played", "--evaluations", "12", "--points", *POINTS],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[1:-1]
    assert [row.partition("  ")[0] for row in rows] == list(POINTS)
    assert rows[0].split()[-4] == "1", f"the one in flight was not measured again: {rows[0]}"
