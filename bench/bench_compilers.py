"""nvcc against NVRTC: winners of recorded campaigns and tuned templates of boards, compiled by both, in turn.

    python bench/bench_compilers.py --device cuda:0 --json compilers.json

NVRTC before 13.1 addresses shared memory with 64 bits, nvcc with 32: more registers and instructions for kernels that
live there. Each row is one candidate; its ratio is nvcc's time over NVRTC's by the problem's objective, from paired runs
(99 % interval). Needs a GPU and both compilers of one major version.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from command_line import parser_of
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.launch import BuildRequest
from kernelwright.core.objective import Objective
from kernelwright.core.statistics import decide
from kernelwright.devices.base import BuildResult
from kernelwright.devices.cuda.compiler import CudaCompiler
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import Built
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.worker.devices import DeviceMaker
from kernelwright.problems.loader import load_problem
from recorded_campaigns import RECORDED, packed, unpack

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
BOARDS = ("histogram", "matmul", "grayscale", "vectoradd")
MARK = "// by nvrtc"
"""What the pair differs in: a source with it goes through NVRTC."""


class Either:
    """Both compilers as one."""

    def __init__(self, scratch: Path) -> None:
        self._nvrtc = CudaCompiler(cache_dir=scratch, make="nvrtc")
        self._nvcc = CudaCompiler(cache_dir=scratch, make="nvcc")
        self.toolchain = f"{self._nvcc.toolchain} and {self._nvrtc.toolchain}"

    def build(self, request: BuildRequest, scratch: Path) -> BuildResult:
        """By the source's mark."""
        chosen = self._nvrtc if MARK in request.source else self._nvcc
        return chosen.build(request, scratch)


class Maker(DeviceMaker):
    """Made in the workers."""

    def compiler(self, setup: WorkerSetup) -> tuple[Either, str]:
        """Both."""
        either = Either(Path(setup.scratch))
        return either, either.toolchain


@dataclass(frozen=True)
class Row:
    """``registers`` of the heaviest kernel, nvcc's and NVRTC's; no ratio where something failed."""

    name: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    registers: tuple[int, int] | None = None
    same: bool = False
    error: str = ""


def candidates(folder: Path, chosen: list[str]) -> Iterator[tuple[str, str, Candidate | str]]:
    """Name, problem, and the candidate or the source of a template whose first configuration is meant."""
    from kernelwright.memory.store import Memory
    from kernelwright.replay.subject import read_subject

    for name, problem in RECORDED.items():
        if name not in chosen:
            continue
        with Memory.open(unpack(packed(name), folder / name), create=False) as memory:
            yield name, problem, read_subject(memory, "last", problem).facts().candidate
    for name in BOARDS:
        if name in chosen:
            place = ROOT / "examples" / "boards" / name
            yield f"board {name}", str(place), (place / "fast.cu").read_text(encoding="utf-8")


async def measure(name: str, problem: str, what: Candidate | str, device: str, rounds: int) -> Row:
    async with LocalHarness(
        load_problem(problem), device, compile_workers=2, checked=False, maker="bench_compilers:Maker"
    ) as harness:
        if isinstance(what, str):
            template = parse_template(what, name)
            what = Candidate(template, template.plan.space(harness.facts).configuration(0))
        marked = parse_template(f"{what.template.source}\n{MARK}", what.template.name)
        sides = [await built(harness, c) for c in (what, replace(what, template=marked))]
        failed = next((side.compiled for side in sides if side.compiled.status), None)
        if failed:
            return Row(name, error=f"{failed.status}: {failed.reason}")
        statics = [side.compiled.static for side in sides]
        registers = tuple(max(k.registers or 0 for k in s.kernels) for s in statics if s)
        if sides[0].compiled.digest == sides[1].compiled.digest:
            return Row(name, registers=registers, same=True)  # type: ignore[arg-type]
        result = await harness.duel(sides[0], sides[1], rounds)
        if not result.cases:
            return Row(name, error=f"{result.at_fault}: {result.status}: {result.reason}")
        found = decide([result.cases], Objective(harness.problem.spec.objective), 1)
        return Row(name, found.ratio, found.low, found.high, found.rounds, registers)  # type: ignore[arg-type]


async def built(harness: LocalHarness, candidate: Candidate) -> Built:
    return Built(candidate, await harness.compile(candidate))


def line(row: Row) -> str:
    registers = f"{row.registers[0]:4d} {row.registers[1]:5d}" if row.registers else f"{'-':>4} {'-':>5}"
    if row.same:
        return f"{row.name:20} {registers}  the same binary"
    if row.ratio is None:
        return f"{row.name:20} {registers}  {row.error}"
    return f"{row.name:20} {registers}  {row.ratio:.4f} [{row.low:.4f}, {row.high:.4f}]  {row.rounds} rounds"


def main() -> int:
    names = [*RECORDED, *BOARDS]
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=64)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    sys.path.insert(0, str(BENCH))  # the workers import Maker from here
    rows: list[dict[str, Any]] = []
    bad = 0
    print(f"{'':20} registers: nvcc, NVRTC; nvcc's time over NVRTC's")
    with tempfile.TemporaryDirectory() as folder:
        for name, problem, what in candidates(Path(folder), options.only):
            row = asyncio.run(measure(name, problem, what, options.device, options.rounds))
            rows.append(asdict(row))
            bad += bool(row.error)
            print(line(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
