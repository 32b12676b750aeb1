"""When a board may be sent something again: its limits an hour, and what it said itself."""

from collections.abc import Iterable
from typing import Final

from kernelwright.campaign.outbox import NOT_TAKEN
from kernelwright.leaderboard.base import Limits, Mode, RateLimited
from kernelwright.memory.records import SubmissionRecord

HOUR_S: Final = 3600.0
LEAST_S: Final = 1.0
UNTOLD_S: Final = 60.0
"""Wait after a refusal for the quota that does not say how long."""


class Quota:
    """Counts in Unix time, over all sittings. Tests and benchmarks share one limit."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._closed: dict[bool, float] = {}

    def limited(self, mode: Mode, error: RateLimited, now: float) -> None:
        """The board has said no for a while."""
        wait = UNTOLD_S if error.retry_s is None else min(max(error.retry_s, LEAST_S), HOUR_S)
        self._closed[mode is Mode.RANKED] = now + wait

    def free_at(self, mode: Mode, records: Iterable[SubmissionRecord], now: float) -> float:
        """From when on a submission fits; not after ``now`` when it does at once."""
        ranked = mode is Mode.RANKED
        limit = self._limits.ranked_per_hour if ranked else self._limits.test_per_hour
        closed = self._closed.get(ranked, 0.0)
        if limit is None:
            return closed
        times = sorted(
            record.sent or record.intended
            for record in records
            if (record.mode == Mode.RANKED) is ranked and record.state not in NOT_TAKEN
        )
        if limit <= 0:
            return now + HOUR_S
        return max(closed, times[-limit] + HOUR_S if len(times) >= limit else 0.0)
