"""How long a report of a long campaign takes, how large its file is, and how fast a browser opens it.

Writes a campaign of made-up experiments (tests/report/campaigns.py), builds its report and prints one JSON object;
exit code 1 beyond 10 s, 5 MB, or, where Chromium and node are there (tests/report/test_browser.py says how), 2 s.

    python bench/bench_report.py --experiments 20000
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from command_line import parser_of
from kernelwright.memory.store import Memory
from kernelwright.report import as_html, build_report

ROOT = Path(__file__).parents[1]
MOST_BUILD_S, MOST_BYTES, MOST_OPEN_MS = 10.0, 5_000_000, 2000


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--experiments", type=int, default=20_000)
    parser.add_argument("--templates", type=int, default=120)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), arguments.experiments, arguments.templates)
    print(json.dumps(result))
    slow = result["build_s"] > MOST_BUILD_S or (result["open_ms"] or 0) > MOST_OPEN_MS
    sys.exit(slow or result["bytes"] > MOST_BYTES)


def measure(folder: Path, experiments: int, templates: int) -> dict[str, Any]:
    sys.path.insert(0, str(ROOT))
    from tests.report.campaigns import write

    write(folder / "memory.db", experiments, spread=templates)
    start = time.perf_counter()
    with Memory.open(folder / "memory.db", read_only=True) as memory:
        page = as_html(build_report(memory, memory.campaign("last")))
    seconds = time.perf_counter() - start
    (folder / "report.html").write_text(page, encoding="utf-8")
    return {
        "experiments": experiments,
        "build_s": round(seconds, 2),
        "bytes": len(page.encode()),
        "open_ms": opened_ms(folder / "report.html"),
    }


def opened_ms(page: Path) -> int | None:
    """The slowest of four views, ``None`` without a browser."""
    node, chromium = shutil.which("node"), shutil.which("chromium")
    script = ROOT / "tests/report/browser/look.js"
    if node is None or chromium is None or not (script.parent / "node_modules").exists():
        return None
    done = subprocess.run([node, script, page, chromium], capture_output=True, text=True, check=True)
    return max(int(view["open_ms"]) for view in json.loads(done.stdout))


if __name__ == "__main__":
    main()
