"""When a campaign has what it was asked for: a rank, a time, a share of the roofline, a speed-up."""

import re
from dataclasses import dataclass
from typing import Final

from kernelwright.core.errors import UserError

_UNITS: Final = {
    "rank": {"": 1.0},
    "time": {"us": 1e-3, "ms": 1.0, "s": 1e3},
    "roofline": {"%": 0.01},
    "speedup": {"": 1.0},
}
_FORMS: Final = "rank<=15, time<=0.5ms (us, ms or s), roofline>=95% or speedup>=3"
_TEXT: Final = re.compile(
    r"(rank|time|roofline|speedup)\s*(<=|>=)\s*(\d{1,9}(?:\.\d{1,9})?)\s*(us|ms|s|%)?\Z"
)
_SIGN: Final = {"rank": "<=", "time": "<=", "roofline": ">=", "speedup": ">="}


@dataclass(frozen=True)
class Attained:
    """How far a campaign is; ``None`` is unknown and reaches nothing.

    ``time_ms`` is the objective's time, ``roofline`` the share of the floor's speed (at most about 1), ``speedup`` the
    baseline's time over the incumbent's, ``rank`` the own place on the board.
    """

    time_ms: float | None = None
    roofline: float | None = None
    speedup: float | None = None
    rank: int | None = None


@dataclass(frozen=True)
class Goal:
    """Conditions that have to hold together; ``None`` is not asked for. Without any it is never reached."""

    rank: int | None = None
    time_ms: float | None = None
    roofline: float | None = None
    speedup: float | None = None

    def __str__(self) -> str:
        """As :func:`parse_goal` reads it."""
        parts = {
            "rank": self.rank is not None and f"{self.rank}",
            "time": self.time_ms is not None and f"{_number(self.time_ms)}ms",
            "roofline": self.roofline is not None and f"{_number(100 * self.roofline)}%",
            "speedup": self.speedup is not None and _number(self.speedup),
        }
        return ", ".join(f"{name}{_SIGN[name]}{value}" for name, value in parts.items() if value)

    def reached(self, now: Attained) -> bool:
        """Whether every condition holds."""
        at_most = ((self.rank, now.rank), (self.time_ms, now.time_ms))
        at_least = ((self.roofline, now.roofline), (self.speedup, now.speedup))
        tests = [got is not None and got <= wanted for wanted, got in at_most if wanted is not None]
        tests += [got is not None and got >= wanted for wanted, got in at_least if wanted is not None]
        return bool(tests) and all(tests)


def parse_goal(text: str) -> Goal:
    """A goal from its text; several conditions stand between commas. Raises UserError, one line."""
    found: dict[str, float] = {}
    for part in text.split(","):
        match = _TEXT.match(part.strip())
        if match is None or match[2] != _SIGN[match[1]]:
            raise UserError(f"{part.strip()[:60]!r} is no goal: write {_FORMS}")
        if match[1] in found:
            raise UserError(f"the goal {text[:80]!r} names {match[1]} twice: say it once")
        found[match[1]] = _value(match[1], match[3], match[4] or "")
    rank = found.get("rank")
    return Goal(
        rank=None if rank is None else int(rank),
        time_ms=found.get("time"),
        roofline=found.get("roofline"),
        speedup=found.get("speedup"),
    )


def _value(name: str, digits: str, unit: str) -> float:
    """A whole rank, a time in ms, a share of 1, a factor."""
    number, told = float(digits), f"the goal {name}{_SIGN[name]}{digits}{unit}"
    if unit not in _UNITS[name]:
        raise UserError(f"{told} has the wrong unit: write {_FORMS}")
    if name == "rank" and (number < 1 or "." in digits):
        raise UserError(f"{told} names no place: ranks are whole numbers from 1")
    if name == "time" and not number:
        raise UserError(f"{told} cannot be reached: give a time above 0")
    if name == "roofline" and not 0 < number <= 100:
        raise UserError(f"{told} cannot be: give a share above 0 and up to 100 %")
    if name == "speedup" and number <= 1:
        raise UserError(f"{told} is reached at the start: give more than 1")
    return number * _UNITS[name][unit]


def _number(value: float) -> str:
    return f"{value:.9g}" if value >= 1e-4 else f"{value:.9f}".rstrip("0")
