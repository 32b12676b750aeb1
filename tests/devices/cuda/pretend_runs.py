"""Runs the real runner on the pretend driver; prints one JSON line a scenario. Started by test_runner.py."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.core.errors import DeviceLost, KernelwrightError
from kernelwright.core.launch import KernelArgument, LaunchSpec, ResolvedPlan, ScratchSpec
from kernelwright.devices.base import (
    Buffer,
    CaseInputs,
    CaseRequest,
    RunRequest,
    RunResult,
    TimingProtocol,
    Tolerance,
)
from kernelwright.devices.cuda import CudaRunner

N = 1000


class VectorAdd:
    """C = A + B, and with ``inout`` the doubling of X in place."""

    def __init__(self, *, inout: bool = False) -> None:
        self.inout = inout
        self.made: list[tuple[str, int]] = []
        self.rms = 0.0

    def buffers(self, case: str) -> tuple[Buffer, ...]:
        if self.inout:
            return (Buffer("X", "float32", (N,), "inout"),)
        return tuple(Buffer(n, "float32", (N,), r) for n, r in (("A", "in"), ("B", "in"), ("C", "out")))

    def inputs(self, case: str, index: int) -> CaseInputs:
        self.made.append((case, index))
        rng = np.random.default_rng([len(case), index])
        names = ["X"] if self.inout else ["A", "B"]
        return CaseInputs({n: rng.standard_normal(N).astype(np.float32) for n in names})

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:
        wide = {n: v.astype(np.float64) for n, v in inputs.items()}
        return {"X": wide["X"] * 2} if self.inout else {"C": wide["A"] + wide["B"]}

    def tolerance(self, case: str, output: str, expected_rms: float) -> Tolerance:
        self.rms = expected_rms
        return Tolerance(rtol=1e-6, atol=1e-6)


def plan(kernel: str, **more: Any) -> LaunchSpec:
    buffers = tuple(KernelArgument(n, "float32") for n in "ABC")
    base: dict[str, Any] = {
        "kernel": kernel,
        "grid": (4, 1, 1),
        "block": (256, 1, 1),
        "dynamic_shared_bytes": 0,
        "arguments": (*buffers, KernelArgument("n", "int32", N)),
    }
    return LaunchSpec(**(base | more))


def request(artifact: Path, *launches: LaunchSpec, floor_ms: float = 0.0, **more: Any) -> RunRequest:
    resolved = ResolvedPlan(launches, (ScratchSpec("partial", "float32", 33),))
    cases = (CaseRequest("n=1000", resolved, floor_ms), CaseRequest("n=1000 again", resolved, floor_ms))
    return RunRequest(artifact=str(artifact), cases=cases, **more)


def tell(record: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")


def report(name: str, result: RunResult, **more: Any) -> None:
    timings = [[t.case, t.method, len(t.samples_ms), t.max_error] for t in result.timings]
    record = {"name": name, "status": result.status, "reason": result.reason, "timings": timings} | more
    tell(record)


def healthy(runner: CudaRunner, artifact: Path) -> None:
    source = VectorAdd()
    report("right", runner.run(request(artifact, plan("right")), source), rms=source.rms)
    report("right again", runner.run(request(artifact, plan("right")), source), made=source.made)
    report(
        "graph", runner.run(request(artifact, plan("right"), floor_ms=0.001), source), made=len(source.made)
    )
    report("check only", runner.run(request(artifact, plan("right"), check_only=True), source))
    many = RunRequest(
        str(artifact),
        request(artifact, plan("right")).cases[:1],
        TimingProtocol(runs=300, dropped=0, input_sets=4),
    )
    report("many runs", runner.run(many, source))
    for kernel in ("tail", "wrong", "outside", "before", "mutates", "refused", "once", "absent"):
        report(kernel, runner.run(request(artifact, plan(kernel)), source))
    report("cluster", runner.run(request(artifact, plan("right", cluster=(4, 1, 1))), source))
    report("cluster refused", runner.run(request(artifact, plan("right", cluster=(3, 1, 1))), source))
    together = {"cooperative": True, "grid": (1000, 1, 1)}
    report("cooperative refused", runner.run(request(artifact, plan("right", **together)), source))
    report("block", runner.run(request(artifact, plan("right", block=(512, 1, 1))), source))
    report("shared", runner.run(request(artifact, plan("right", dynamic_shared_bytes=232400)), source))
    wide = (*plan("right").arguments[:3], KernelArgument("n", "int64", N))
    report("argument", runner.run(request(artifact, plan("right", arguments=wide)), source))
    report("arguments", runner.run(request(artifact, plan("right", arguments=wide[:2])), source))
    unknown = (KernelArgument("Z", "float32"), *plan("right").arguments[1:])
    report("unknown", runner.run(request(artifact, plan("right", arguments=unknown)), source))
    huge = ResolvedPlan((plan("right"),), (ScratchSpec("huge", "float64", 1 << 28),))
    report("memory", runner.run(RunRequest(str(artifact), (CaseRequest("n=1000", huge),)), source))
    report("after all", runner.run(request(artifact, plan("right")), source))
    doubles = plan("doubles", arguments=(KernelArgument("X", "float32"), KernelArgument("n", "int32", N)))
    report("inout", runner.run(request(artifact, doubles), VectorAdd(inout=True)))
    report("inout graph", runner.run(request(artifact, doubles, floor_ms=0.001), VectorAdd(inout=True)))
    start = time.perf_counter()
    for _ in range(20):
        runner.run(request(artifact, plan("right")), source)
    sys.stdout.write(
        json.dumps({"name": "speed", "seconds": (time.perf_counter() - start) / 40, "spent": runner.spent})
        + "\n"
    )


class Faulty(VectorAdd):
    """A problem with one thing wrong."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def inputs(self, case: str, index: int) -> CaseInputs:
        arrays = dict(super().inputs(case, index).arrays)
        if self.fault == "lacks input":
            del arrays["B"]
        elif self.fault == "short input":
            arrays["A"] = arrays["A"][1:]
        return CaseInputs(arrays)

    def expected(self, case: str, inputs: Mapping[str, Any], xp: Any) -> Mapping[str, Any]:
        if self.fault == "lacks output":
            return {}
        return {"C": xp.zeros(7)} if self.fault == "short output" else super().expected(case, inputs, xp)


def faults(runner: CudaRunner, artifact: Path) -> None:
    def error(name: str, source: VectorAdd, file: Path) -> None:
        try:
            result = runner.run(request(file, plan("right")), source)
        except KernelwrightError as found:
            tell({"name": name, "error": str(found)})
        else:
            tell({"name": name, "error": result.reason})

    for fault in ("lacks input", "short input", "lacks output", "short output"):
        error(fault, Faulty(fault), artifact)
    error("no artifact", VectorAdd(), artifact.with_name("absent"))
    error("no cubin", VectorAdd(), Path(__file__))
    report("at last", runner.run(request(artifact, plan("right")), VectorAdd()))


def tight(runner: CudaRunner, artifact: Path) -> None:
    """A budget for about one case: data are made again instead of memory running out."""
    runner.gpu.budget = runner.gpu.pool.budget = 50_000
    source = VectorAdd()
    for _ in range(4):
        result = runner.run(request(artifact, plan("right")), source)
    report("tight", result, made=len(source.made))


def broken(runner: CudaRunner, artifact: Path, kernel: str) -> None:
    result = runner.run(request(artifact, plan("right"), plan(kernel), timeout_s=0.2), VectorAdd())
    state = runner.broken
    try:
        runner.run(request(artifact, plan("right")), VectorAdd())
    except DeviceLost as error:
        report(kernel, result, broken=state, after=str(error))


def main() -> None:
    scenario, artifact, cache = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    runner = CudaRunner(cache_dir=cache)
    tell({"name": "facts", "arch": runner.facts.arch, "uuid": runner.facts.uuid})
    scenarios = {"healthy": healthy, "faults": faults, "tight": tight}
    if scenario in scenarios:
        scenarios[scenario](runner, artifact)
    else:
        broken(runner, artifact, scenario)
    runner.close()


main()
