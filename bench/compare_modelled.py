"""Modelled coalescing and bank conflicts of the cpu device against counters of a GPU, on the same kernels.

``python bench/compare_modelled.py [--ncu FOLDER] [--only NAME,...]``

Each template of ``bench/bottlenecks/kernels`` runs once in the cpu device's checked mode: whole arrays, but four
blocks a launch and a small ``N``, since patterns do not depend on either. ``--ncu`` is a folder of reports that
``bench_bottlenecks.py --raw`` wrote (by default those of the tests). Compared are sectors a request of global loads
and stores, the share of shared wavefronts that conflicts added, and the name of the pattern where both sides give
one. Exit code 1 when a figure is more than 10 % off
and :data:`KNOWN` does not say why, or a name differs.
"""

import argparse
import re
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.launch import BuildRequest
from kernelwright.core.resolve import macros, resolve
from kernelwright.devices.base import Buffer, CaseInputs, CaseRequest, RunRequest, Tolerance
from kernelwright.devices.cpu import CpuCompiler, CpuRunner
from kernelwright.devices.traffic import Traffic, read_traffic
from kernelwright.problems.loader import load_problem
from kernelwright.profiling import Bottleneck, KernelProfile, names
from kernelwright.profiling import modelled as modelled_names
from kernelwright.profiling.labels import Seen, labels
from kernelwright.profiling.ncu_csv import read_raw

ROOT = Path(__file__).parents[1]
BOTTLENECKS = ROOT / "bench" / "bottlenecks"
REPORTS = ROOT / "tests" / "data" / "ncu_bottlenecks"
ELEMENTS = 1 << 24
"""Of each array, as on the GPU: some kernels have the sizes in their indices."""
SIZE = 1 << 16
BLOCKS = 4
NEAR = 0.1
KERNEL = re.compile(r'extern "C" __global__ .*?(\w+)\(const')
FIGURES = ("sectors a load", "sectors a store", "conflicts %")
FENCE = re.compile(r'asm volatile\(""[^;]*;')
"""Empty inline PTX that only keeps a compiler from moving code; the cpu device has no inline PTX."""
PATTERNS = (Bottleneck.UNCOALESCED_LOADS, Bottleneck.STRIDED_STORES, Bottleneck.BANK_CONFLICTS)
DIFFERENT = "names differ:"
KNOWN: Mapping[tuple[str, str, str], str] = {
    (
        "divergence",
        "planted",
        FIGURES[0],
    ): "lanes take the branch in turns; the model puts their first executions together"
}


@dataclass(frozen=True)
class Pair:
    """One figure of one kernel, modelled and counted. The conflicts' share is in percent of shared wavefronts."""

    name: str
    kernel: str
    figure: str
    modelled: float
    counted: float

    @property
    def off(self) -> float:
        """Relative difference; of shares the difference in points of 100."""
        if self.figure == FIGURES[2]:
            return abs(self.modelled - self.counted) / 100
        return abs(self.modelled - self.counted) / self.counted

    @property
    def known(self) -> str:
        """Why it is known to be off; empty when it is not."""
        return KNOWN.get((self.name, self.kernel, self.figure), "")


class Arrays:
    """A case source: ``A`` and ``B`` hold random numbers, ``C`` zeros; results are not looked at."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._arrays = {name: rng.random(ELEMENTS, np.float32) for name in "AB"}
        self._arrays["C"] = np.zeros(ELEMENTS, np.float32)

    def buffers(self, case: str) -> tuple[Buffer, ...]:  # noqa: ARG002 - the protocol's
        """Three arrays."""
        roles = {"A": "in", "B": "in", "C": "inout"}
        return tuple(Buffer(name, "float32", (ELEMENTS,), role) for name, role in roles.items())

    def inputs(self, case: str, index: int) -> CaseInputs:  # noqa: ARG002 - the protocol's
        """Always the same."""
        return CaseInputs(self._arrays)

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:  # noqa: ARG002
        """Nothing in particular."""
        return {"C": inputs["C"]}

    def tolerance(self, case: str, output: str, expected_rms: float) -> Tolerance:  # noqa: ARG002
        """Anything is right."""
        return Tolerance(0.0, float("inf"))


class Model:
    """The checked mode on templates of the folder of bottlenecks."""

    def __init__(self, compiler: CpuCompiler, runner: CpuRunner, scratch: Path) -> None:
        self._compiler, self._runner, self._scratch = compiler, runner, scratch
        self._signature = load_problem(BOTTLENECKS).signature
        self._source = Arrays()

    def run(self, name: str) -> tuple[dict[str, list[Traffic]], str]:
        """Accesses by kernel, and why there are none."""
        template = parse_template((BOTTLENECKS / "kernels" / f"{name}.cu").read_text(encoding="utf-8"), name)
        candidate, facts = Candidate(template, Configuration()), self._runner.facts
        source = FENCE.sub(";", template.source)
        request = BuildRequest(source, macros(candidate, facts), {}, template.kernels, "", "check")
        built = self._compiler.build(request, self._scratch)
        if built.status is not None:
            return {}, f"{built.status}: {built.reason}"
        plan = resolve(candidate, {"N": SIZE}, facts, self._signature)
        launches = tuple(replace(one, grid=(min(one.grid[0], BLOCKS), 1, 1)) for one in plan.launches)
        case = CaseRequest("small", replace(plan, launches=launches))
        result = self._runner.run(
            RunRequest(built.artifact, (case,), check_only=True, timeout_s=120), self._source
        )
        seen = list(read_traffic(result.findings))
        return _by_kernel(template, seen), "" if seen else f"{result.status}: {result.reason}"


def _by_kernel(template: Template, traffic: Sequence[Traffic]) -> dict[str, list[Traffic]]:
    """Accesses by the kernel in whose lines they lie."""
    begins = {}
    for number, line in enumerate(template.source.splitlines(), 1):
        if found := KERNEL.match(line):
            begins[found[1]] = number
    kernels: dict[str, list[Traffic]] = {name: [] for name in begins}
    for one in traffic:
        before = [name for name, first in begins.items() if one.line.isdecimal() and first <= int(one.line)]
        if before:
            kernels[before[-1]].append(one)
    return kernels


def modelled(traffic: Sequence[Traffic]) -> dict[str, float]:
    """Figures of one kernel; what it has no accesses of is left out."""
    found = {}
    for figure, operation in zip(FIGURES[:2], ("load", "store"), strict=True):
        mine = [one for one in traffic if (one.space, one.operation) == ("global", operation)]
        if requests := sum(one.requests for one in mine):
            found[figure] = sum(one.units * one.requests for one in mine) / requests
    shared = [one for one in traffic if one.space == "shared"]
    if waves := sum(one.units * one.requests for one in shared):
        found[FIGURES[2]] = 100 * sum(one.excess for one in shared) / waves
    return found


def counted(profile: KernelProfile) -> dict[str, float]:
    """The same figures from counters."""
    found, metrics = {}, profile.metrics
    for figure, kind in zip(FIGURES[:2], ("ld", "st"), strict=True):
        each = metrics.ratio(names.sectors(kind), names.requests(kind))
        if each is not None:
            found[figure] = each
    waves = metrics.total(names.wavefronts("ld"), names.wavefronts("st"))
    added = metrics.total(names.conflicts("ld"), names.conflicts("st"))
    if waves and added is not None:
        found[FIGURES[2]] = 100 * added / waves
    return found


def named(traffic: Sequence[Traffic], profile: KernelProfile) -> tuple[str, str]:
    """The pattern that each side names; ``none`` where it names none."""
    model = modelled_names(one.text for one in traffic)
    mine = model.label.bottleneck if model and model.label else "none"
    theirs = [label.bottleneck for label in labels(Seen(profile.metrics)) if label.bottleneck in PATTERNS]
    return mine, theirs[0] if theirs else "none"


def compare(name: str, model: Model, reports: Path) -> tuple[list[Pair], list[str]]:
    """Pairs of figures, and what only one side has."""
    traffic, why = model.run(name)
    if why:
        return [], [f"{name}: not modelled: {why}"]
    pairs, alone = [], []
    for profile in read_raw((reports / f"{name}.csv").read_text(encoding="utf-8")).kernels:
        here, there = modelled(traffic.get(profile.kernel, [])), counted(profile)
        mine, theirs = named(traffic.get(profile.kernel, []), profile)
        if mine != theirs:
            alone.append(f"{name}, {profile.kernel}: {DIFFERENT} {mine} modelled, {theirs} counted")
        pairs += [
            Pair(name, profile.kernel, figure, here[figure], there[figure])
            for figure in FIGURES
            if figure in here and figure in there
        ]
        alone += [
            f"{name}, {profile.kernel}: {figure} {'modelled' if figure in here else 'counted'} only"
            for figure in FIGURES
            if (figure in here) != (figure in there)
        ]
    return pairs, alone


def agreement(pairs: Sequence[Pair]) -> list[str]:
    """For each figure how many pairs agree, and how far the others are off."""
    lines = []
    for figure in FIGURES:
        off = [pair.off for pair in pairs if pair.figure == figure]
        if off:
            exact, near = (sum(one <= limit for one in off) for limit in (0.01, NEAR))
            lines.append(
                f"{figure}: {len(off)} pairs, {exact} within 1 %, {near} within 10 %, "
                f"median {statistics.median(off):.1%} off, worst {max(off):.1%}"
            )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ncu", type=Path, default=REPORTS)
    parser.add_argument(
        "--only", default=",".join(sorted(p.stem for p in (BOTTLENECKS / "kernels").iterdir()))
    )
    given = parser.parse_args()
    pairs: list[Pair] = []
    alone: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        cache = Path(scratch) / "cache"
        model = Model(CpuCompiler(cache=cache), CpuRunner(Path(scratch), cache=cache), Path(scratch))
        for name in given.only.split(","):
            more, notes = compare(name, model, given.ncu)
            pairs, alone = pairs + more, alone + notes
    print("| kernel | launch | figure | modelled | counted | off | why |\n|---|---|---|---|---|---|---|")
    for pair in pairs:
        print(
            f"| {pair.name} | {pair.kernel} | {pair.figure} | {pair.modelled:.2f} | {pair.counted:.2f} "
            f"| {pair.off:.1%} | {pair.known} |"
        )
    print("\n" + "\n".join([*agreement(pairs), *alone]))
    wrong = sum(DIFFERENT in note for note in alone)
    launches = len({(pair.name, pair.kernel) for pair in pairs})
    print(f"names: {launches - wrong} of {launches} launches alike")
    return 1 if wrong or any(pair.off > NEAR and not pair.known for pair in pairs) else 0


if __name__ == "__main__":
    sys.exit(main())
