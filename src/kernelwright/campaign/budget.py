"""What a campaign may still spend."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Budget:
    """Seconds and experiments. ``used_before`` are the seconds of earlier sittings of a resumed campaign."""

    seconds: float
    evaluations: int | None = None
    used_before: float = 0.0
    clock: Callable[[], float] = time.monotonic
    _start: float = field(init=False)

    def __post_init__(self) -> None:
        """The time starts to count."""
        self._start = self.clock()

    @property
    def used(self) -> float:
        """Seconds that the campaign has run, all sittings together."""
        return self.used_before + self.clock() - self._start

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.seconds - self.used)

    def allows(self, experiments: int) -> bool:
        """Whether another experiment may start after ``experiments``."""
        return self.left > 0 and (self.evaluations is None or experiments < self.evaluations)

    def short(self, experiments: int, kept: int) -> bool:
        """Whether after ``experiments`` only those are left that are ``kept``: of half of all at most."""
        if self.evaluations is None:
            return False
        return experiments + min(kept, self.evaluations // 2) >= self.evaluations
