"""How fast the cpu device is: compile seconds, run time against NumPy, checked mode against fast mode.

Figures depend on the machine and are for its developers: they say nothing about a GPU.

    python bench/bench_cpu_device.py [--repeat 3] [kernel ...]
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from command_line import parser_of
from kernelwright.core.launch import BuildRequest, KernelArgument, LaunchSpec, ResolvedPlan
from kernelwright.core.outcome import Status
from kernelwright.devices.base import (
    Buffer,
    CaseInputs,
    CaseRequest,
    RunRequest,
    RunResult,
    TimingProtocol,
    Tolerance,
)
from kernelwright.devices.cpu import CpuCompiler, CpuRunner

KERNELS = Path(__file__).parents[1] / "tests" / "data" / "cpu"


@dataclass(frozen=True)
class Workload:
    """A kernel of tests/data/cpu on inputs of a size worth timing; ``args`` are buffers or int32 scalars."""

    file: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shapes: Mapping[str, tuple[int, ...]]
    outputs: tuple[str, ...]
    args: tuple[str | int, ...]
    numpy: Callable[..., Any]
    smem: int = 0

    def buffers(self, case: str) -> tuple[Buffer, ...]:
        """Arrays of the kernel."""
        del case
        return tuple(
            Buffer(n, "float32", s, "out" if n in self.outputs else "in") for n, s in self.shapes.items()
        )

    def inputs(self, case: str, index: int) -> CaseInputs:
        """Random inputs."""
        rng = np.random.default_rng(index)
        names = [b.name for b in self.buffers(case) if b.role == "in"]
        return CaseInputs({n: rng.standard_normal(self.shapes[n]).astype(np.float32) for n in names})

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:
        """Right outputs, in float64."""
        del case, xp
        return {self.outputs[0]: self.numpy(*(a.astype(np.float64) for a in inputs.values()))}

    def tolerance(self, case: str, output: str, expected_rms: float) -> Tolerance:
        """Loose: this is no test."""
        del case, output
        return Tolerance(1e-4, 1e-4 * expected_rms)

    def plan(self) -> ResolvedPlan:
        """The one launch."""
        arguments = tuple(
            KernelArgument(a, "float32") if isinstance(a, str) else KernelArgument("n", "int32", a)
            for a in self.args
        )
        return ResolvedPlan((LaunchSpec(self.kernel, self.grid, self.block, self.smem, arguments),))


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def sgemm(n: int, kernel: str, tile: int, block: tuple[int, int, int]) -> Workload:
    blocks = -(-n // tile)
    shapes = dict.fromkeys("abc", (n, n))
    return Workload(
        "sgemm.cu", kernel, (blocks, blocks, 1), block, shapes, ("c",), ("a", "b", "c", n, n, n), np.matmul
    )


def workloads() -> dict[str, Workload]:
    n = 1 << 22
    return {
        "vadd": Workload("vadd.cu", "vadd", (n // 1024, 1, 1), (256, 1, 1), dict.fromkeys("abc", (n,)), ("c",),
                         ("a", "b", "c", n), np.add),
        "softmax": Workload("softmax.cu", "softmax", (2048, 1, 1), (256, 1, 1), dict.fromkeys("xy", (2048, 1024)),
                            ("y",), ("x", "y", 1024), softmax, (1024 + 32) * 4),
        "sgemm 256": sgemm(256, "sgemm", 64, (256, 1, 1)),
        "sgemm 512": sgemm(512, "sgemm", 64, (256, 1, 1)),
        "sgemm_simple 256": sgemm(256, "sgemm_simple", 16, (16, 16, 1)),
    }  # fmt: skip


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("kernels", nargs="*", help="names of workloads; all when left out")
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each figure")
    options = parser.parse_args()
    print(
        f"{'workload':18}{'build s':>9}{'check s':>9}{'fast ms':>10}{'numpy ms':>10}{'checked ms':>12}{'slower':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for name, workload in workloads().items():
            if not options.kernels or name in options.kernels:
                bench.show(name, workload, options.repeat)


class Bench:
    """Builds, runs and prints."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.compiler = CpuCompiler()
        self.runner = CpuRunner(scratch)

    def show(self, name: str, workload: Workload, repeat: int) -> None:
        """One row of the table."""
        self.build(workload, "fast"), self.build(workload, "check")  # what is built once is built now
        fast_s, fast = min(self.build(workload, "fast") for _ in range(repeat))
        check_s, check = min(self.build(workload, "check") for _ in range(repeat))
        result = self.run(workload, fast, TimingProtocol(runs=2 + 3 * repeat))
        fast_ms = statistics.median(result.timings[0].samples_ms)
        checked_ms = 1e3 * self.run(workload, check, None).time_seconds
        numpy_ms = self.numpy_ms(workload, repeat)
        print(f"{name:18}{fast_s:9.2f}{check_s:9.2f}{fast_ms:10.2f}{numpy_ms:10.2f}{checked_ms:12.1f}"
              f"{checked_ms / fast_ms:8.1f}", flush=True)  # fmt: skip

    def build(self, workload: Workload, mode: str) -> tuple[float, str]:
        """Seconds and the artifact."""
        source = (KERNELS / workload.file).read_text()
        built = self.compiler.build(BuildRequest(source, {}, {}, (workload.kernel,), "", mode), self.scratch)
        if built.status is not None:
            raise SystemExit(f"{workload.file}: {built.reason}")
        return built.seconds, built.artifact

    def run(self, workload: Workload, artifact: str, timing: TimingProtocol | None) -> RunResult:
        """Timed, or with no timing checked once."""
        request = RunRequest(artifact, (CaseRequest("bench", workload.plan()),), timing or TimingProtocol(),
                             check_only=timing is None, timeout_s=120)  # fmt: skip
        result = self.runner.run(request, workload)
        if result.status != Status.MEASURED:
            raise SystemExit(f"{workload.file}: {result.status}: {result.reason}")
        return result

    @staticmethod
    def numpy_ms(workload: Workload, repeat: int) -> float:
        """Best time of the NumPy version."""
        arrays = workload.inputs("bench", 0).arrays.values()
        times = []
        for _ in range(repeat + 1):
            begin = time.perf_counter()
            workload.numpy(*arrays)
            times.append(1e3 * (time.perf_counter() - begin))
        return min(times)


if __name__ == "__main__":
    main()
