"""Runs the real runner on the pretend driver; prints one JSON line a scenario. Started by test_runner.py."""

import ctypes
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernelwright.core.errors import DeviceLost, KernelwrightError, ProblemError
from kernelwright.core.launch import KernelArgument, LaunchSpec, ResolvedPlan, ScratchSpec
from kernelwright.devices.base import (
    Buffer,
    CaseInputs,
    CaseRequest,
    Contestant,
    DuelRequest,
    RunRequest,
    RunResult,
    TimingProtocol,
    Tolerance,
)
from kernelwright.devices.cuda import CudaRunner, bench, module
from kernelwright.devices.cuda.buffers import Guarded
from kernelwright.devices.cuda.cubin import CubinSymbols
from kernelwright.devices.cuda.operations import Operation, enqueue
from kernelwright.devices.cuda.session import CaseSession
from kernelwright.devices.cuda.watched import Slot

N = 1000
NAMES = ("n=1000", "n=1000 again")


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
    return RunRequest(artifact=str(artifact), cases=cases(*launches, floor_ms=floor_ms), **more)


def cases(*launches: LaunchSpec, names: tuple[str, ...] = NAMES, **more: Any) -> tuple[CaseRequest, ...]:
    noise = more.pop("atomic_noise", False)
    resolved = ResolvedPlan(launches, (ScratchSpec("partial", "float32", 33),), noise)
    return tuple(CaseRequest(name, resolved, **more) for name in names)


def tell(record: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")


def report(name: str, result: RunResult, **more: Any) -> None:
    timings = [[t.case, t.method, len(t.samples_ms), t.max_error] for t in result.timings]
    record = {"name": name, "status": result.status, "reason": result.reason, "timings": timings}
    tell(record | {"check": result.check, "findings": result.findings, "errors": result.errors} | more)


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
    for kernel in (
        "tail",
        "wrong",
        "outside",
        "before",
        "mutates",
        "refused",
        "once",
        "absent",
        "racy",
        "peeks",
        "shares",
        "sabotages",
    ):
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


def equal_runs(runner: CudaRunner, artifact: Path) -> None:
    """Outputs within the tolerance whose bits depend on what they must not depend on."""
    source = VectorAdd()
    leftover = plan("leftover", arguments=(*plan("right").arguments, KernelArgument("partial", "float32")))
    for name, launch in {"racy": plan("racy"), "peeks": plan("peeks"), "leftover": leftover}.items():
        for only in (False, True):
            result = runner.run(request(artifact, launch, check_only=only), source)
            report(f"{name} {'trial' if only else 'run'}", result)
    for noise in (False, True):
        one = RunRequest(str(artifact), cases(plan("racy"), atomic_noise=noise))
        report(f"noise {noise}", runner.run(one, source))
    few = TimingProtocol(runs=8, dropped=0, input_sets=4)
    report("two uses of a slot", runner.run(request(artifact, leftover, timing=few), source))


def protocol(runner: CudaRunner, artifact: Path) -> None:
    source = VectorAdd()
    report("ten", runner.run(RunRequest(str(artifact), cases(plan("ten"), names=NAMES[:1])), source))
    loser = RunRequest(str(artifact), cases(plan("right"), loser_above_ms=0.0))
    report("loser", runner.run(loser, source))
    short = RunRequest(str(artifact), cases(plan("right"), loser_above_ms=0.0, floor_ms=0.001))
    report("short loser", runner.run(short, source))
    for kernel in ("shared", "trusts"):
        report(kernel, runner.run(request(artifact, plan(kernel)), source))
    for kernel in ("tail", "wrong"):
        trial = RunRequest(str(artifact), cases(plan(kernel), check="stress inputs"), check_only=True)
        report(f"trial {kernel}", runner.run(trial, source))
    for kernel, floor_ms in (("right", 0.001), ("shares", 0.001), ("shares", 0.0)):
        made = len(source.made)
        trial = RunRequest(
            str(artifact),
            cases(plan(kernel), names=(f"{kernel} {floor_ms}",), floor_ms=floor_ms, check="stress inputs"),
            check_only=True,
        )
        report(f"trial {kernel} {floor_ms}", runner.run(trial, source), made=len(source.made) - made)


def queued(runner: CudaRunner, artifact: Path) -> None:
    """What a trial of a plan of two launches puts into the stream, by name."""
    seen, run = list[str](), runner.gpu.run

    def noted(operations: Sequence[Operation], *arguments: Any, **more: Any) -> bool:
        seen.extend(operation.what for operation in operations)
        return run(operations, *arguments, **more)

    runner.gpu.run = noted  # type: ignore[method-assign, assignment]
    two = cases(plan("right"), plan("slow"), names=NAMES[:1])
    report("trial", runner.run(RunRequest(str(artifact), two, check_only=True), VectorAdd()), queued=seen)


def turns(runner: CudaRunner, artifact: Path) -> None:
    """How often another context had a turn."""
    source, fake = VectorAdd(), ctypes.CDLL("libcuda.so.1")
    for name, timing in {"fresh": TimingProtocol(), "as ever": TimingProtocol(fresh=False)}.items():
        before = fake.fake_turns()
        result = runner.run(request(artifact, plan("right"), timing=timing), source)
        report(name, result, turns=fake.fake_turns() - before)


def stacks(runner: CudaRunner, artifact: Path) -> None:
    """How often local memory is poisoned: for a kernel with a stack, before every run."""
    source, fake = VectorAdd(), ctypes.CDLL("libcuda.so.1")
    for kernel in ("right", "slow"):
        before = fake.fake_stacks()
        one = RunRequest(str(artifact), cases(plan(kernel), names=NAMES[:1]))
        report(kernel, runner.run(one, source), stacks=fake.fake_stacks() - before)


def constants(runner: CudaRunner, artifact: Path) -> None:
    """Modules with two constants, of which the driver knows one."""
    named = CubinSymbols((), (), (), ("kept", "static"))
    module.read_cubin, module.stack_bytes = (lambda _: named), (lambda _: 0)  # type: ignore[assignment]
    source = VectorAdd()
    for kernel in ("right", "remembers"):
        report(kernel, runner.run(request(artifact, plan(kernel)), source))


def places(runner: CudaRunner, artifact: Path) -> None:
    """How many launches of nothing stand before the timed runs of one case."""
    source, fake = VectorAdd(), ctypes.CDLL("libcuda.so.1")
    for name, timing in {"even": TimingProtocol(), "as ever": TimingProtocol(queue_group=1)}.items():
        before = fake.fake_nothings()
        one = RunRequest(str(artifact), cases(plan("right"), names=NAMES[:1]), timing)
        report(name, runner.run(one, source), nothings=fake.fake_nothings() - before)


def addresses(runner: CudaRunner, artifact: Path) -> None:
    """Where outputs and inputs of timed runs lie, by side of a duel, with and without memory to move inputs to."""
    source, seen, inputs = VectorAdd(), list[tuple[str, int, int, int]](), list[tuple[str, int]]()

    def noted(session: CaseSession, index: int, written: dict[str, Guarded]) -> Slot:
        if session._sets > 1:  # the checked first run has one
            side = session.entrant.side
            seen.append((side, index, written["C"].pointer, written["partial"].pointer))
            inputs.extend((side, held.pointer) for held in session.data.sets[index % 3].arrays.values())
        return make(session, index, written)

    make, CaseSession._slot = CaseSession._slot, noted  # type: ignore[method-assign]
    sides = [Contestant(str(artifact), cases(plan("right"), names=NAMES[:1])) for _ in range(2)]
    runner.duel(DuelRequest(*sides, 20), source)
    tell({"name": "seen", "slots": list(seen)})
    pool = runner.gpu.pool
    for name, room in {"one": True, "another": True, "no room": False, "no room still": False}.items():
        inputs.clear()
        pool.spare = pool.spare if room else lambda _: None  # type: ignore[method-assign]
        result = runner.duel(DuelRequest(*sides, 20), source)
        tell({"name": name, "status": result.status, "inputs": sorted(set(inputs))})


def hidden(runner: CudaRunner, artifact: Path) -> None:
    """What lies in device memory after a run: no right output in clear, neither kept nor left over."""
    source = VectorAdd()
    report("right", runner.run(request(artifact, plan("right")), source))
    driver = runner.gpu.driver
    for index, entry in enumerate(runner.store.get(source, "n=1000", 1).sets):
        arrays = source.inputs("n=1000", index).arrays
        right = source.expected("n=1000", arrays, np)["C"]
        raw = driver.download(entry.expected["C"].pointer, 8 * N)
        shown = [entry.expected["C"].show(i, raw[8 * i : 8 * i + 8]) for i in (0, 1, N - 1)]
        clear = np.frombuffer(raw, "<f8") == right
        tell(
            {
                "name": f"set {index}",
                "shown": shown == [right[i] for i in (0, 1, N - 1)],
                "clear": int(clear.sum()),
            }
        )
    buffer = runner.gpu.pool.acquire(4 * N)
    left = np.frombuffer(driver.download(buffer.pointer, 4 * N), "<f4")
    tell({"name": "left over", "poison": bool(np.isnan(left).all())})


def duels(runner: CudaRunner, artifact: Path) -> None:
    def fight(name: str, challenger: str, incumbent: str, floor_ms: float = 0.0, **more: Any) -> None:
        sides = [
            Contestant(str(artifact), cases(plan(k), floor_ms=floor_ms)) for k in (challenger, incumbent)
        ]
        result = runner.duel(DuelRequest(*sides, **({"rounds": 6} | more)), source)
        found = [
            [
                c.case,
                c.method,
                len(c.challenger_ms),
                len(c.incumbent_ms),
                median(c.challenger_ms),
                median(c.incumbent_ms),
            ]
            for c in result.cases
        ]
        parts = (result.status, result.reason, result.check, result.at_fault)
        tell({"name": name, "parts": parts, "cases": found, "broken": runner.broken})

    source = VectorAdd()
    fight("copy", "right", "right")
    fight("graph", "right", "right", floor_ms=0.001)
    fight("slower", "slow", "right")
    fight("faster", "right", "slow")
    fight("many", "right", "right", rounds=150)
    for kernel in ("wrong", "racy", "outside", "refused", "mutates"):
        fight(f"challenger {kernel}", kernel, "right")
        fight(f"incumbent {kernel}", "right", kernel)
    fight("late", "right", "ten", rounds=20)
    for kernel in ("strays", "meddles", "sabotages"):
        for turn in range(4):  # who begins is drawn
            fight(f"challenger {kernel} {turn}", kernel, "right", rounds=20)
            fight(f"incumbent {kernel} {turn}", "right", kernel, rounds=20)
    rare, bench.LOOKED_AT, bench.LOOK_ONE_IN = (bench.LOOKED_AT, bench.LOOK_ONE_IN), 0, 1 << 60
    for turn in range(4):
        fight(f"unseen {turn}", "sabotages", "right", rounds=20)
    bench.LOOKED_AT, bench.LOOK_ONE_IN = rare
    fight("challenger spies", "spies", "right", rounds=20)
    fight("incumbent spies", "right", "spies", rounds=20)
    fight("after all", "right", "right")
    fight("incumbent endless", "right", "endless", timeout_s=0.2)


class Copies(VectorAdd):
    """B is nothing: copying A is right. The library copies through the driver, in the stream as PyTorch does."""

    def __init__(self, runner: CudaRunner, fault: str = "") -> None:
        super().__init__()
        self.gpu, self.fault = runner.gpu, fault

    def inputs(self, case: str, index: int) -> CaseInputs:
        arrays = dict(super().inputs(case, index).arrays)
        return CaseInputs({**arrays, "B": np.zeros_like(arrays["B"])})

    def library(self, case: str, tensors: Mapping[str, Any], torch: Any) -> Callable[[], object]:
        def call() -> None:
            if self.fault == "raises":
                raise RuntimeError("no such\nconvolution")
            source = "B" if self.fault == "wrong" else "A"
            at = {name: tensor.__cuda_array_interface__["data"][0] for name, tensor in tensors.items()}
            enqueue([self.gpu.copy(at["C"], at[source], 4 * N)])

        assert tensors["A"].__cuda_array_interface__["shape"] == (N,)
        if self.fault == "absent":
            raise ProblemError("library.py: has no function 'library'")
        return call


def library(runner: CudaRunner, artifact: Path) -> None:
    """A library that is installed after a while, and in use."""

    def fight(name: str, fault: str = "", floor_ms: float = 0.0) -> None:
        ours = Contestant(str(artifact), cases(plan("right"), floor_ms=floor_ms))
        theirs = Contestant("", cases(floor_ms=floor_ms, atomic_noise=True))
        result = runner.duel(DuelRequest(ours, theirs, 6), Copies(runner, fault))
        found = [[c.case, c.method, len(c.challenger_ms), len(c.incumbent_ms)] for c in result.cases]
        parts = (result.status, result.reason, result.check, result.at_fault, result.library)
        tell({"name": name, "parts": parts, "cases": found, "broken": runner.broken})

    sys.modules["torch"] = None  # type: ignore[assignment] - as if it were not installed
    fight("missing")
    switch = SimpleNamespace(allow_tf32=True)
    sys.modules["torch"] = SimpleNamespace(  # type: ignore[assignment]
        __version__="9.9",
        zeros=lambda *_, **__: SimpleNamespace(cpu=lambda: None),
        as_tensor=lambda memory, device: memory,
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=switch), cudnn=switch),
        cuda=SimpleNamespace(
            stream=nullcontext, ExternalStream=lambda *_, **__: None, empty_cache=lambda: None
        ),
    )
    fight("events")
    fight("graph", floor_ms=0.001)
    tell({"name": "tf32", "allowed": switch.allow_tf32})
    for fault in ("wrong", "raises", "absent"):
        fight(fault, fault)
        fight(f"graph {fault}", fault, floor_ms=0.001)
    fight("after all")


class Nvml:
    """Stands in for NVIDIA's package: throttled for a while."""

    NVMLError = RuntimeError
    NVML_CLOCK_SM = NVML_TEMPERATURE_GPU = 0

    def __init__(self) -> None:
        self.reasons: list[int] = []

    def nvmlInit(self) -> None:  # noqa: N802
        """Nothing to do."""

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return uuid

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:  # noqa: N802
        return self.reasons.pop(0) if self.reasons else 0

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        return 1980

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        raise self.NVMLError("not supported")

    def nvmlDeviceGetTemperature(self, handle: str, kind: int) -> int:  # noqa: N802
        return 41


def throttled(runner: CudaRunner, artifact: Path) -> None:
    nvml, source = sys.modules["pynvml"], VectorAdd()
    for name, reasons in {"cool": [], "once": [0x40, 0x40], "always": [0x08] * 8, "capped": [4] * 8}.items():
        nvml.reasons = list(reasons)
        result = runner.run(request(artifact, plan("right")), source)
        conditions = [list(astuple(t.conditions)) for t in result.timings if t.conditions]
        report(name, result, conditions=conditions, discarded=[t.discarded for t in result.timings])


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
    if scenario == "throttled":
        sys.modules["pynvml"] = Nvml()
    runner = CudaRunner(cache_dir=cache)
    tell({"name": "facts", "arch": runner.facts.arch, "uuid": runner.facts.uuid})
    scenarios = (
        healthy,
        faults,
        tight,
        equal_runs,
        protocol,
        queued,
        hidden,
        duels,
        library,
        throttled,
        turns,
        places,
        addresses,
        stacks,
        constants,
    )
    found = next((s for s in scenarios if s.__name__ == scenario), None)
    if found is not None:
        found(runner, artifact)
    else:
        broken(runner, artifact, scenario)
    runner.close()


main()
