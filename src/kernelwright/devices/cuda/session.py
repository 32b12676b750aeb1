"""One case of one candidate: buffers, the checked first run, the checked and timed runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from kernelwright.core.outcome import CaseTiming, Status
from kernelwright.devices.base import CaseRequest, CaseSource, TimingProtocol
from kernelwright.devices.cuda.buffers import Guarded, OutOfDeviceMemory
from kernelwright.devices.cuda.casedata import ITEM_BYTES, CaseStore, InputSet, buffer_bytes
from kernelwright.devices.cuda.driver import CudaError
from kernelwright.devices.cuda.gpu import ROWS, Gpu, Rows
from kernelwright.devices.cuda.module import Module
from kernelwright.devices.cuda.operations import CandidateFailed, LaunchRefused, Operation, enqueue
from kernelwright.devices.cuda.trusted import POISON
from kernelwright.devices.cuda.verdict import Mismatch, Sample, decode, is_poison, outside_write, wrong_values

QUEUE_LIMIT: Final = 400
"""Operations put into the stream behind one gate: the driver's launch queue holds about a thousand."""

_SETTLE_S: Final = 30.0
_MEANINGS: Final = {
    700: "illegal memory address",
    702: "the device's own time-out",
    710: "device-side assert",
    714: "hardware stack error",
    715: "illegal instruction",
    716: "misaligned address",
    717: "address of the wrong memory space",
    718: "invalid program counter",
    719: "launch failure",
}


@dataclass(frozen=True)
class Slot:
    """Buffers of one run and the plan's launches on them. ``written``: outputs, ``inout`` copies, scratch."""

    set_index: int
    inputs: InputSet
    written: dict[str, Guarded]
    launches: tuple[Operation, ...]


class CaseSession:
    """Context manager: takes buffers from the pool, gives them back. ``slots`` run on rotating input sets.

    Raises CandidateFailed for everything that is the candidate's fault.
    """

    def __init__(
        self,
        gpu: Gpu,
        store: CaseStore,
        module: Module,
        source: CaseSource,
        request: CaseRequest,
        *,
        slots: int,
    ) -> None:
        self.gpu = gpu
        self.store = store
        self.module = module
        self.request = request
        self.place = f"case {request.case}"
        self.data = store.get(source, request.case, slots)
        self.slots: list[Slot] = []
        self._held: list[Guarded] = []
        self._wanted = slots
        self._lost = False

    def __enter__(self) -> Self:
        try:
            self.slots = [self._slot(index) for index in range(self._wanted)]
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._lost:
            self._release()

    def check(self, timeout_s: float) -> float:
        """One run with every output checked. Returns its time in ms, not good enough to rank by."""
        gpu, slot = self.gpu, self.slots[0]
        outputs = len(self.data.outputs)
        guarded, hashed = self._watched()
        rows = outputs + len(guarded) + len(hashed)
        gpu.reset_progress()
        operations = [
            gpu.zero_rows(rows),
            *gpu.trusted.guard_fill(self._held),
            *self._prepare([slot], 0),
            gpu.record(0),
            *self._with_marks(slot.launches),
            gpu.record(1),
            *self._compare(slot, 0),
            *self._integrity(outputs),
            gpu.fetch_rows(rows),
        ]
        self._execute(operations, timeout_s, gated=False)
        found = gpu.read_rows(rows)
        self._judge_integrity(found[outputs:])
        self._judge(found[:outputs], slot, self.place, holds=True)
        return gpu.driver.elapsed_ms(gpu.event(0), gpu.event(1))

    def time(self, timing: TimingProtocol, timeout_s: float, *, graph: bool) -> CaseTiming:
        """``timing.runs`` runs, each checked; the dropped ones are the first."""
        self.gpu.reset_persisting_l2()
        enqueue(self.gpu.trusted.guard_fill(self._held))
        if graph:
            samples, worst = self._time_graph(timing, timeout_s)
        else:
            samples, worst = self._time_events(timing, timeout_s)
        kept = tuple(samples[timing.dropped :])
        return CaseTiming(self.request.case, kept, "graph" if graph else "events", worst)

    def _time_events(self, timing: TimingProtocol, timeout_s: float) -> tuple[list[float], float]:
        def step(run: int) -> tuple[list[Slot], Sequence[Operation]]:
            slot = self.slots[run % len(self.slots)]
            return [slot], slot.launches

        return self._steps(step, timing, timeout_s, divisor=1)

    def _time_graph(self, timing: TimingProtocol, timeout_s: float) -> tuple[list[float], float]:
        api, stream = self.gpu.driver.api, self.gpu.driver.stream
        executable = self._capture()
        try:
            replay = Operation(api.cuGraphLaunch, (executable, stream), "cuGraphLaunch")
            return self._steps(lambda _: (self.slots, [replay]), timing, timeout_s, divisor=len(self.slots))
        finally:
            if not self._lost:
                api.cuGraphExecDestroy(executable)

    def _capture(self) -> Any:
        """A graph of the plan on every slot, one after the other."""
        driver = self.gpu.driver
        api = driver.api
        mode = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        driver.ok(api.cuStreamBeginCapture(driver.stream, mode), "cuStreamBeginCapture")
        try:
            enqueue(operation for slot in self.slots for operation in slot.launches)
        except LaunchRefused as error:
            api.cuStreamEndCapture(driver.stream)
            raise self.module.refusal(error) from None
        graph = driver.ok(api.cuStreamEndCapture(driver.stream), "cuStreamEndCapture")
        try:
            executable = driver.ok(api.cuGraphInstantiate(graph, 0), "cuGraphInstantiate")
        finally:
            api.cuGraphDestroy(graph)
        driver.ok(api.cuGraphUpload(executable, driver.stream), "cuGraphUpload")
        return executable

    def _steps(
        self,
        step: Callable[[int], tuple[list[Slot], Sequence[Operation]]],
        timing: TimingProtocol,
        timeout_s: float,
        *,
        divisor: int,
    ) -> tuple[list[float], float]:
        """Run all steps in gated batches; samples in ms and the worst error in multiples of the tolerance."""
        outputs, slots = len(self.data.outputs), step(0)[0]
        rows_a_step = outputs * len(slots)
        guarded, hashed = self._watched()
        watched = len(guarded) + len(hashed)
        size = max(1, QUEUE_LIMIT // (len(self._one_step(0, *step(0), 0, timing)) or 1))
        size = min(size, max(1, (ROWS - watched) // max(rows_a_step, 1)))
        samples: list[float] = []
        worst = 0.0
        for start in range(0, timing.runs, size):
            runs = range(start, min(start + size, timing.runs))
            last = runs.stop == timing.runs
            rows = rows_a_step * len(runs) + (watched if last else 0)
            operations = [self.gpu.zero_rows(rows)]
            for position, run in enumerate(runs):
                operations += self._one_step(run, *step(run), position * rows_a_step, timing)
            if last:
                operations += self._integrity(rows_a_step * len(runs))
            self._execute([*operations, self.gpu.fetch_rows(rows)], timeout_s, gated=True)
            found = self.gpu.read_rows(rows)
            if last:
                self._judge_integrity(found[rows_a_step * len(runs) :])
            for position, run in enumerate(runs):
                part = found[position * rows_a_step : (position + 1) * rows_a_step]
                self._judge_run(part, step(run)[0], run, timing.runs)
                worst = max(worst, float(part["worst"].max(initial=0.0)))
                ms = self.gpu.driver.elapsed_ms(self.gpu.event(2 * run), self.gpu.event(2 * run + 1))
                samples.append(ms / divisor)
        return samples, worst

    def _one_step(
        self, run: int, slots: Sequence[Slot], timed: Sequence[Operation], row: int, timing: TimingProtocol
    ) -> list[Operation]:
        operations = self._prepare(slots, run)
        if timing.clear_l2:
            operations.append(self.gpu.clear_l2(run + 1))
        operations += [self.gpu.record(2 * run), *timed, self.gpu.record(2 * run + 1)]
        for position, slot in enumerate(slots):
            operations += self._compare(slot, row + position * len(self.data.outputs))
        return operations

    def _slot(self, index: int) -> Slot:
        entry = self.data.sets[index]
        pointers = {name: array.pointer for name, array in entry.arrays.items()}
        written: dict[str, Guarded] = {}
        for buffer in self.data.outputs:
            written[buffer.name] = self._acquire(buffer_bytes(buffer))
        for scratch in self.request.plan.scratch:
            nbytes = scratch.elements * ITEM_BYTES[scratch.dtype]
            try:
                written[scratch.name] = self._acquire(nbytes)
            except OutOfDeviceMemory:
                reason = f"{self.place}: no device memory for {nbytes} bytes of scratch {scratch.name!r}"
                raise CandidateFailed(Status.LAUNCH_FAILED, reason) from None
        pointers.update({name: held.pointer for name, held in written.items()})
        return Slot(index, entry, written, self.module.launches(self.request.plan, pointers))

    def _acquire(self, nbytes: int) -> Guarded:
        held = self.gpu.pool.acquire(nbytes)
        self._held.append(held)
        return held

    def _release(self) -> None:
        for held in self._held:
            self.gpu.pool.release(held)
        self._held.clear()

    def _prepare(self, slots: Sequence[Slot], run: int) -> list[Operation]:
        """Poison outputs and scratch, restore ``inout`` arguments."""
        copies = {b.name for b in self.data.buffers if b.role == "inout"}
        poisoned = [held for slot in slots for name, held in slot.written.items() if name not in copies]
        operations = self.gpu.trusted.fill(poisoned, POISON[run % len(POISON)])
        for slot in slots:
            for name in copies:
                source = slot.inputs.arrays[name]
                if source.nbytes:
                    operations.append(
                        self.gpu.copy(slot.written[name].pointer, source.pointer, source.nbytes)
                    )
        return operations

    def _with_marks(self, launches: Sequence[Operation]) -> list[Operation]:
        """Launches with a note of progress after each, to name the one that crashes."""
        if len(launches) == 1:
            return list(launches)
        marks = [self.gpu.mark(index + 1) for index in range(len(launches))]
        return [operation for pair in zip(launches, marks, strict=True) for operation in pair]

    def _compare(self, slot: Slot, row: int) -> list[Operation]:
        operations = []
        for position, buffer in enumerate(self.data.outputs):
            tolerance = slot.inputs.tolerance[buffer.name]
            size = ITEM_BYTES[buffer.dtype]
            held = slot.written[buffer.name]
            operations.append(
                self.gpu.trusted.compare(
                    buffer.dtype,
                    held.pointer,
                    slot.inputs.expected[buffer.name],
                    count=held.nbytes // size,
                    tolerance=(tolerance.atol, tolerance.rtol),
                    row=self.gpu.row(row + position),
                )
            )
        return operations

    def _watched(self) -> tuple[list[tuple[str, Guarded]], list[tuple[str, Guarded, int]]]:
        """Buffers whose guard bands are checked, and inputs whose contents are."""
        names = {b.name for b in self.data.outputs}
        guarded = [
            (f"{'output' if name in names else 'scratch'} {name!r}", held)
            for slot in self.slots
            for name, held in slot.written.items()
        ]
        hashed = []
        for slot in self.slots:
            for name, held in slot.inputs.arrays.items():
                guarded.append((f"input {name!r}", held))
                hashed.append((name, held, slot.inputs.fingerprints[name]))
        return guarded, hashed

    def _integrity(self, row: int) -> list[Operation]:
        guarded, hashed = self._watched()
        trusted = self.gpu.trusted
        checks = trusted.guard_check([held for _, held in guarded], self.gpu.row(row))
        return checks + trusted.hash([held for _, held, _ in hashed], self.gpu.row(row + len(guarded)))

    def _judge_integrity(self, rows: Rows) -> None:
        guarded, hashed = self._watched()
        prints = np.array([fingerprint for _, _, fingerprint in hashed], dtype=np.uint64)
        if not rows["bad"][: len(guarded)].any() and np.array_equal(rows["bad"][len(guarded) :], prints):
            return
        for (label, held), row in zip(guarded, rows[: len(guarded)], strict=True):
            found = Mismatch.of(row)
            if found.bad:
                self.store.clear()
                raise CandidateFailed(
                    Status.WRONG, outside_write(self.place, label, held, found.bad, found.first)
                )
        for (name, _, fingerprint), row in zip(hashed, rows[len(guarded) :], strict=True):
            if int(row["bad"]) != fingerprint:
                self.store.clear()
                raise CandidateFailed(Status.WRONG, f"{self.place}: changed its input {name!r}")

    def _judge_run(self, rows: Rows, slots: Sequence[Slot], run: int, runs: int) -> None:
        if not rows["bad"].any():
            return
        outputs = len(self.data.outputs)
        for position, slot in enumerate(slots):
            # Later runs overwrite a slot; only the last one's values can still be shown.
            holds = run + (1 if len(slots) > 1 else len(self.slots)) >= runs
            part = rows[position * outputs : (position + 1) * outputs]
            self._judge(part, slot, f"{self.place} run {run + 1}", holds=holds)

    def _judge(self, rows: Rows, slot: Slot, place: str, *, holds: bool) -> None:
        for buffer, row in zip(self.data.outputs, rows, strict=True):
            found = Mismatch.of(row)
            if not found.bad:
                continue
            sample = self._sample(slot, buffer.name, buffer.dtype, found.first) if holds else None
            raise CandidateFailed(Status.WRONG, wrong_values(place, buffer.name, buffer.shape, found, sample))

    def _sample(self, slot: Slot, name: str, dtype: str, index: int) -> Sample:
        driver, size = self.gpu.driver, ITEM_BYTES[dtype]
        raw = driver.download(slot.written[name].pointer + index * size, size)
        right = driver.download(slot.inputs.expected[name] + index * 8, 8)
        return Sample(decode(raw, dtype), decode(right, "float64"), is_poison(raw))

    def _execute(self, operations: Sequence[Operation], timeout_s: float, *, gated: bool) -> None:
        try:
            done = self.gpu.run(operations, timeout_s, gated=gated)
        except LaunchRefused as error:
            if error.sticky:
                raise self._crashed(error) from None
            self._settle()
            raise self.module.refusal(error) from None
        except CudaError as error:
            if error.sticky:
                raise self._crashed(error) from None
            raise
        if not done:
            self._lost = True
            reason = f"{self.place}: {self._kernels()} did not end within {timeout_s:g} s"
            raise CandidateFailed(Status.TIMED_OUT, reason, broken=True)

    def _settle(self) -> None:
        try:
            self._lost = not self.gpu.settle(_SETTLE_S)
        except CudaError as error:
            raise self._crashed(error) from None

    def _crashed(self, error: CudaError) -> CandidateFailed:
        self._lost = True
        meaning = _MEANINGS.get(error.code, "the device context is lost")
        reason = f"{self.place}: {self._kernels()} crashed: {error.name} ({meaning})"
        return CandidateFailed(Status.CRASHED, reason, broken=True)

    def _kernels(self) -> str:
        """The kernel that was running as far as the marks tell; they are set in the checked first run."""
        launches = self.request.plan.launches
        reached = self.gpu.progress
        if len(launches) > 1 and reached < len(launches):
            return f"kernel {launches[reached].kernel!r} (launch {reached + 1} of {len(launches)})"
        names = ", ".join(repr(name) for name in dict.fromkeys(launch.kernel for launch in launches))
        return f"kernel {names}"
