"""Which of several models is asked next: an upper confidence bound on what each has earned.

UCB1 (Auer, Cesa-Bianchi, Fischer, "Finite-time Analysis of the Multiarmed Bandit Problem", 2002). The pay of a
request is the verified gain that it led to, in log time, per cost; it is scaled to 0..1 by the best seen.
"""

from dataclasses import dataclass, field
from math import inf, log, sqrt
from typing import Final

EXPLORATION: Final = 0.7
SECOND_USD: Final = 1e-4
"""What a second of waiting is taken to cost, so that free models are compared by their time."""
LEAST_USD: Final = 1e-3


@dataclass
class Record:
    """What one model has earned: requests, log gain, money, seconds, failures to answer in a row."""

    requests: int = 0
    gain: float = 0.0
    cost_usd: float = 0.0
    seconds: float = 0.0
    failures: int = 0

    @property
    def pay(self) -> float:
        """Verified log gain per dollar."""
        return self.gain / max(self.cost_usd + SECOND_USD * self.seconds, LEAST_USD * max(self.requests, 1))


@dataclass
class Bandit:
    """UCB over models by name."""

    names: tuple[str, ...]
    records: dict[str, Record] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Nobody has earned anything."""
        for name in self.names:
            self.records.setdefault(name, Record())

    def choose(self, among: frozenset[str] | None = None) -> str:
        """Name with the highest bound; a model never asked first, in the order given."""
        candidates = [name for name in self.names if among is None or name in among]
        return max(candidates, key=self._bound)

    def spent(self, name: str, cost_usd: float, seconds: float) -> None:
        """Note what a request has cost."""
        record = self.records[name]
        record.requests += 1
        record.cost_usd += cost_usd
        record.seconds += seconds

    def earned(self, name: str, gain: float) -> None:
        """Note what a proposal of a model has led to, once verified: log(before / after)."""
        self.records[name].gain += max(0.0, gain)

    def _bound(self, name: str) -> float:
        record = self.records[name]
        if record.requests == 0:
            return inf
        total = sum(r.requests for r in self.records.values())
        best = max(r.pay for r in self.records.values()) or 1.0
        return record.pay / best + EXPLORATION * sqrt(log(total) / record.requests)
