"""Kernels with planted bottlenecks on a real GPU: whether the label is right, and goes with its cause.

``python bench/bench_bottlenecks.py [--device cuda:0] [--raw FOLDER] [--only NAME,...] [--level2] [--from FOLDER [--keep FOLDER]]``

Each template in ``bench/bottlenecks/kernels`` launches a kernel with one planted bottleneck and its cured twin; one
call of ncu profiles both. Raw reports go to ``--raw``; ``--from`` labels such a folder again without a GPU, so that
rules can be mended off-line, and ``--keep`` writes its reports with the columns that the rules read (as in
``tests/data/ncu_bottlenecks``). Exit code 1 when a label is wrong or stays without its cause.
"""

import argparse
import asyncio
import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.outcome import StaticMetrics
from kernelwright.harness.local import LocalHarness
from kernelwright.profiling import Bottleneck, KernelProfile, make_digest
from kernelwright.profiling.names import FREE, LEVEL1, PASSES
from kernelwright.profiling.ncu_csv import read_raw, trimmed

HERE = Path(__file__).parent / "bottlenecks"
EXPECTED = {
    "uncoalesced_loads": Bottleneck.UNCOALESCED_LOADS,
    "strided_stores": Bottleneck.STRIDED_STORES,
    "bank_conflicts": Bottleneck.BANK_CONFLICTS,
    "occupancy_registers": Bottleneck.OCCUPANCY_REGISTERS,
    "occupancy_shared": Bottleneck.OCCUPANCY_SHARED,
    "occupancy_block": Bottleneck.OCCUPANCY_BLOCKS,
    "spills": Bottleneck.SPILLS,
    "small_grid": Bottleneck.SMALL_GRID,
    "tail": Bottleneck.TAIL,
    "divergence": Bottleneck.DIVERGENCE,
    "latency_chain": Bottleneck.LATENCY,
    "dram": Bottleneck.DRAM,
    "l2": Bottleneck.L2,
    "compute": Bottleneck.COMPUTE,
    "tensor": Bottleneck.TENSOR,
    "barriers": Bottleneck.BARRIERS,
    "atomics": Bottleneck.ATOMICS,
}


@dataclass(frozen=True)
class Row:
    """One template: the labels of both kernels, and what the profile cost."""

    name: str
    planted: str
    cured: str
    seconds: float = 0.0
    passes: float = 0.0
    characters: int = 0
    note: str = ""

    @property
    def right(self) -> bool:
        """The label is the one expected, and the cured twin has another."""
        return self.planted == EXPECTED[self.name] and self.cured not in {"", self.planted}


def judge(name: str, kernels: tuple[KernelProfile, ...], static: StaticMetrics | None, seconds: float) -> Row:
    """Labels of the two launches."""
    digests = {k.kernel: make_digest([k], static=static, case="bench") for k in kernels}
    if set(digests) != {"planted", "cured"}:
        return Row(name, "", "", seconds, note=f"launches seen: {', '.join(digests) or 'none'}")
    passes = kernels[0].metrics.get(PASSES) or 0.0
    for kernel, digest in digests.items():
        print(f"--- {name}: {kernel}\n{digest.text}", flush=True)
    planted, cured = digests["planted"], digests["cured"]
    longest = max(len(planted.text), len(cured.text))
    return Row(name, planted.bottleneck, cured.bottleneck, seconds, passes, longest)


def spills_of(static: StaticMetrics | None) -> dict[str, int]:
    return {k.name: k.spill_bytes or 0 for k in static.kernels} if static else {}


async def profile(harness: LocalHarness, name: str, raw: Path | None, level: int) -> Row:
    template = parse_template((HERE / "kernels" / f"{name}.cu").read_text(encoding="utf-8"), name)
    candidate = Candidate(template, Configuration())
    compiled = await harness.compile(candidate)
    result = await harness.profile(candidate, harness.cases[0].id, compiled=compiled, level=level)
    if raw:
        (raw / f"{name}.csv").write_text(result.raw, encoding="utf-8")
        (raw / f"{name}.json").write_text(json.dumps(spills_of(compiled.static)), encoding="utf-8")
    for note in result.notes:
        print(f"{name}: {note}")
    for line in result.lines:
        print(f"{name}: {line}")
    if result.status != "profiled":
        return Row(name, "", "", result.seconds, note=f"{result.status}: {result.reason}")
    return judge(name, result.kernels, compiled.static, result.seconds)


def again(name: str, folder: Path) -> Row:
    """The labels of a kept report."""
    from kernelwright.core.outcome import KernelStatics

    spills = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    static = StaticMetrics(tuple(KernelStatics(kernel, spill_bytes=n) for kernel, n in spills.items()))
    return judge(name, read_raw((folder / f"{name}.csv").read_text(encoding="utf-8")).kernels, static, 0.0)


def keep(names: list[str], folder: Path, target: Path) -> None:
    """Copies of kept reports with what the rules read."""
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        text = (folder / f"{name}.csv").read_text(encoding="utf-8")
        (target / f"{name}.csv").write_text(trimmed(text, (*LEVEL1, *FREE)), encoding="utf-8")
        shutil.copyfile(folder / f"{name}.json", target / f"{name}.json")


async def measure(names: list[str], device: str, raw: Path | None, level: int) -> list[Row]:
    async with LocalHarness(HERE, device, compile_workers=2) as harness:
        return [await profile(harness, name, raw, level) for name in names]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--raw", type=Path)
    parser.add_argument("--from", dest="kept", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", default=",".join(EXPECTED))
    parser.add_argument("--level2", action="store_true")
    given = parser.parse_args()
    names, start = given.only.split(","), time.monotonic()
    if given.raw:
        given.raw.mkdir(parents=True, exist_ok=True)
    if given.kept:
        rows = [again(name, given.kept) for name in names]
        if given.keep:
            keep(names, given.kept, given.keep)
    else:
        rows = asyncio.run(measure(names, given.device, given.raw, 2 if given.level2 else 1))
    print(
        "\n| kernel | label | expected | right | cured twin | s | passes | characters |\n|---|---|---|---|---|---|---|---|"
    )
    for r in rows:
        print(
            f"| {r.name} | {r.planted or r.note} | {EXPECTED[r.name]} | {'yes' if r.right else 'NO'} "
            f"| {r.cured} | {r.seconds:.1f} | {r.passes:.0f} | {r.characters} |"
        )
    right = sum(r.right for r in rows)
    print(f"\n{right} of {len(rows)} right; {time.monotonic() - start:.0f} s in all")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
