"""One case of one candidate: its buffers, the checked first run, the steps to be timed."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from kernelwright.core.case import ITEM_BYTES
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import CaseRequest, CaseSource
from kernelwright.devices.cuda.buffers import SMALL, Guarded, OutOfDeviceMemory
from kernelwright.devices.cuda.casedata import CaseStore, buffer_bytes
from kernelwright.devices.cuda.driver import CudaError
from kernelwright.devices.cuda.gpu import Gpu, Rows
from kernelwright.devices.cuda.library import Library
from kernelwright.devices.cuda.module import Module
from kernelwright.devices.cuda.operations import CandidateFailed, LaunchRefused, Operation, enqueue
from kernelwright.devices.cuda.trusted import POISON
from kernelwright.devices.cuda.verdict import Mismatch, Sample, decode, is_poison, wrong_values
from kernelwright.devices.cuda.watched import Repeats, Slot, Watched

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
class Entrant:
    """A loaded candidate, or the library in its place. ``side`` names it in a duel."""

    module: Module | Library
    repeats: Repeats
    side: str = ""


class Step(NamedTuple):
    """What is timed as one: a run on one slot, or a graph's replay on all slots.

    ``holds``: no later step overwrites the outputs, so that single values can still be shown. ``rivals``: slots of
    the other side of a duel. ``lead``: launches of nothing before it, see :meth:`Bench.steps`. ``look``: inputs are
    looked at after it.
    """

    session: "CaseSession"
    slots: Sequence[Slot]
    timed: Sequence[Operation]
    poison: int
    name: str
    holds: bool
    rivals: Sequence[Slot] = ()
    lead: int = 0
    look: bool = False


class Checked(NamedTuple):
    """A checked first run: its time, not good enough to rank by, and its worst error in multiples of the tolerance."""

    first_ms: float
    worst: float


class CaseSession:
    """Context manager: takes buffers from the pool, gives them back. Its slots rotate over ``sets`` input sets.

    Each set has as many slots as ``places``, at other addresses, where a run writes small buffers. ``beside``: slots of
    the other side of a duel, whose buffers are used again where they are alike: where they lie must not decide it.
    Raises CandidateFailed for everything that is the candidate's fault.
    """

    def __init__(
        self,
        gpu: Gpu,
        store: CaseStore,
        entrant: Entrant,
        source: CaseSource,
        request: CaseRequest,
        *,
        sets: int,
        places: int = 1,
        beside: Sequence[Slot] = (),
    ) -> None:
        self.gpu = gpu
        self.store = store
        self.entrant = entrant
        self.request = request
        self.place = f"case {request.case}"
        self.data = store.get(source, request.case, sets)
        self.slots: list[Slot] = []
        self._copies = [b.name for b in self.data.buffers if b.role == "inout"]
        self._held: list[Guarded] = []
        self._sets = sets
        self._places = places
        self._beside = beside
        self._prepared: dict[tuple[int, ...], list[Operation]] = {}

    def __enter__(self) -> Self:
        try:
            self._make_slots()
        except BaseException:
            self._release()
            raise
        outputs = [b.name for b in self.data.outputs]
        self.watched = Watched(self.slots, outputs, self.entrant.module.constants)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.gpu.lost:
            self._release()

    def check(self, timeout_s: float, passes: int, graph: Operation | None = None) -> Checked:
        """All slots' runs with every output checked, ``passes`` times with other poison and other canaries.

        Several passes are those of a trial, which no kernel may tell from a timed run: as there, the L2 cache is cleared
        before it, what is timed as a ``graph`` runs as one, and nothing stands between its launches.
        """
        gpu, slots, outputs = self.gpu, self.slots, len(self.data.outputs) * len(self.slots)
        rows_a_pass, trial = outputs + len(self.watched), passes > 1
        runs = [op for slot in slots for op in (slot.launches if trial else self._with_marks(slot.launches))]
        gpu.reset_progress()
        operations = [gpu.zero_rows(passes * rows_a_pass)]
        for index in range(passes):
            canary, row = gpu.trusted.canaries[index % 2], index * rows_a_pass
            operations += [
                *self.watched.fill(gpu, canary),
                *self.prepare(slots, index),
                gpu.clear_l2(index + 1),
            ]
            operations += [gpu.record(2 * index), *([graph] if graph else runs), gpu.record(2 * index + 1)]
            for position, slot in enumerate(slots):
                operations += self.compare(slot, row + position * len(self.data.outputs))
            operations += self.watched.operations(gpu, canary, row + outputs)
        operations.append(gpu.fetch_rows(passes * rows_a_pass))
        self._execute(operations, timeout_s * passes, marked=not trial)
        found = gpu.read_rows(passes * rows_a_pass)
        # The last pass first: its wrong values can still be shown.
        for index in reversed(range(passes)):
            rows = found[index * rows_a_pass : (index + 1) * rows_a_pass]
            self.judge_watched(rows[outputs:])
            name = f"check {index + 1}" if passes > 1 else ""
            self.judge(rows[:outputs], Step(self, slots, (), index, name, index + 1 == passes))
        worst = float(found["worst"].max(initial=0.0))
        return Checked(gpu.driver.elapsed_ms(gpu.event(0), gpu.event(1)), worst)

    def steps(self, runs: int, graph: Operation | None) -> list[Step]:
        """Timed runs on rotating slots, or replays of ``graph`` on all of them.

        Poison turns with every use of an input set, so that runs on the same one see other poison. Which comes first is
        drawn: a candidate must not know by it which run this is.
        """
        first = secrets.randbelow(len(POISON))
        slots, turn = ([self.slots], 1) if graph else ([[slot] for slot in self.slots], self._sets)
        return [
            Step(
                self,
                slots[run % len(slots)],
                (graph,) if graph else slots[run % len(slots)][0].launches,
                first + run // turn,
                f"run {run + 1}",
                run + turn >= runs,
            )
            for run in range(runs)
        ]

    @contextmanager
    def graph(self) -> Iterator[Operation]:
        """A graph of the plan on every slot, one after the other, as one operation."""
        api, driver = self.gpu.driver.api, self.gpu.driver
        executable = self._capture()
        try:
            yield Operation(api.cuGraphLaunch, (executable, driver.stream), "cuGraphLaunch")
        finally:
            if not self.gpu.lost:
                api.cuGraphExecDestroy(executable)

    def prepare(self, slots: Sequence[Slot], poison: int, rivals: Sequence[Slot] = ()) -> list[Operation]:
        """Poison outputs, scratch, shared and local memory, restore ``inout`` arguments.

        No run may leave the next one anything. ``rivals`` are the other side's slots in a duel: outputs on the same
        inputs must not lie about, here or there.
        """
        key = (poison % len(POISON), *(slot.index for slot in slots))
        known = self._prepared.get(key)
        if known is None:
            known = self._prepared[key] = self._prepare(slots, POISON[key[0]], rivals)
        return known

    def siblings(self, slots: Sequence[Slot]) -> list[Slot]:
        """All slots on the input sets of these."""
        sets = {slot.index % self._sets for slot in slots}
        return [slot for slot in self.slots if slot.index % self._sets in sets]

    def compare(self, slot: Slot, row: int) -> list[Operation]:
        """Compare and hash the slot's outputs; one result row each from ``row`` on."""
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

    def judge(self, rows: Rows, step: Step) -> None:
        """Judge the result rows of one step: values first, then equality of bits with earlier runs."""
        outputs, wrong = len(self.data.outputs), rows["bad"].any()
        hashes = [] if self.request.plan.atomic_noise else rows["hash"].tolist()
        place = f"{self.place} {step.name}".rstrip()
        for position, slot in enumerate(step.slots):
            part = slice(position * outputs, (position + 1) * outputs)
            if wrong:
                self._judge_values(rows[part], slot, place, holds=step.holds)
            if hashes:
                named = place if step.name else f"{place} check"
                self.entrant.repeats.judge(slot, hashes[part], named, self.entrant.side)

    def judge_watched(self, rows: Rows) -> None:
        """Judge guard bands and inputs. After damage nothing that is kept can be trusted."""
        with self._kept():
            self.watched.judge(rows, self.place, self.entrant.side)

    def judge_inputs(self, rows: Rows, step: Step) -> None:
        """Judge the inputs after one step."""
        with self._kept():
            self.watched.judge_inputs(rows, f"{self.place} {step.name}", self.entrant.side)

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except CandidateFailed:
            self.store.clear()
            raise

    def refused(self, error: LaunchRefused) -> CandidateFailed:
        """What a refused launch of this candidate says."""
        if error.sticky:
            return self.crashed(error, reached=None)
        try:
            self.gpu.settle(_SETTLE_S)
        except CudaError as later:
            return self.crashed(later, reached=None)
        return self.entrant.module.refusal(error)

    def crashed(self, error: CudaError, reached: int | None) -> CandidateFailed:
        """What a lost context says; ``reached`` launches had ended where that is known."""
        meaning = _MEANINGS.get(error.code, "the device context is lost")
        reason = f"{self.place}: {self._kernels(reached)} crashed: {error.name} ({meaning})"
        return CandidateFailed(Status.CRASHED, reason, Check.CRASH, self.entrant.side)

    def overdue(self, timeout_s: float, reached: int | None) -> CandidateFailed:
        """What a time-out says."""
        reason = f"{self.place}: {self._kernels(reached)} did not end within {timeout_s:g} s"
        return CandidateFailed(Status.TIMED_OUT, reason, Check.RUN_LIMITS, self.entrant.side)

    def _execute(self, operations: Sequence[Operation], timeout_s: float, *, marked: bool) -> None:
        try:
            done = self.gpu.run(operations, timeout_s, gated=False)
        except LaunchRefused as error:
            raise self.refused(error) from None
        except CudaError as error:
            if error.sticky:
                raise self.crashed(error, self.gpu.progress if marked else None) from None
            raise
        if not done:
            raise self.overdue(timeout_s, self.gpu.progress if marked else None)

    def _capture(self) -> Any:
        driver = self.gpu.driver
        api = driver.api
        mode = api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        driver.ok(api.cuStreamBeginCapture(driver.stream, mode), "cuStreamBeginCapture")
        try:
            enqueue(operation for slot in self.slots for operation in slot.launches)
        except CudaError as error:
            api.cuStreamEndCapture(driver.stream)
            if not isinstance(error, LaunchRefused):
                raise
            raise self.entrant.module.refusal(error) from None
        graph = driver.ok(api.cuStreamEndCapture(driver.stream), "cuStreamEndCapture")
        try:
            executable = driver.ok(api.cuGraphInstantiate(graph, 0), "cuGraphInstantiate")
        finally:
            api.cuGraphDestroy(graph)
        driver.ok(api.cuGraphUpload(executable, driver.stream), "cuGraphUpload")
        return executable

    def _make_slots(self) -> None:
        outputs = {b.name: buffer_bytes(b) for b in self.data.outputs}
        scratch = {s.name: s.elements * ITEM_BYTES[s.dtype] for s in self.request.plan.scratch}
        small = any(nbytes <= SMALL for nbytes in (*outputs.values(), *scratch.values()))
        for index in range(self._sets * (self._places if small else 1)):
            written = {name: self._buffer(index, name, nbytes) for name, nbytes in outputs.items()}
            for name, nbytes in scratch.items():
                try:
                    written[name] = self._buffer(index, name, nbytes)
                except OutOfDeviceMemory:
                    reason = f"{self.place}: no device memory for {nbytes} bytes of scratch {name!r}"
                    raise CandidateFailed(Status.LAUNCH_FAILED, reason, Check.LAUNCH_LIMITS) from None
            self.slots.append(self._slot(index, written))

    def _slot(self, index: int, written: dict[str, Guarded]) -> Slot:
        entry = self.data.sets[index % self._sets]
        pointers = {name: held.pointer for name, held in (entry.arrays | written).items()}
        launches = self.entrant.module.prepared(self.request, self.data.buffers, pointers)
        return Slot(index, entry, written, launches)

    def _buffer(self, index: int, name: str, nbytes: int) -> Guarded:
        """The other side's where it is alike; a large one is shared by all runs on an input set."""
        theirs = self._beside[index].written.get(name) if index < len(self._beside) else None
        if theirs is not None and theirs.nbytes == nbytes:
            return theirs
        if nbytes > SMALL and index >= self._sets:
            return self.slots[index % self._sets].written[name]
        held = self.gpu.pool.acquire(nbytes)
        self._held.append(held)
        return held

    def _release(self) -> None:
        """Right outputs of this candidate must not lie about for the next one: they are overwritten."""
        enqueue(self.gpu.trusted.fill(self._held, POISON[0]))
        for held in self._held:
            self.gpu.pool.release(held)
        self._held.clear()

    def _prepare(self, slots: Sequence[Slot], pattern: int, rivals: Sequence[Slot]) -> list[Operation]:
        restored = {slot.written[name].base for slot in slots for name in self._copies}
        written = [held for slot in (*rivals, *self.siblings(slots)) for held in slot.written.values()]
        poisoned = {held.base: held for held in written if held.base not in restored}
        operations = self.gpu.trusted.fill(list(poisoned.values()), pattern)
        module, plan = self.entrant.module, self.request.plan
        operations += [self.gpu.fill_shared(pattern)] if module.uses_shared(plan) else []
        operations += self.gpu.fill_local(pattern, module.local_bytes(plan))
        for slot in slots:
            for name in self._copies:
                source, target = slot.inputs.arrays[name], slot.written[name]
                if source.nbytes:
                    operations.append(self.gpu.copy(target.pointer, source.pointer, source.nbytes))
        return operations

    def _with_marks(self, launches: Sequence[Operation]) -> list[Operation]:
        """Launches with a note of progress after each, to name the one that crashes."""
        if len(launches) == 1:
            return list(launches)
        marks = [self.gpu.mark(index + 1) for index in range(len(launches))]
        return [operation for pair in zip(launches, marks, strict=True) for operation in pair]

    def _judge_values(self, rows: Rows, slot: Slot, place: str, *, holds: bool) -> None:
        for buffer, row in zip(self.data.outputs, rows, strict=True):
            found = Mismatch.of(row)
            if not found.bad:
                continue
            sample = self._sample(slot, buffer.name, buffer.dtype, found.first) if holds else None
            reason = wrong_values(place, buffer.name, buffer.shape, found, sample)
            # A trial has a name of its own: a size or a distribution that nobody thought of.
            poisoned = found.unwritten and self.request.check == Check.VALUES
            check = Check.POISON if poisoned else self.request.check
            raise CandidateFailed(Status.WRONG, reason, check, self.entrant.side)

    def _sample(self, slot: Slot, name: str, dtype: str, index: int) -> Sample:
        driver, size, hidden = self.gpu.driver, ITEM_BYTES[dtype], slot.inputs.expected[name]
        raw = driver.download(slot.written[name].pointer + index * size, size)
        right = driver.download(hidden.pointer + index * 8, 8)
        return Sample(decode(raw, dtype), hidden.show(index, right), is_poison(raw))

    def _kernels(self, reached: int | None) -> str:
        """The kernel that was running as far as marks tell; they are set in checked first runs."""
        launches = self.request.plan.launches
        if reached is not None and 1 < len(launches) > reached:
            return f"kernel {launches[reached].kernel!r} (launch {reached + 1} of {len(launches)})"
        names = ", ".join(repr(name) for name in dict.fromkeys(launch.kernel for launch in launches))
        return f"kernel {names}"
