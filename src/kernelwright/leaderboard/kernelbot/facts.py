"""What holds on GPU MODE's server for every leaderboard: its words, and what it refuses at once."""

from typing import Final

from kernelwright.leaderboard.base import Mode, Ranking

MAX_BYTES: Final = 1_000_000
"""Of a submission's file."""
BANNED: Final = "stream"
"""Refused anywhere in the file, in any case."""
STAGES: Final = {Mode.TEST: "test", Mode.BENCHMARK: "benchmark", Mode.RANKED: "leaderboard"}
"""A mode's name on the server and for its evaluators, which is also the name of the run that decides it."""
RANKINGS: Final = {"last": Ranking.LAST, "mean": Ranking.MEAN, "geom": Ranking.GEOMEAN}
"""By the values of ``ranking_by``; a task without it ranks by its last benchmark."""
