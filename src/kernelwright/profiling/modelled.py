"""What the cpu device's checked mode models of a kernel's memory accesses: which lines waste them, and a name for it.

Compared with counters by ``bench/compare_modelled.py``. It knows patterns of addresses and nothing of time, so a name
needs a pattern that costs more than all other accesses together could.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kernelwright.devices.traffic import Traffic, read_traffic
from kernelwright.profiling.bottleneck import Bottleneck
from kernelwright.profiling.labels import EXCESS_SHARE, MORE_SECTORS, WASTED_SECTOR, Label

MOST_LINES: Final = 3
WASTED: Final = 0.2
"""Lines that waste less are not worth a word."""
CONFLICTS: Final = 0.5
SECTORS_A_WAVEFRONT: Final = 4
"""What L1 moves in one cycle, 128 bytes: so sectors and wavefronts compare."""


@dataclass(frozen=True)
class Modelled:
    """``worst`` lines first, at most three; ``label`` where the pattern alone suffices for a name."""

    worst: tuple[Traffic, ...] = ()
    label: Label | None = None

    def lines(self, source: str = "") -> Iterator[str]:
        """One for each of the worst lines, with its text where the source is given."""
        texts = source.splitlines()
        for one in self.worst:
            at = int(one.line) if one.line.isdecimal() else 0
            text = texts[at - 1].strip() if 0 < at <= len(texts) else ""
            yield f"Modelled, {one.brief}{': ' if text else ''}{text}"
        if not self.worst:
            yield "Modelled: no line wastes sectors, and shared memory has no bank conflicts"


def modelled(findings: Iterable[str]) -> Modelled | None:
    """From the findings of a run, of its case with most accesses; ``None`` when nothing was modelled."""
    cases: dict[str, list[Traffic]] = {}
    for one in read_traffic(findings):
        cases.setdefault(one.case, []).append(one)
    if not cases:
        return None
    traffic = max(cases.values(), key=lambda mine: sum(one.requests for one in mine))
    wasteful = [one for one in traffic if one.wasted >= WASTED]
    worst = sorted(wasteful, key=lambda one: (-_cycles(one), one.line))[:MOST_LINES]
    return Modelled(tuple(worst), _label(traffic))


def _cycles(one: Traffic) -> float:
    """Cycles of L1 that a better pattern would save."""
    return one.excess / (SECTORS_A_WAVEFRONT if one.space == "global" else 1)


def _label(traffic: Sequence[Traffic]) -> Label | None:
    sectors = sum(one.units * one.requests for one in traffic if one.space == "global")
    waves = sum(one.units * one.requests for one in traffic if one.space == "shared")
    added = sum(one.excess for one in traffic if one.space == "shared")
    if waves and added / waves >= CONFLICTS and added * SECTORS_A_WAVEFRONT >= sectors:
        return Label(
            Bottleneck.BANK_CONFLICTS, f"modelled: conflicts are {added / waves:.0%} of shared wavefronts"
        )
    names = {"load": Bottleneck.UNCOALESCED_LOADS, "store": Bottleneck.STRIDED_STORES}
    found = [
        (
            share,
            Label(name, f"modelled: global {kind}s need {each:.0f} sectors a request, {ideal:.0f} would do"),
        )
        for kind, name in names.items()
        for each, ideal, share in [_of(kind, traffic, sectors)]
        if each > MORE_SECTORS and ideal / each <= WASTED_SECTOR / 100 and share >= EXCESS_SHARE
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _of(kind: str, traffic: Sequence[Traffic], sectors: float) -> tuple[float, float, float]:
    """Sectors a request of global loads or stores, their ideal, and the waste's share of all sectors."""
    mine = [one for one in traffic if (one.space, one.operation) == ("global", kind)]
    requests = sum(one.requests for one in mine)
    if not requests:
        return 0.0, 0.0, 0.0
    each = sum(one.units * one.requests for one in mine) / requests
    ideal = sum(one.ideal * one.requests for one in mine) / requests
    return each, ideal, sum(one.excess for one in mine) / sectors
