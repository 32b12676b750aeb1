"""What was asked and told so far, and the numbers that the surrogate is given."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from kernelwright.core.outcome import StaticMetrics, Status
from kernelwright.core.space import Rows
from kernelwright.optimiser.base import Observation

PROGRESS = 0.005
UNKNOWN_CASES_NOISE = 0.1
"""Relative deviation of a time guessed from some cases while nothing says how cases go together."""


@dataclass
class History:
    """Entries by code of the row (see ``SearchSpace.codes``), in order of their first mention; None is pending."""

    rows: dict[int, Rows] = field(default_factory=dict)
    observations: dict[int, Observation | None] = field(default_factory=dict)
    statics: dict[int, StaticMetrics] = field(default_factory=dict)

    def ask(self, code: int, row: Rows) -> None:
        """The row was asked for; its outcome is pending."""
        self.rows[code] = row
        self.observations.setdefault(code, None)

    def tell(self, code: int, row: Rows, observation: Observation) -> None:
        """The outcome of a row, asked for or not."""
        self.rows[code] = row
        self.observations[code] = observation
        if observation.static is not None:
            self.statics[code] = observation.static

    def tell_static(self, code: int, row: Rows, static: StaticMetrics) -> None:
        """What the compiler says of a row, asked for or not."""
        self.rows[code] = row
        self.statics[code] = static

    @property
    def pending(self) -> list[int]:
        """Codes asked for and not told."""
        return [code for code, observation in self.observations.items() if observation is None]

    def feasible(self) -> dict[int, bool]:
        """Whether it could be measured, by code, where that is known."""
        told = {
            code: o
            for code, o in self.observations.items()
            if o is not None and o.status is not Status.NOT_RUN
        }
        return {code: o.status is Status.MEASURED for code, o in told.items()}

    def log_times(self) -> dict[int, tuple[float, float]]:
        """Log time and relative noise by code.

        A candidate that was stopped early has times of some cases only: its objective is guessed from how the
        objective relates to those cases elsewhere, with the noise that this guess has there.
        """
        known: dict[int, tuple[float, float]] = {}
        partial: dict[int, dict[str, float]] = {}
        complete: list[tuple[float, dict[str, float]]] = []
        for code, o in self.observations.items():
            if o is None or o.status is not Status.MEASURED:
                continue
            cases = {name: float(np.log(time)) for name, time in (o.cases or {}).items() if time > 0}
            if o.value is not None and o.value > 0 and np.isfinite(o.value):
                known[code] = (float(np.log(o.value)), o.noise or 0.0)
                complete.append((known[code][0], cases))
            elif cases:
                partial[code] = cases
        for code, cases in partial.items():
            if guess := _guess(cases, complete):
                known[code] = guess
        return {code: known[code] for code in self.observations if code in known}

    def stagnation(self) -> int:
        """How many outcomes were told since the best time last fell by more than ``PROGRESS``."""
        known = self.log_times()
        best, since = np.inf, 0
        for code, observation in self.observations.items():
            if observation is None:
                continue
            time = known.get(code, (np.inf, 0.0))[0]
            since = 0 if time < best - PROGRESS else since + 1
            best = min(best, time)
        return since

    def stacked(self, codes: Iterable[int]) -> Rows:
        """Rows [n, d] of codes."""
        return np.stack([self.rows[code] for code in codes])


def _guess(
    cases: dict[str, float], complete: list[tuple[float, dict[str, float]]]
) -> tuple[float, float] | None:
    """Objective of a partial measurement: mean over its cases plus the usual offset, and that offset's spread."""
    offsets = [
        value - np.mean([others[name] for name in cases])
        for value, others in complete
        if cases.keys() <= others.keys()
    ]
    if not offsets:
        return None
    spread = float(np.std(offsets)) if len(offsets) > 2 else UNKNOWN_CASES_NOISE
    return float(np.mean(list(cases.values())) + np.median(offsets)), max(spread, 0.01)
