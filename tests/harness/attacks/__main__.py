"""``python -m tests.harness.attacks [--json] [--no-bubblewrap] [--no-bombs]``: every attack from every place.

Exit code 1 when one succeeds.
"""

import asyncio
import json
import os
import sys
from dataclasses import asdict

from tests.harness.attacks.arena import EVERYWHERE, attack_all


def main(arguments: list[str]) -> int:
    """Print the table (or JSON) and the layers that hold."""
    rows, reports = asyncio.run(
        attack_all(() if "--no-bombs" in arguments else EVERYWHERE, walls="--no-bubblewrap" not in arguments)
    )
    bad = [row for row in rows if row.bad]
    tried = sum(row.tried for row in rows)
    missing = {place: report.missing for place, report in reports.items()}
    if "--json" in arguments:
        done = {"user": os.geteuid(), "attacks": tried, "succeeded": len(bad), "missing": missing}
        lines = [json.dumps({**done, "rows": [asdict(row) for row in rows]})]
    else:
        lines = [f"{'!!' if row.bad else '  '} {row.place:22} {row.attack:45} {row.verdict}" for row in rows]
        lines += [
            f"layers missing in {place}: {', '.join(layers) or 'none'}" for place, layers in missing.items()
        ]
        lines.append(f"user {os.geteuid()}: {tried} attacks, {len(bad)} succeeded")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
