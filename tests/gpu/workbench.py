"""Shared by the tests on a real GPU: kernels, their cases, a bench to run them on."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.core.launch import BuildRequest, KernelArgument, LaunchSpec, ResolvedPlan
from kernelwright.devices.base import (
    Buffer,
    CaseInputs,
    CaseRequest,
    Contestant,
    DuelRequest,
    DuelResult,
    RunRequest,
    RunResult,
    Tolerance,
)
from kernelwright.devices.cuda import CudaCompiler, CudaRunner


class Source:
    """Vector addition, scaling in place, sums, and matrix multiplication, by the case's name: ``add:1000``."""

    def buffers(self, case: str) -> tuple[Buffer, ...]:
        kind, size = case.split(":")
        n = int(size)
        if kind == "gemm":
            return tuple(Buffer(x, "float32", (n, n), r) for x, r in (("A", "in"), ("B", "in"), ("C", "out")))
        if kind == "scale":
            return (Buffer("X", "float32", (n,), "inout"),)
        if kind in {"copy", "sum"}:
            count = n if kind == "copy" else 1
            return (Buffer("A", "float32", (n,), "in"), Buffer("C", "float32", (count,), "out"))
        dtype = {"half": "float16", "brain": "bfloat16", "whole": "int32"}.get(kind, "float32")
        return tuple(Buffer(x, dtype, (n,), r) for x, r in (("A", "in"), ("B", "in"), ("C", "out")))

    def inputs(self, case: str, index: int) -> CaseInputs:
        rng = np.random.default_rng([index, len(case)])
        arrays = {}
        for buffer in self.buffers(case):
            if buffer.role == "out":
                continue
            values = rng.standard_normal(buffer.shape, dtype=np.float32)
            if buffer.dtype == "int32":
                arrays[buffer.name] = (values * 1000).astype(np.int32)
            elif buffer.dtype == "bfloat16":
                arrays[buffer.name] = (values.view(np.uint32) >> 16).astype(np.uint16)
            else:
                arrays[buffer.name] = values.astype(buffer.dtype)
        return CaseInputs(arrays)

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:
        wide = {name: xp.asarray(value, dtype=xp.float64) for name, value in inputs.items()}
        kind = case.partition(":")[0]
        if kind == "gemm":
            return {"C": wide["A"] @ wide["B"]}
        if kind == "scale":
            return {"X": wide["X"] * 2}
        if kind == "sum":
            return {"C": wide["A"].sum().reshape(1)}
        return {"C": wide["A"] if kind == "copy" else wide["A"] + wide["B"]}

    def tolerance(self, case: str, output: str, expected_rms: float) -> Tolerance:
        kind = case.partition(":")[0]
        if kind == "whole":
            return Tolerance(0.0, 0.0)
        if kind in {"half", "brain"}:
            return Tolerance(1e-2, 1e-2)
        if kind == "sum":
            return Tolerance(rtol=0.0, atol=1.0)
        return Tolerance(rtol=1e-5, atol=1e-5 * max(expected_rms, 1.0))


ADD = 'extern "C" __global__ void k(const T* A, const T* B, T* C, int n)'
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
SOURCES = {
    "add": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i]; }}",
    "whole": f"#define T int\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i]; }}",
    "half": f"#include <cuda_fp16.h>\n#define T __half\n{ADD} {{ {INDEX} if (i < n) C[i] = __hadd(A[i], B[i]); }}",
    "brain": f"#include <cuda_bf16.h>\n#define T __nv_bfloat16\n{ADD} {{ {INDEX} if (i < n)"
    " C[i] = __float2bfloat16(__bfloat162float(A[i]) + __bfloat162float(B[i])); }",
    "copy": f'extern "C" __global__ void k(const float* A, float* C, int n) {{ {INDEX} if (i < n) C[i] = A[i]; }}',
    "scale": f'extern "C" __global__ void k(float* X, int n) {{ {INDEX} if (i < n) X[i] *= 2; }}',
    "wrong": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i] + (i == 77); }}",
    "tail": f"#define T float\n{ADD} {{ {INDEX} if (i < n - 1) C[i] = A[i] + B[i]; }}",
    "outside": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i]; if (i == 0) C[n + 2] = 1; }}",
    "mutates": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i] = A[i] + B[i];"
    " if (i == 9) const_cast<float*>(A)[9] = 5; }",
    "crash": f"#define T float\n{ADD} {{ {INDEX} if (i < n) C[i + (1ll << 40)] = A[i]; }}",
    "endless": f"#define T float\n{ADD} {{ volatile int go = 1; while (go) __nanosleep(1000);"
    f" {INDEX} if (i < n) C[i] = A[i]; }}",
    "shared": f"#define T float\n{ADD} {{ extern __shared__ float s[]; {INDEX} int last = 40000 - 1 - threadIdx.x;"
    " s[last] = i < n ? A[i] + B[i] : 0; __syncthreads(); if (i < n) C[i] = s[last]; }",
    "static_shared": f"#define T float\n{ADD} {{ __shared__ float s[256]; {INDEX} s[threadIdx.x] = A[i % n];"
    " __syncthreads(); if (i < n) C[i] = s[threadIdx.x] + B[i]; }",
    "cluster": "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n#define T float\n"
    + ADD
    + f" {{ __shared__ float s[256]; {INDEX} s[threadIdx.x] = i < n ? A[i] : 0; auto c = cg::this_cluster(); c.sync();"
    " float mine = *c.map_shared_rank(&s[threadIdx.x], c.block_rank()); c.sync();"
    " if (i < n) C[i] = c.num_blocks() == SIZE ? mine + B[i] : -1; }",
    "grid": "#include <cooperative_groups.h>\n#define T float\n"
    + ADD
    + f" {{ {INDEX} if (i < n) C[i] = A[i]; cooperative_groups::this_grid().sync();"
    " int j = n - 1 - i; if (j >= 0) C[j] += B[j]; }",
    "gemm": 'extern "C" __global__ void k(const float* A, const float* B, float* C, int n) {'
    " int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y; if (r < n && c < n) {"
    " float s = 0; for (int k = 0; k < n; ++k) s += A[r * n + k] * B[k * n + c]; C[r * n + c] = s; } }",
}


def tell(*parts: object) -> None:
    """A number for the reader; shown with ``-s``."""
    sys.stdout.write(" ".join(map(str, parts)) + "\n")


def launch(n: int, kernel: str = "k", args: str = "ABC", **more: Any) -> LaunchSpec:
    buffers = tuple(KernelArgument(a, "float32") for a in args)
    base: dict[str, Any] = {
        "kernel": kernel,
        "grid": (-(-n // 256), 1, 1),
        "block": (256, 1, 1),
        "dynamic_shared_bytes": 0,
        "arguments": (*buffers, KernelArgument("n", "int32", n)),
    }
    return LaunchSpec(**(base | more))


class Bench:
    """Compiles a source of the table and runs it."""

    def __init__(self, compiler: CudaCompiler, runner: CudaRunner, source: Source, scratch: Path) -> None:
        self.compiler, self.runner, self.source, self.scratch = compiler, runner, source, scratch

    def build(self, name: str, **macros: int) -> str:
        """The artifact of a source: one of the table by its name, or the text itself."""
        request = BuildRequest(SOURCES.get(name, name), macros, {}, ("k",), self.runner.facts.arch)
        result = self.compiler.build(request, self.scratch)
        assert result.status is None, result.reason
        return result.artifact

    def run(
        self, name: str, case: str, *launches: LaunchSpec, macros: dict[str, int] | None = None, **more: Any
    ) -> RunResult:
        floor = more.pop("floor_ms", 0.0)
        plan = ResolvedPlan(launches, more.pop("scratch", ()), more.pop("atomic_noise", False))
        cases = (CaseRequest(case, plan, floor, more.pop("loser_above_ms", float("inf"))),)
        return self.runner.run(RunRequest(self.build(name, **(macros or {})), cases, **more), self.source)

    def duel(
        self, challenger: str, incumbent: str, case: str, *launches: LaunchSpec, **more: Any
    ) -> DuelResult:
        floor = more.pop("floor_ms", 0.0)
        cases = (CaseRequest(case, ResolvedPlan(launches), floor),)
        first, second = (Contestant(self.build(name), cases) for name in (challenger, incumbent))
        return self.runner.duel(DuelRequest(first, second, **more), self.source)


def in_child(artifact: str, cache: Path, timeout_s: float) -> tuple[dict[str, Any], float]:
    """Runs a candidate that breaks its process's context in a process of its own."""
    code = (
        "import json, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "import workbench as t; r = t.CudaRunner(cache_dir=Path(sys.argv[3]));"
        "q = t.RunRequest(sys.argv[2], (t.CaseRequest('add:1000', t.ResolvedPlan((t.launch(1000),))),),"
        " timeout_s=float(sys.argv[4])); a = r.run(q, t.Source());"
        "print(json.dumps([a.status, a.reason, r.broken]), flush=True); import os; os._exit(0)"
    )
    here = str(Path(__file__).parent)
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-c", code, here, artifact, str(cache), str(timeout_s)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    line = child.stdout.readline()
    answered = time.perf_counter() - start
    child.kill()
    child.stdout.close()
    child.wait(30)
    status, reason, broken = json.loads(line)
    return {"status": status, "reason": reason, "broken": broken}, answered
