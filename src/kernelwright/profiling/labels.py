"""Names the bottleneck of one launch by fixed rules on its counters; no model judges.

Thresholds are those of NVIDIA's shipped rules where there is one (SpeedOfLight 60/80 percent, CPIStall 30 percent,
SharedMemoryConflicts 10 percent, ThreadDivergence 24 lanes, LaunchStatistics 20 percent for a partial wave,
Occupancy). A cause that a source can mend (scattered loads, conflicts, spills) goes before the unit that it loads.
A rule whose counters are unknown says nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

from kernelwright.profiling import names
from kernelwright.profiling.bottleneck import Bottleneck
from kernelwright.profiling.metrics import Metrics

BUSY: Final = 60.0
PEAK: Final = 80.0
DRAM_PEAK: Final = 75.0
"""Percent of the data sheet's bandwidth; a plain copy attains 85 to 92."""
WASTED_SECTOR: Final = 55.0
MORE_SECTORS: Final = 4.0
TENSOR_BUSY: Final = 50.0
"""Percent of cycles. A loop of ``mma.sync`` keeps the pipe active 99 percent of them on an H200."""
EXCESS_SHARE: Final = 0.3
CONFLICTS: Final = 0.1
SPILLED: Final = 0.05
STALLED: Final = 0.3
LANES: Final = 24.0
ATOMIC_SHARE: Final = 0.1
TAIL_GAIN: Final = 0.2
FEW_WARPS: Final = 50.0


@dataclass(frozen=True)
class Label:
    """A name with the sentence that proves it."""

    bottleneck: Bottleneck
    evidence: str


@dataclass(frozen=True)
class Seen:
    """One launch: its counters and what the compiler said of spills (bytes a thread; ``None`` unknown)."""

    metrics: Metrics
    spill_bytes: int | None = None

    def above(self, name: str, limit: float) -> bool:
        """Whether it is known and at least ``limit``."""
        value = self.metrics.get(name)
        return value is not None and value >= limit

    @property
    def busiest(self) -> float:
        """The larger throughput of SM and memory in percent of the peak; 0 when both are unknown."""
        return max((self.metrics.get(name) or 0.0 for name in (names.SM, names.MEMORY)), default=0.0)

    def stall(self, reason: str) -> float:
        """Share of the warps' time that waits for ``reason``; 0 when it is unknown."""
        return self.metrics.ratio(names.stall(reason), names.WARP_LATENCY) or 0.0

    def stalls(self) -> list[tuple[str, float]]:
        """Reasons to wait, the largest first; issuing itself is none."""
        shares = [(reason, self.stall(reason)) for reason in names.STALLS if reason != "selected"]
        return sorted((s for s in shares if s[1] > 0), key=lambda s: (-s[1], s[0]))


Rule = Callable[[Seen], Iterator[Label]]


def labels(seen: Seen) -> tuple[Label, ...]:
    """Every rule that fires, the one that counts first. At least one: ``unknown`` says so."""
    found = [label for rule in RULES for label in rule(seen)]
    unique = {label.bottleneck: label for label in reversed(found)}
    first = tuple(label for label in found if unique[label.bottleneck] is label)
    return first or (Label(Bottleneck.UNKNOWN, "no rule fires on the counters that are known"),)


def _tensor(seen: Seen) -> Iterator[Label]:
    if seen.above(names.TENSOR, TENSOR_BUSY):
        yield Label(Bottleneck.TENSOR, f"tensor pipe {seen.metrics.get(names.TENSOR):.0f} % of its peak")


def _small_grid(seen: Seen) -> Iterator[Label]:
    grid, sms = seen.metrics.get(names.GRID), seen.metrics.get(names.SMS)
    if grid and sms and grid < sms and seen.busiest < BUSY:
        yield Label(Bottleneck.SMALL_GRID, f"{grid:.0f} blocks for {sms:.0f} SMs")


def _spills(seen: Seen) -> Iterator[Label]:
    local, every = seen.metrics.total(*names.LOCAL), seen.metrics.get(names.INSTRUCTIONS)
    if seen.spill_bytes and local and every and local / every >= SPILLED:
        share = local / every
        yield Label(
            Bottleneck.SPILLS, f"{seen.spill_bytes} bytes spilled a thread, {share:.0%} of instructions"
        )


def _coalescing(seen: Seen) -> Iterator[Label]:
    every = seen.metrics.total(names.sectors("ld"), names.sectors("st"))
    found = []
    for kind, name in (("ld", Bottleneck.UNCOALESCED_LOADS), ("st", Bottleneck.STRIDED_STORES)):
        used = seen.metrics.get(names.efficiency(kind))
        sectors = seen.metrics.get(names.sectors(kind))
        each = seen.metrics.ratio(names.sectors(kind), names.requests(kind))
        if used is None or not sectors or not every or each is None:
            continue
        excess = sectors * (1 - used / 100) / every
        if used <= WASTED_SECTOR and each > MORE_SECTORS and excess >= EXCESS_SHARE:
            what = "loads" if kind == "ld" else "stores"
            evidence = f"global {what} use {used:.0f} % of each sector, {each:.0f} sectors a request"
            found.append((excess, Label(name, evidence)))
    yield from (label for _, label in sorted(found, key=lambda pair: -pair[0]))


def _bank_conflicts(seen: Seen) -> Iterator[Label]:
    added = seen.metrics.total(names.conflicts("ld"), names.conflicts("st"))
    every = seen.metrics.total(names.wavefronts("ld"), names.wavefronts("st"))
    if not added or not every or added / every < CONFLICTS:
        return
    waiting = seen.stall("short_scoreboard") + seen.stall("mio_throttle")
    if seen.above(names.L1, BUSY) or waiting >= STALLED:
        yield Label(Bottleneck.BANK_CONFLICTS, f"conflicts are {added / every:.0%} of shared wavefronts")


def _atomics(seen: Seen) -> Iterator[Label]:
    atomic = seen.metrics.total(*names.ATOMIC_SECTORS)
    every = seen.metrics.get(names.L2_SECTORS)
    if not atomic or not every or seen.above(names.DRAM, DRAM_PEAK):
        return
    waiting = seen.stall("lg_throttle") + seen.stall("long_scoreboard") + seen.stall("drain")
    if atomic / every >= ATOMIC_SHARE and waiting >= STALLED:
        yield Label(
            Bottleneck.ATOMICS, f"{atomic / every:.0%} of L2's sectors are atomics, warps wait for them"
        )


def _barriers(seen: Seen) -> Iterator[Label]:
    if (share := seen.stall("barrier")) >= STALLED and not seen.above(names.ISSUE, PEAK):
        yield Label(Bottleneck.BARRIERS, f"warps wait {share:.0%} of their time at barriers")


def _divergence(seen: Seen) -> Iterator[Label]:
    lanes = seen.metrics.get(names.LANES)
    if lanes is not None and lanes < LANES and (seen.above(names.ISSUE, 40) or seen.busiest >= BUSY):
        yield Label(Bottleneck.DIVERGENCE, f"{lanes:.1f} of 32 lanes work in an instruction")


def _dram(seen: Seen) -> Iterator[Label]:
    if seen.above(names.DRAM, DRAM_PEAK):
        yield Label(Bottleneck.DRAM, f"DRAM {seen.metrics.get(names.DRAM):.0f} % of its peak")


def _units(seen: Seen) -> Iterator[Label]:
    """The busier side where one is busy; of the memory its busiest level, of the SM its busiest pipe."""
    sm, memory = seen.metrics.get(names.SM), seen.metrics.get(names.MEMORY)
    if sm is None or memory is None:
        return
    levels = {Bottleneck.DRAM: names.DRAM, Bottleneck.L2: names.L2, Bottleneck.L1: names.L1}
    if memory >= BUSY and memory >= sm:
        level = max(levels, key=lambda b: seen.metrics.get(levels[b]) or 0.0)
        yield Label(
            level,
            f"{level.removesuffix('-bound')} {seen.metrics.get(levels[level]) or memory:.0f} % of its peak",
        )
    elif sm >= BUSY:
        pipe = max(names.PIPES, key=lambda p: seen.metrics.get(names.PIPES[p]) or 0.0)
        busy = seen.metrics.get(names.PIPES[pipe])
        detail = f", {pipe} pipe {busy:.0f} %" if busy else ""
        yield Label(Bottleneck.COMPUTE, f"SM {sm:.0f} % of its peak{detail}")


def _tail(seen: Seen) -> Iterator[Label]:
    waves = seen.metrics.get(names.WAVES)
    if waves is None or waves <= 1 or seen.busiest >= PEAK:
        return
    gain = 1 - waves / ceil(waves)
    if gain >= TAIL_GAIN:
        yield Label(
            Bottleneck.TAIL, f"{waves:.2f} waves: the last one leaves {gain:.0%} of the SMs' time unused"
        )


def _occupancy(seen: Seen) -> Iterator[Label]:
    possible = seen.metrics.get(names.THEORETICAL)
    limits = {name: seen.metrics.get(metric) for name, metric in names.LIMITS.items()}
    known = {name: value for name, value in limits.items() if value is not None}
    if possible is None or possible > FEW_WARPS or seen.busiest >= PEAK or not known:
        return
    limiter = min(known, key=lambda name: known[name])
    which = {
        "registers": Bottleneck.OCCUPANCY_REGISTERS,
        "shared memory": Bottleneck.OCCUPANCY_SHARED,
    }.get(limiter, Bottleneck.OCCUPANCY_BLOCKS)
    yield Label(which, f"at most {possible:.0f} % of the warps fit, limited by {limiter}")


def _latency(seen: Seen) -> Iterator[Label]:
    if seen.metrics.get(names.SM) is None or seen.metrics.get(names.MEMORY) is None or seen.busiest >= BUSY:
        return
    waits = seen.stalls()
    detail = f", warps wait {waits[0][1]:.0%} of their time for {waits[0][0]}" if waits else ""
    yield Label(Bottleneck.LATENCY, f"no unit is over {BUSY:.0f} %{detail}")


RULES: Final[tuple[Rule, ...]] = (
    _tensor,
    _small_grid,
    _spills,
    _coalescing,
    _bank_conflicts,
    _atomics,
    _barriers,
    _divergence,
    _dram,
    _tail,
    _occupancy,
    _units,
    _latency,
)
"""In order: the first that fires names the launch."""
