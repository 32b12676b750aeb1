"""The report in a real browser: nothing is loaded, nothing is said, nothing overlaps or is cut, axe-core finds nothing."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelwright.memory.store import Memory
from kernelwright.report import as_html, build_report

from .campaigns import write

FOLDER = Path(__file__).parent / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NODE = shutil.which("node")


def missing() -> str:
    if CHROMIUM is None:
        return "needs Chromium: apt-get install chromium"
    if NODE is None:
        return "needs node: apt-get install nodejs npm"
    if not (FOLDER / "node_modules" / "axe-core").exists():
        return "needs axe-core and puppeteer-core: npm install --prefix tests/report/browser"
    return ""


pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "all there")]


@pytest.mark.parametrize(
    ("count", "options"),
    [(400, {}), (1, {}), (8, {"failing": 1.0, "state": "failed"})],
    ids=["whole", "one experiment", "only failures"],
)
def test_a_browser_has_nothing_to_say(tmp_path: Path, count: int, options: dict[str, object]) -> None:
    write(tmp_path / "memory.db", count, **options)
    with Memory.open(tmp_path / "memory.db", read_only=True) as memory:
        page = as_html(build_report(memory, memory.campaign("last")))
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    assert NODE is not None
    assert CHROMIUM is not None
    done = subprocess.run(
        [NODE, FOLDER / "look.js", tmp_path / "report.html", CHROMIUM],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    views = json.loads(done.stdout)
    assert [(view["width"], view["scheme"]) for view in views] == [
        (1280, "light"), (1280, "dark"), (390, "light"), (390, "dark"),
    ]  # fmt: skip
    for view in views:
        assert view["said"] == []
        assert view["requests"] == []
        assert view["scripts"] == 0
        assert view["overflow"] == 0
        assert view["overlaps"] == []
        assert view["unwrapped"] == 0  # the digest, read without scrolling
        assert view["width"] > 390 or view["sideways"] == 0  # a phone's tables are read downwards only
        assert view["cut_in_print"] == 0
        assert view["violations"] == []
        assert view["open_ms"] < 2000
