"""What a replay says: part by part, each on one line with its reason."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """``DIFFERS`` tells of something that is not as it was and decides nothing by itself."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_JUDGED = "cannot be judged"
    DIFFERS = "differs"


Numbers = dict[str, float | int | str | None]


@dataclass(frozen=True)
class Part:
    """One thing that was looked at. ``numbers`` are for scripts."""

    name: str
    verdict: Verdict
    reason: str
    numbers: Numbers | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}: {self.reason}"


@dataclass(frozen=True)
class Replayed:
    """The parts of one way to replay a campaign."""

    mode: str
    campaign: str
    parts: tuple[Part, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the parts; nothing judged is not reproduced either."""
        found = {part.verdict for part in self.parts}
        for worst in (Verdict.NOT_REPRODUCED, Verdict.NOT_JUDGED):
            if worst in found:
                return worst
        return Verdict.REPRODUCED if Verdict.REPRODUCED in found else Verdict.NOT_JUDGED

    @property
    def why(self) -> str:
        """The part that decided, in one line."""
        return next((f"{part}" for part in self.parts if part.verdict is self.verdict), "nothing was judged")

    def as_json(self) -> dict[str, Any]:
        """Plain values for scripts."""
        parts = [asdict(part) for part in self.parts]
        return {"mode": self.mode, "campaign": self.campaign, "verdict": self.verdict, "parts": parts}


def reproduced(name: str, reason: str, **numbers: float | str | None) -> Part:
    """A part that is as recorded."""
    return Part(name, Verdict.REPRODUCED, reason, numbers or None)


def failed(name: str, reason: str, **numbers: float | str | None) -> Part:
    """A part that is not as recorded."""
    return Part(name, Verdict.NOT_REPRODUCED, reason, numbers or None)


def unknown(name: str, reason: str, **numbers: float | str | None) -> Part:
    """A part that cannot be told."""
    return Part(name, Verdict.NOT_JUDGED, reason, numbers or None)


def differs(name: str, reason: str) -> Part:
    """Something is other than it was, which is told and decides nothing."""
    return Part(name, Verdict.DIFFERS, reason)


def has_failed(parts: Iterable[Part]) -> bool:
    """Whether any part is not as recorded."""
    return any(part.verdict is Verdict.NOT_REPRODUCED for part in parts)
