"""The product's command with something watched in it, and with a played device if wanted.

``long_campaign.py`` and ``kill_in_every_phase.py`` start this file as a child::

    python bench/watched.py '{"played": true, "prompts": "prompts.jsonl"}' run PROBLEM --device cpu ...

The first argument says what is watched: ``played`` answers for the device by a formula instead of running
candidates, each measurement in ``seconds``; ``prompts`` is a file that gets a line for every prompt; ``log`` one for every
measurement and every experiment in the memory; ``kill`` is a point of :data:`POINTS` and ``passage`` the passage
at which this process kills itself there. The rest is the product's command line, and all else is the product's.
"""

import asyncio
import functools
import hashlib
import inspect
import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final, Self

from kernelwright.campaign import sitting
from kernelwright.campaign.duels import Duels
from kernelwright.campaign.writing import Writing
from kernelwright.cli.main import main
from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, PlanError
from kernelwright.core.outcome import CaseTiming, Check, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.core.resolve import resolve
from kernelwright.core.screen import Screen
from kernelwright.devices.base import DuelCase, DuelResult, TimingProtocol
from kernelwright.generation.ledger import Ledger
from kernelwright.generation.models.mailbox import Mailbox
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import AtHand, Built, CompileResult, ProfileResult, SanitizerResult
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.self_test import SelfTest
from kernelwright.harness.wire import Ceilings
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import Problem

# -- a device that answers by a formula -------------------------------------------------------------------

FACTS: Final = DeviceFacts(
    name="cpu", kind="cpu", model="played", arch="", uuid="played", num_sms=2, warp_size=32,
    max_threads_per_block=1024, max_shared_bytes=232448, l2_bytes=1 << 20, memory_bytes=1 << 34,
    registers_per_sm=65536, shared_bytes_per_sm=233472, max_threads_per_sm=2048, max_blocks_per_sm=32,
    toolchain="played 1",
)  # fmt: skip


class Played(AtHand):
    """Implements :class:`~kernelwright.harness.protocol.Harness`: times are a formula of source and numbers."""

    places = 2
    exclusive = True
    facts = FACTS
    sandbox = SandboxReport()
    ceilings = Ceilings(bytes_per_s=1e8, flops_per_s=1e8)
    timing = TimingProtocol()
    seconds = 0.0
    """What one measurement takes."""

    def __init__(self, problem: Problem, device: str, *, slow_cases: bool = False, **_: Any) -> None:
        assert device == "cpu"
        self._problem = problem
        self._cases = problem.cases(slow=slow_cases)
        self._rng = random.Random(7)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        return None

    async def compile(self, candidate: Candidate) -> CompileResult:
        """Refuses what the script broke."""
        if "undeclared" in candidate.template.source:
            reason = "line 14: 'undeclared' was not declared"
            return CompileResult(candidate.id, status=Status.COMPILE_FAILED, reason=reason)
        try:
            for case in self._cases:
                resolve(candidate, case.sizes, self.facts, self._problem.signature)
        except (PlanError, ExpressionError) as error:
            return CompileResult(
                candidate.id, status=Status.LAUNCH_FAILED, reason=str(error), check=Check.PLAN
            )
        kernels = (
            KernelStatics("axpb", 16 + _roll(candidate.template.id, 48), 0, theoretical_occupancy=0.5),
        )
        return CompileResult(candidate.id, "a", candidate.id, static=StaticMetrics(kernels), seconds=0.01)

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        """Times by formula, with some noise."""
        del screen
        await asyncio.sleep(self.seconds)
        if "1.5f" in candidate.template.source:
            return Outcome(Status.WRONG, f"case {self._cases[0].id}: 96 of 96 values wrong", check="values")
        timings = tuple(
            CaseTiming(case.id, tuple(self._sample(candidate, case.id) for _ in range(8)), "clock")
            for case in self._cases
        )
        spent = {"compile": 0.01, "check": 0.001, "time": 0.003, "overhead": 0.001}
        return Outcome(
            Status.MEASURED,
            cases=timings,
            artifact_digest=compiled.digest,
            static=compiled.static,
            seconds=spent,
        )

    def _sample(self, candidate: Candidate, case: str) -> float:
        shape = 1 + _roll(candidate.template.id, 1000) / 500
        numbers = 1 + abs(int(candidate.configuration["THREADS"]) - 128) / 256
        numbers += (int(candidate.configuration.get("ITEMS", 1)) - 2) ** 2 / 8
        return 0.01 * shape * numbers * len(case) * (1 + 0.004 * self._rng.random())

    async def duel(
        self, challenger: Built, incumbent: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        """Likewise."""
        del cases
        sides = [
            [tuple(self._sample(side.candidate, case.id) for _ in range(rounds)) for case in self._cases]
            for side in (challenger, incumbent)
        ]
        found = zip(self._cases, *sides, strict=True)
        return DuelResult(
            Status.MEASURED,
            cases=tuple(DuelCase(case.id, ours, theirs, "clock") for case, ours, theirs in found),
        )

    async def against_library(
        self, challenger: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        """There is none."""
        del challenger, rounds, cases
        return DuelResult(Status.NOT_RUN, "no library here")

    async def sanitize(self, candidate: Candidate, compiled: CompileResult) -> SanitizerResult:
        """Nothing is ever found."""
        del candidate, compiled
        return SanitizerResult(Status.MEASURED, tools=("checked mode",), seconds=0.01)

    async def profile(self, candidate: Candidate, case: str, **_: Any) -> ProfileResult:
        """Never."""
        del candidate, case
        return ProfileResult("not_available")

    async def close(self) -> None:
        """Nothing is held."""
        return


def _roll(text: str, below: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % below


async def _no_selftest(*_: object, **__: object) -> SelfTest:
    """The reference never runs on a device that is played."""
    return SelfTest(())


# -- the watched child ------------------------------------------------------------------------------------

UNRECORDED: Final = "measured, not recorded"
POINTS: Final[dict[str, tuple[str, str, str]]] = {
    "compiling": ("harness", "compile", "before"),
    "compiled": ("harness", "compile", "after"),
    "measuring": ("harness", "benchmark", "before"),
    UNRECORDED: ("memory", "record", "before"),
    "recorded": ("memory", "record", "after"),
    "duel": ("harness", "duel", "before"),
    "duel fought, not recorded": ("memory", "duel", "before"),
    "duel recorded": ("memory", "duel", "after"),
    "sanitizer": ("harness", "sanitize", "before"),
    "before a milestone": ("memory", "milestone", "before"),
    "after a milestone": ("memory", "milestone", "after"),
    "request noted, not made": ("ledger", "ask", "after"),
    "waiting for a model": ("mailbox", "_write", "after"),
    "replied, not recorded": ("ledger", "answered", "before"),
    "reply recorded": ("ledger", "answered", "after"),
    "repair begins": ("writing", "repair_prompt", "before"),
    "repair recorded": ("ledger", "answered", "after"),
    "confirmation begins": ("duels", "confirm", "before"),
    "confirmation recorded": ("duels", "confirm", "after"),
}
"""Where a child can kill itself: class, method, and on which side of the call."""


def watched(wishes: dict[str, Any]) -> None:
    """Put into the product's classes what the wishes ask for."""
    if wishes.get("played"):
        Played.seconds = wishes.get("seconds", 0.0)
        setattr(sitting, "LocalHarness", Played)  # noqa: B010 - what is imported there is nobody's to export
        setattr(sitting, "quick_selftest", _no_selftest)  # noqa: B010
    harness = Played if wishes.get("played") else LocalHarness
    owners: dict[str, type] = {
        "harness": harness, "memory": Memory, "ledger": Ledger, "mailbox": Mailbox, "writing": Writing, "duels": Duels,
    }  # fmt: skip
    if path := wishes.get("prompts"):
        _time_prompts(Path(path))
    if path := wishes.get("log"):
        _after(harness, "benchmark", lambda args, _: _line(path, {"measured": args[1].id}))
        _after(Memory, "record", lambda args, _: _line(path, {"recorded": args[1].candidate}))
    if point := wishes.get("kill"):
        owner, method, side = POINTS[point]
        passages = itertools.count(1)

        def pass_by(args: tuple[Any, ...], *_: object) -> None:
            if point == UNRECORDED and args[1].outcome.status is not Status.MEASURED:
                return  # nothing is in flight on the device
            if next(passages) == wishes.get("passage", 1):
                os.kill(os.getpid(), signal.SIGKILL)

        (_before if side == "before" else _after)(owners[owner], method, pass_by)


def _before(owner: type, name: str, act: Callable[..., None]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        act(args)
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)


def _after(owner: type, name: str, act: Callable[..., None]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    async def waited(*args: Any, **kwargs: Any) -> Any:
        result = await original(*args, **kwargs)
        act(args, result)
        return result

    @functools.wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        act(args, result)
        return result

    setattr(owner, name, waited if inspect.iscoroutinefunction(original) else called)


def _time_prompts(path: Path) -> None:
    """CPU time of this thread, which other processes on the machine do not stretch much."""
    original = Writing.structure_prompt

    def timed(self: Writing, wanted: int) -> Any:
        start = time.thread_time()
        prompt = original(self, wanted)
        spent = 1e3 * (time.thread_time() - start)
        row = {"experiments": self.notebook.experiments, "ms": spent, "characters": len(prompt.prompt)}
        _line(str(path), row)
        return prompt

    Writing.structure_prompt = timed  # type: ignore[method-assign]


def _line(path: str, row: dict[str, Any]) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1].startswith("{"):
        raise SystemExit(__doc__)
    watched(json.loads(sys.argv[1]))
    main(sys.argv[2:])
