"""The job that a runner process gets: one case, a batch of runs."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from kernelwright.core.launch import KernelArgument, LaunchSpec, ResolvedPlan
from kernelwright.devices.base import Buffer
from kernelwright.devices.compare import poison, storage_dtype
from kernelwright.devices.cpu.data import CaseData
from kernelwright.devices.cpu.layout import FileLayout, Region
from kernelwright.devices.cpu.symbols import SharedStorage

MAX_STACKS = 28_000
_CLOCK_BITS, _SEED_BITS = 48, 64
SHADOW_CELL = 40
"""Bytes of a cell of the checked mode: one for an element of an output, or for 4 bytes of it."""


@dataclass(frozen=True)
class ThreadOrder:
    """In which order the threads of a block run: correct kernels do not depend on it."""

    code: int
    text: str


FORWARD = ThreadOrder(0, "")
REVERSE = ThreadOrder(1, "with the threads of a block run in reverse order: a missing barrier?")
RANDOM = ThreadOrder(2, "with the threads of a block run in random order: a missing barrier?")


@dataclass(frozen=True)
class PlannedRun:
    """One run: its number within the case, the input set, the thread order, the number of its poison.

    Only the order and the poison reach the process of the run, and that has no other run's: a candidate that could
    tell which run this is would compute for those that are checked, and cheat in those that are timed.
    """

    number: int
    input_set: int
    order: ThreadOrder
    poison: int = 0


@dataclass(frozen=True)
class Settings:
    """What does not change between the jobs of one artifact."""

    threads: int
    stack_bytes: int
    memory_bytes: int
    metrics: bool
    shared: SharedStorage


class Job:
    """A batch of runs of one case, and where their outputs will lie in the output file.

    Every run has outputs and scratch of its own, which no other run has mapped: nothing can be left there for a
    later run, nor be put back by one before it is looked at when all have ended.
    """

    def __init__(self, plan: ResolvedPlan, buffers: Sequence[Buffer], runs: Sequence[PlannedRun]) -> None:
        self.plan = plan
        self.buffers = {b.name: b for b in buffers}
        self.runs = tuple(runs)
        self._layout = FileLayout()
        outputs = [b for b in buffers if b.role != "in"]
        scratch = scratch_buffers(plan)
        self.outputs = [self._place(outputs) for _ in self.runs]
        self.scratch = [self._place(scratch) for _ in self.runs]

    def _place(self, buffers: Sequence[Buffer]) -> dict[str, Region]:
        return {b.name: self._layout.add(b, writable=True) for b in buffers}

    @property
    def written(self) -> Sequence[Region]:
        """All that candidates may write."""
        return self._layout.regions

    @property
    def output_bytes(self) -> int:
        """Size of the output file."""
        return self._layout.size

    def parts(
        self, settings: Settings, data: Mapping[int, CaseData], output_fd: int, cpu_seconds: int
    ) -> list[str]:
        """The job as the runner reads it (native/runtime/job.h): what all runs have in common, then each run."""
        lines = [
            f"threads {self.threads(settings)}",
            f"stack {settings.stack_bytes}",
            f"memory {self._address_space(settings, data)}",
            f"seconds {cpu_seconds}",
            f"metrics {int(settings.metrics)}",
        ]
        lines.append(f"storage {settings.shared.arena_offset} {settings.shared.nbytes}")
        lines += [f"shared {name} {offset} {size}" for name, offset, size in settings.shared.arrays]
        names = [*self.buffers, *(scratch.name for scratch in self.plan.scratch)]
        slots = {name: slot for slot, name in enumerate(names)}
        lines += [_launch_line(launch, slots) for launch in self.plan.launches]
        common = "\n".join(lines) + "\n"
        return [common, *(self._run_part(i, data, output_fd) for i in range(len(self.runs)))]

    def threads(self, settings: Settings) -> int:
        """OS threads: every fiber's stack and its guard page are two mappings, of which Linux gives 65530."""
        largest = max((prod(launch.block) for launch in self.plan.launches), default=1)
        return max(1, min(settings.threads, MAX_STACKS // largest))

    def busy_threads(self, settings: Settings) -> int:
        """OS threads that have blocks to run: no run uses more CPU time than these could."""
        blocks = max((prod(launch.grid) for launch in self.plan.launches), default=1)
        return min(self.threads(settings), blocks)

    def _address_space(self, settings: Settings, data: Mapping[int, CaseData]) -> int:
        stacks = settings.threads * (1024 * (settings.stack_bytes + 4096) + (80 << 20))
        shadow = shadow_bytes(self.buffers.values()) if settings.metrics else 0
        regions = max(
            sum(r.map_bytes + (256 << 10) for _, r in self._regions(i, data, 0))
            for i in range(len(self.runs))
        )
        return settings.memory_bytes + shadow + stacks + regions

    def _regions(self, i: int, data: Mapping[int, CaseData], output_fd: int) -> list[tuple[int, Region]]:
        """What a run has mapped."""
        inputs = data[self.runs[i].input_set]
        written = (*self.outputs[i].values(), *self.scratch[i].values())
        return [(inputs.fd, r) for r in inputs.inputs.values()] + [(output_fd, r) for r in written]

    def _run_part(self, i: int, data: Mapping[int, CaseData], output_fd: int) -> str:
        run, inputs, outputs = self.runs[i], data[self.runs[i].input_set], self.outputs[i]
        bindings, fills, copies = [], [], []
        regions = self._regions(i, data, output_fd)
        index = {(fd, region.file_offset): number for number, (fd, region) in enumerate(regions)}
        for buffer in self.buffers.values():
            source = inputs.inputs.get(buffer.name)
            if buffer.role == "in":
                assert source is not None
                bindings.append(index[inputs.fd, source.file_offset])
                continue
            target = index[output_fd, outputs[buffer.name].file_offset]
            bindings.append(target)
            if source is None:
                fills.append((target, poison(buffer.dtype, run.poison)))
            else:
                copies.append((target, index[inputs.fd, source.file_offset]))
        for region in self.scratch[i].values():
            target = index[output_fd, region.file_offset]
            bindings.append(target)
            fills.append((target, poison(region.dtype, run.poison)))
        clock = secrets.randbits(_CLOCK_BITS)
        parts = [f"run {run.order.code} {secrets.randbits(_SEED_BITS)} {clock}"]
        parts += [str(len(bindings)), *map(str, bindings)]
        for pairs in (fills, copies):
            parts += [str(len(pairs)), *(f"{a} {b}" for a, b in pairs)]
        return "\n".join([*(region.line(fd) for fd, region in regions), " ".join(parts)]) + "\n"


def _launch_line(launch: LaunchSpec, slots: Mapping[str, int]) -> str:
    arguments = [_argument(a, slots) for a in launch.arguments]
    head = [
        launch.kernel.replace(" ", ""),
        *launch.grid,
        *launch.block,
        launch.dynamic_shared_bytes,
        len(arguments),
    ]
    return " ".join(["launch", *map(str, head), *arguments])


def _argument(argument: KernelArgument, slots: Mapping[str, int]) -> str:
    if argument.is_buffer:
        return f"1 {slots[argument.name]}"
    value = argument.value
    return f"0 {argument.dtype} {int(value) if isinstance(value, bool) else value!r}"


def shadow_bytes(buffers: Iterable[Buffer]) -> int:
    """Bytes in which the checked mode notes what happened to outputs (native/check/shadow.h)."""
    sizes = [(prod(b.shape), storage_dtype(b.dtype).itemsize) for b in buffers if b.role != "in"]
    return sum(SHADOW_CELL * count * size // min(4, size) for count, size in sizes)


def scratch_buffers(plan: ResolvedPlan) -> list[Buffer]:
    """Scratch of a plan as buffers."""
    return [Buffer(s.name, s.dtype, (s.elements,), "scratch") for s in plan.scratch]


def bytes_per_run(buffers: Sequence[Buffer]) -> int:
    """Bytes of output, and of scratch where it is among the buffers, that one run leaves."""
    return sum(prod(b.shape) * storage_dtype(b.dtype).itemsize for b in buffers if b.role != "in") or 1
