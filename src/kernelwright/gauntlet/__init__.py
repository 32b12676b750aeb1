"""The gauntlet: candidates that cheat and candidates that do not, each through every check of the harness."""

from kernelwright.gauntlet.entry import Entry, load_entries
from kernelwright.gauntlet.judge import Report, Row, Verdict, judge
from kernelwright.gauntlet.run import run_gauntlet

__all__ = ["Entry", "Report", "Row", "Verdict", "judge", "load_entries", "run_gauntlet"]
