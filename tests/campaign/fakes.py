"""A harness and an optimiser that answer from a table, for tests of the loop."""

import asyncio
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field

from kernelwright.core.candidate import Candidate, Template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.outcome import CaseTiming, Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.devices.base import DuelCase, DuelResult
from kernelwright.harness.protocol import (
    AtHand,
    Built,
    CompileResult,
    ProfileResult,
    SanitizerResult,
    SubmitResult,
)
from kernelwright.harness.wire import Ceilings

FACTS = DeviceFacts(
    name="cpu", kind="cpu", model="fake", arch="", uuid="fake", num_sms=2, warp_size=32, max_threads_per_block=1024,
    max_shared_bytes=232448, l2_bytes=1 << 20, memory_bytes=1 << 34, registers_per_sm=65536,
    shared_bytes_per_sm=233472, max_threads_per_sm=2048, max_blocks_per_sm=32, toolchain="fake 1",
)  # fmt: skip
DEVICE = json.dumps(asdict(FACTS))


def template(name: str = "t", values: int = 4, extra: str = "") -> Template:
    numbers = ", ".join(str(value) for value in range(1, values + 1))
    return parse_template(
        f'/* kernelwright\n[tune]\nX = [{numbers}]\n[[launch]]\nkernel = "k"\ngrid = [1]\nblock = [32]\n'
        f'args = ["A"]\n*/\n// {name}{extra}\nextern "C" __global__ void k(float* A) {{}}\n',
        name,
    )


def measured(ms: float, digest: str = "") -> Outcome:
    timing = CaseTiming("n=1", (ms,) * 8, "clock")
    return Outcome(Status.MEASURED, cases=(timing,), artifact_digest=digest, seconds={"time": 0.01})


def key(candidate: Candidate) -> tuple[str, int]:
    return candidate.template.name, int(candidate.configuration.get("X", 0))


@dataclass
class FakeHarness(AtHand):
    """``times[(template, X)]`` in ms; a status instead of a number fails there. Counts overlaps on the device.

    ``true_times`` are what duels see, where medians are lucky or unlucky; a status there: that side is at fault.
    ``unsanitary`` are candidates (template, X) in which the sanitizer finds something.
    """

    times: dict[tuple[str, int], float | Status]
    compile_seconds: float = 0.0
    device_seconds: float = 0.0
    facts: DeviceFacts = FACTS
    ceilings: Ceilings = field(default_factory=Ceilings)
    places: int = 2
    exclusive: bool = True
    measured: list[str] = field(default_factory=list)
    compiling: int = 0
    compiled: int = 0
    most_compiling: int = 0
    on_device: int = 0
    most_on_device: int = 0
    same_digest: bool = False
    true_times: dict[tuple[str, int], float | Status] = field(default_factory=dict)
    unsanitary: set[tuple[str, int]] = field(default_factory=set)
    sanitizer: Status = Status.MEASURED
    sanitized: list[str] = field(default_factory=list)
    duels: list[tuple[str, str, int]] = field(default_factory=list)
    screens: list[Screen | None] = field(default_factory=list)

    def _answer(self, candidate: Candidate) -> float | Status:
        return self.times.get(key(candidate), 1.0)

    async def _occupy(self) -> None:
        self.on_device += 1
        self.most_on_device = max(self.most_on_device, self.on_device)
        await asyncio.sleep(self.device_seconds)
        self.on_device -= 1

    async def compile(self, candidate: Candidate) -> CompileResult:
        self.compiling += 1
        self.most_compiling = max(self.most_compiling, self.compiling)
        await asyncio.sleep(self.compile_seconds)
        self.compiling -= 1
        self.compiled += 1
        answer = self._answer(candidate)
        if answer is Status.COMPILE_FAILED:
            return CompileResult(candidate.id, status=Status.COMPILE_FAILED, reason="line 3: no")
        digest = "same" if self.same_digest else candidate.id
        return CompileResult(candidate.id, artifact="a", digest=digest)

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        await self._occupy()
        self.measured.append(candidate.id)
        self.screens.append(screen)
        answer = self._answer(candidate)
        if isinstance(answer, Status):
            return Outcome(answer, reason="because")
        return measured(answer, compiled.digest)

    async def duel(
        self, challenger: Built, incumbent: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        await self._occupy()
        self.duels.append((str(challenger.candidate), str(incumbent.candidate), rounds))
        samples = []
        for name, side in (("challenger", challenger), ("incumbent", incumbent)):
            time = self.true_times.get(key(side.candidate), self._answer(side.candidate))
            if isinstance(time, Status):
                return DuelResult(time, "because", "values", name)
            # Other noise on each side, the same every time.
            phase = 0 if name == "challenger" else 3
            samples.append(tuple(time * (1 + 0.001 * ((7 * i + phase) % 5 - 2)) for i in range(rounds)))
        return DuelResult(Status.MEASURED, cases=(DuelCase("n=1", samples[0], samples[1], "clock"),))

    async def against_library(
        self,
        challenger: Built,
        rounds: int,
        cases: Collection[str] | None = None,
    ) -> DuelResult:
        return DuelResult(Status.NOT_RUN, "no library here")

    async def sanitize(self, candidate: Candidate, compiled: CompileResult) -> SanitizerResult:
        await self._occupy()
        self.sanitized.append(str(candidate))
        if key(candidate) in self.unsanitary:
            return SanitizerResult(Status.WRONG, "memcheck: invalid read", ("memcheck",), 0.01)
        return SanitizerResult(self.sanitizer, "no tool" if self.sanitizer is Status.NOT_RUN else "")

    async def profile(
        self, candidate: Candidate, case: str, *, compiled: CompileResult | None = None, level: int = 1
    ) -> ProfileResult:
        return ProfileResult("not_available")

    async def submit(self, candidate: Candidate, board: str | None) -> SubmitResult:
        return SubmitResult("no_board")

    async def close(self) -> None:
        pass


def candidate(name: str = "t", x: int = 1) -> Candidate:
    return Candidate(template(name), Configuration({"X": x}))
