"""What a campaign gives back; the object that ``run --json`` ends with."""

from dataclasses import dataclass, field
from typing import Any

from kernelwright.harness.protocol import SanitizerResult


@dataclass(frozen=True)
class Leader:
    """A measured candidate with its objective. ``time_ms`` is the objective's plain time, per case in ``times``."""

    id: str
    description: str
    time_ms: float
    score: float
    times: dict[str, float]


@dataclass(frozen=True)
class Confirmation:
    """Baseline and incumbent run in turn at the end: free of the luck of the best of many.

    ``ratio`` is the incumbent's time over the baseline's, ``low`` and ``high`` its interval (99 %) from ``rounds``
    paired rounds.
    """

    baseline_ms: float
    incumbent_ms: float
    ratio: float
    low: float | None = None
    high: float | None = None
    rounds: int = 0


@dataclass(frozen=True)
class CampaignResult:
    """State of a campaign when it ends. Ratios under 1 are faster than the baseline."""

    campaign: str
    problem: str
    device: str
    device_model: str
    objective: str
    state: str
    slow_cases: bool
    baseline: Leader
    incumbent: Leader
    experiments: int
    seconds: float
    statuses: dict[str, int] = field(default_factory=dict)
    confirmation: Confirmation | None = None
    duels: int = 0
    sanitizer: dict[str, Any] | None = None
    """What compute-sanitizer said of the incumbent: status, reason, tools; ``None`` when it was not asked."""
    warnings: tuple[str, ...] = ()
    """What the problem's self-test found: its own check may be fooled."""
    goal: str | None = None
    goal_reached: bool = False
    board: dict[str, Any] | None = None
    """The own place, what was sent, and why nothing more is; ``None`` without a board."""

    @property
    def ratio(self) -> float:
        """Incumbent's time over the baseline's, as measured in the search."""
        return self.incumbent.time_ms / self.baseline.time_ms

    def as_json(self) -> dict[str, Any]:
        """Plain values for scripts."""
        confirmed = self.confirmation
        return {
            "campaign": self.campaign,
            "problem": self.problem,
            "device": self.device,
            "device_model": self.device_model,
            "objective": self.objective,
            "state": self.state,
            "cases": "slow" if self.slow_cases else "full",
            "baseline": _leader(self.baseline),
            "incumbent": {**_leader(self.incumbent), "ratio_to_baseline": self.ratio},
            "confirmed": None
            if confirmed is None
            else {
                "baseline_ms": confirmed.baseline_ms,
                "incumbent_ms": confirmed.incumbent_ms,
                "ratio_to_baseline": confirmed.ratio,
                "interval": [confirmed.low, confirmed.high],
                "rounds": confirmed.rounds,
            },
            "duels": self.duels,
            "sanitizer": self.sanitizer,
            "warnings": list(self.warnings),
            "goal": None if self.goal is None else {"text": self.goal, "reached": self.goal_reached},
            "board": self.board,
            "experiments": self.experiments,
            "statuses": self.statuses,
            "seconds": round(self.seconds, 3),
        }


def _leader(leader: Leader) -> dict[str, Any]:
    return {
        "id": leader.id,
        "description": leader.description,
        "time_ms": leader.time_ms,
        "score": leader.score,
        "cases": {case: {"median_ms": time} for case, time in leader.times.items()},
    }


def sanitizer_json(result: SanitizerResult | None) -> dict[str, Any] | None:
    """What compute-sanitizer said, as data; ``None`` when it was not asked."""
    if result is None:
        return None
    return {"status": result.status, "reason": result.reason, "tools": list(result.tools)}
