"""Candidates for the fake device, and harnesses that use it."""

from pathlib import Path
from typing import Any

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.harness.local import LocalHarness, Timeouts

MAKER = "tests.harness.fake_device:FakeMaker"
PLAN = """/* kernelwright
[[launch]]
kernel = "vector_add"
grid = ["cdiv(N, 256)"]
block = ["{block}"]
args = ["A", "B", "C", "N"]
*/
"""


def candidate(text: str = "", block: str = "256") -> Candidate:
    """A candidate for ``vector_add`` whose source says ``text``."""
    return Candidate(parse_template(PLAN.replace("{block}", block) + text + "\n", "fake.cu"), Configuration())


def fake_harness(scratch_root: Path, problem: str | Path = "vector_add", **settings: Any) -> LocalHarness:
    """Not started."""
    given: dict[str, Any] = {
        "maker": MAKER,
        "compile_workers": 2,
        "scratch_root": scratch_root,
        "timeouts": Timeouts(compile_s=20.0, run_s=5.0, grace_s=20.0),
    }
    return LocalHarness(problem, "fake", **{**given, **settings})


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())
