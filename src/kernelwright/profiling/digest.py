"""The bottleneck of a kernel in at most 1,200 characters: for prompts, for people, for reports."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kernelwright.core.outcome import KernelStatics, StaticMetrics
from kernelwright.profiling import names
from kernelwright.profiling.bottleneck import HINTS, Bottleneck
from kernelwright.profiling.labels import Label, Seen, labels
from kernelwright.profiling.metrics import HotLine, KernelProfile
from kernelwright.profiling.modelled import Modelled
from kernelwright.profiling.roofline import Roofline

MAX_CHARACTERS: Final = 1200
MOST_NUMBERS: Final = 8
NEAR_FLOOR: Final = 0.85
CHANGED: Final = 0.1
Level = Literal[0, 1, 2]

_SHOWN: Final = (
    ("SM %", names.SM),
    ("memory %", names.MEMORY),
    ("DRAM %", names.DRAM),
    ("L2 %", names.L2),
    ("L1 %", names.L1),
    ("achieved occupancy %", names.OCCUPANCY),
    ("issue slots used %", names.ISSUE),
)
_STATIC: Final = ("fp32", "fp64", "fp16", "tensor", "special", "atomic", "barrier", "shuffle", "async_copy")


@dataclass(frozen=True)
class Digest:
    """``level`` 0 has no counters. ``numbers`` are those behind the name; ``changes`` speak of others' digests."""

    level: Level
    bottleneck: Bottleneck
    evidence: str
    kernel: str = ""
    case: str = ""
    numbers: tuple[tuple[str, float], ...] = ()
    also: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """At most 1,200 characters; whole lines are left out where it would be more, the last first."""
        kept: list[str] = []
        for line in self._lines():
            if sum(map(len, kept)) + len(kept) + len(line) <= MAX_CHARACTERS:
                kept.append(line)
        return "\n".join(kept)

    def _lines(self) -> Iterator[str]:
        source = "static, no hardware counters" if self.level == 0 else "hardware counters"
        where = "".join(f", {part}" for part in (self.case, self.kernel and f"kernel {self.kernel}") if part)
        yield _cut(f"Bottleneck ({source}{where}): {self.bottleneck}: {self.evidence}", 300)
        if self.numbers:
            yield _cut("Numbers: " + ", ".join(f"{name} {_short(v)}" for name, v in self.numbers), 300)
        for fact in self.facts:
            yield _cut(fact, 200)
        for change in self.changes:
            yield _cut(change, 160)
        for hint in self.hints:
            yield _cut(f"Known move: {hint}", 160)
        for line in self.lines:
            yield _cut(line, 160)
        if self.also:
            yield _cut("Also: " + "; ".join(self.also), 200)


def make_digest(
    kernels: Sequence[KernelProfile],
    *,
    static: StaticMetrics | None = None,
    roofline: Roofline | None = None,
    case: str = "",
    lines: Sequence[HotLine] = (),
    parent: Digest | None = None,
    incumbent: Digest | None = None,
    model: Modelled | None = None,
    source: str = "",
) -> Digest:
    """Speaks of the launch with most time. Without launches it is :func:`static_digest`."""
    if not kernels:
        return static_digest(static, roofline, case, model, source)
    slowest = max(kernels, key=lambda kernel: kernel.time_ns)
    seen = Seen(slowest.metrics, _spills(static, slowest.kernel))
    found = labels(seen)
    numbers = _numbers(seen)
    return Digest(
        level=2 if lines else 1,
        bottleneck=found[0].bottleneck,
        evidence=found[0].evidence,
        kernel=slowest.kernel,
        case=case,
        numbers=numbers,
        also=tuple(f"{label.bottleneck} ({label.evidence})" for label in found[1:3]),
        hints=HINTS[found[0].bottleneck],
        changes=(
            *_changes("parent", parent, numbers),
            *_changes("incumbent", None if incumbent is parent else incumbent, numbers),
        ),
        lines=(*map(_hot, lines), *(model.lines(source) if model else ())),
        facts=(*_roof(roofline), *_share(kernels, slowest)),
    )


def static_digest(
    static: StaticMetrics | None,
    roofline: Roofline | None = None,
    case: str = "",
    model: Modelled | None = None,
    source: str = "",
) -> Digest:
    """Level 0: what is known without counters. The name is given only where that suffices."""
    kernels = static.kernels if static else ()
    found = _static_label(kernels, roofline, model)
    facts = [*_roof(roofline), *(fact for kernel in kernels[:3] if (fact := _describe(kernel)))]
    return Digest(
        0,
        found.bottleneck,
        found.evidence,
        case=case,
        hints=HINTS[found.bottleneck],
        lines=tuple(model.lines(source)) if model else (),
        facts=tuple(facts),
    )


def _static_label(
    kernels: Sequence[KernelStatics], roofline: Roofline | None, model: Modelled | None
) -> Label:
    if roofline and roofline.share and roofline.share >= NEAR_FLOOR:
        bound = Bottleneck.DRAM if roofline.bound == "memory" else Bottleneck.COMPUTE
        return Label(bound, f"{roofline.share:.0%} of the physical floor is attained")
    for kernel in kernels:
        if kernel.spill_bytes:
            return Label(Bottleneck.SPILLS, f"{kernel.name}: {kernel.spill_bytes} bytes spilled a thread")
    if model and model.label:
        return model.label
    for kernel in kernels:
        share, limiter = kernel.theoretical_occupancy, kernel.occupancy_limiter
        if share is not None and limiter and share <= 0.5:
            which = {
                "registers": Bottleneck.OCCUPANCY_REGISTERS,
                "shared memory": Bottleneck.OCCUPANCY_SHARED,
            }.get(limiter, Bottleneck.OCCUPANCY_BLOCKS)
            return Label(which, f"{kernel.name}: at most {share:.0%} of the warps fit, limited by {limiter}")
    return Label(Bottleneck.UNKNOWN, "static metrics alone do not tell")


def _describe(kernel: KernelStatics) -> str:
    parts = [
        f"{label} {value}"
        for label, value in (
            ("registers", kernel.registers),
            ("spill bytes", kernel.spill_bytes),
            ("stack bytes", kernel.stack_bytes),
            ("static shared bytes", kernel.static_shared_bytes),
        )
        if value is not None
    ]
    if kernel.theoretical_occupancy is not None:
        parts.append(f"occupancy at most {kernel.theoretical_occupancy:.0%} ({kernel.occupancy_limiter})")
    mix = kernel.instructions or {}
    wide = sorted((name for name in mix if "_load_" in name or "_store_" in name), key=lambda n: -mix[n])
    parts += [f"{name} {mix[name]}" for name in (*_STATIC, *wide[:4]) if mix.get(name)]
    return f"{kernel.name}: {', '.join(parts)}" if parts else ""


def _spills(static: StaticMetrics | None, kernel: str) -> int | None:
    return next((k.spill_bytes for k in static.kernels if k.name == kernel), None) if static else None


def _numbers(seen: Seen) -> tuple[tuple[str, float], ...]:
    metrics = seen.metrics
    shown = [(label, value) for label, name in _SHOWN if (value := metrics.get(name)) is not None]
    waits = seen.stalls()[:1]
    shown += [(f"stall {reason} %", 100 * share) for reason, share in waits]
    return tuple(shown[:MOST_NUMBERS])


def _changes(whom: str, other: Digest | None, mine: Iterable[tuple[str, float]]) -> Iterator[str]:
    if other is None or other.level == 0:
        return
    before = dict(other.numbers)
    moved = [
        (abs(now - before[name]), f"{name} {_short(before[name])} -> {_short(now)}")
        for name, now in mine
        if name in before and abs(now - before[name]) > CHANGED * max(abs(before[name]), 1.0)
    ]
    told = ", ".join(text for _, text in sorted(moved, reverse=True)[:4]) or "the numbers are alike"
    yield f"Against the {whom} ({other.bottleneck}): {told}"


def _roof(roofline: Roofline | None) -> Iterator[str]:
    if roofline is None:
        return
    share = f", {roofline.share:.0%} of it attained" if roofline.share else ""
    yield f"Roofline: bound by {roofline.bound}, floor {roofline.floor_ms:.4g} ms{share}"


def _share(kernels: Sequence[KernelProfile], slowest: KernelProfile) -> Iterator[str]:
    total = sum(kernel.time_ns for kernel in kernels)
    if len(kernels) > 1 and total:
        yield f"{slowest.kernel} takes {slowest.time_ns / total:.0%} of the time of {len(kernels)} launches"


def _hot(line: HotLine) -> str:
    waits = ", ".join(f"{reason} {share:.0%}" for reason, share in line.stalls)
    return f"Hot line {line.line} ({line.share:.0%} of samples{'; ' if waits else ''}{waits}): {line.text}"


def _short(value: float) -> str:
    return f"{value:.3g}"


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 3]}..."
