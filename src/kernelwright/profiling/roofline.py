"""How far a case is from what the device can do at best.

Source: Williams, Waterman, Patterson: Roofline: An Insightful Visual Performance Model (CACM 2009).
"""

from dataclasses import dataclass
from typing import Literal

Bound = Literal["memory", "compute", "unknown"]


@dataclass(frozen=True)
class Roofline:
    """``floor_ms`` is the shortest possible time of a case; ``share`` of it that is attained (1 is the floor)."""

    floor_ms: float
    bound: Bound
    share: float | None = None

    @property
    def distance(self) -> float | None:
        """Time over floor: 1 is the floor; ``None`` is unknown."""
        return 1 / self.share if self.share else None


def roofline(
    moved_bytes: float,
    operations: float,
    *,
    bytes_per_s: float,
    operations_per_s: float,
    time_ms: float | None = None,
) -> Roofline | None:
    """Where a case stands; ``None`` when no ceiling is known (0 is unknown, as in a device's ceilings)."""
    by_memory = 1e3 * moved_bytes / bytes_per_s if bytes_per_s > 0 else 0.0
    by_compute = 1e3 * operations / operations_per_s if operations_per_s > 0 else 0.0
    floor = max(by_memory, by_compute)
    if floor <= 0:
        return None
    bound: Bound = "memory" if by_memory >= by_compute else "compute"
    return Roofline(floor, bound, floor / time_ms if time_ms and time_ms > 0 else None)
