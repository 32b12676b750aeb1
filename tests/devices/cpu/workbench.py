"""An easy way to run a kernel on arrays: one compiler and one runner for all tests of the cpu device."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.core.launch import BuildRequest, KernelArgument, LaunchSpec, ResolvedPlan, ScratchSpec
from kernelwright.devices.base import (
    Buffer,
    BuildResult,
    CaseInputs,
    CaseRequest,
    RunRequest,
    RunResult,
    TimingProtocol,
    Tolerance,
)
from kernelwright.devices.cpu import CpuCompiler, CpuRunner

Arrays = dict[str, Any]
DATA = Path(__file__).parents[2] / "data" / "cpu"


def kernel_text(name: str) -> str:
    return (DATA / name).read_text()


def dims(extents: int | Sequence[int]) -> tuple[int, int, int]:
    given = (extents,) if isinstance(extents, int) else tuple(extents)
    x, y, z = (*given, 1, 1, 1)[:3]
    return x, y, z


@dataclass
class Kernel:
    """A kernel, its launch, and a problem for it. ``args`` are names of arrays, or scalars."""

    source: str
    args: Sequence[str | int | float]
    inputs: Callable[[np.random.Generator], Arrays]
    outputs: Mapping[str, Any]  # name -> zeros of the shape and dtype
    expected: Callable[[Arrays], Arrays]
    kernel: str = "k"
    grid: int | Sequence[int] = 1
    block: int | Sequence[int] = 32
    smem: int = 0
    inout: Sequence[str] = ()
    scratch: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    macros: dict[str, int] = field(default_factory=dict)
    options: dict[str, bool | int] = field(default_factory=dict)
    tolerance: float = 1e-5
    atomic_noise: bool = False


class ArraySource:
    """A case source over the functions of a :class:`Kernel`."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.made = 0

    def buffers(self, case: str) -> tuple[Buffer, ...]:
        arrays = self.kernel.inputs(np.random.default_rng(0))
        roles = {name: "inout" if name in self.kernel.inout else "in" for name in arrays}
        everything = {**arrays, **self.kernel.outputs}
        return tuple(Buffer(n, str(a.dtype), a.shape, roles.get(n, "out")) for n, a in everything.items())

    def inputs(self, case: str, index: int) -> CaseInputs:
        self.made += 1
        return CaseInputs(self.kernel.inputs(np.random.default_rng(index)))

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:
        return self.kernel.expected(dict(inputs))

    def tolerance(self, case: str, output: str, expected_rms: float) -> Tolerance:
        return Tolerance(self.kernel.tolerance, self.kernel.tolerance * max(expected_rms, 1e-3))


class Bench:
    """Builds and runs kernels."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.cache = cache
        self.compiler = CpuCompiler(cache=self.cache)
        self.runner = CpuRunner(self.scratch, threads=2, cache=self.cache)

    def build(
        self, source: str, kernels: Sequence[str] = ("k",), mode: str = "fast", **more: Any
    ) -> BuildResult:
        macros, options = more.get("macros", {}), more.get("options", {})
        return self.compiler.build(
            BuildRequest(source, macros, options, tuple(kernels), "", mode), self.scratch
        )

    def plan(self, kernel: Kernel) -> ResolvedPlan:
        arrays = {**kernel.inputs(np.random.default_rng(0)), **kernel.outputs}
        types = {name: str(array.dtype) for name, array in arrays.items()}
        types |= {name: dtype for name, (dtype, _) in kernel.scratch.items()}
        arguments = [
            KernelArgument(a, types[a])
            if isinstance(a, str)
            else KernelArgument("scalar", "int32" if isinstance(a, int) else "float32", a)
            for a in kernel.args
        ]
        launch = LaunchSpec(
            kernel.kernel, dims(kernel.grid), dims(kernel.block), kernel.smem, tuple(arguments)
        )
        scratch = tuple(ScratchSpec(n, d, e) for n, (d, e) in kernel.scratch.items())
        return ResolvedPlan((launch,), scratch, kernel.atomic_noise)

    def run(self, kernel: Kernel, mode: str = "fast", runs: int = 4, timeout_s: float = 20.0) -> RunResult:
        built = self.build(
            kernel.source, (kernel.kernel,), mode, macros=kernel.macros, options=kernel.options
        )
        assert built.status is None, (built.reason, built.log)
        return self.execute(built.artifact, kernel, mode, runs, timeout_s)

    def execute(self, artifact: str, kernel: Kernel, mode: str, runs: int, timeout_s: float) -> RunResult:
        request = RunRequest(
            artifact,
            (CaseRequest("small", self.plan(kernel)),),
            TimingProtocol(runs=runs, dropped=2, input_sets=2),
            check_only=mode == "check",
            timeout_s=timeout_s,
        )
        return self.runner.run(request, ArraySource(kernel))
