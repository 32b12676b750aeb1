"""Compile workers: any number of requests, a bounded number of children."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Final

from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.base import BuildResult
from kernelwright.harness.child import Child, ChildDied, StepTimeout
from kernelwright.harness.excess import killed_for_memory
from kernelwright.harness.scratch import Artifacts
from kernelwright.harness.wire import OUT_OF_MEMORY, Request

Turn = Callable[[], contextlib.AbstractAsyncContextManager[None]]
_SIGNS: Final = ("bad_alloc", "out of memory", "Cannot allocate memory", "virtual memory exhausted")
_TWICE: Final = "the compiler was killed twice"


class CompilePool:
    """Gives each request, in the order they came, to the free child that worked last: one starts when it is needed.

    ``turn`` is held while a compiler works.
    """

    def __init__(
        self,
        children: Sequence[Child],
        artifacts: Artifacts,
        timeout_s: float,
        turn: Turn = contextlib.nullcontext,
    ) -> None:
        self._turn = turn
        self._artifacts = artifacts
        self._timeout_s = timeout_s
        self._idle: asyncio.LifoQueue[Child] = asyncio.LifoQueue()
        for child in reversed(children):
            self._idle.put_nowait(child)

    async def build(self, request: BuildRequest) -> BuildResult:
        """Build; a compiler that hangs or dies twice is the source's fault. Once can be another's doing: a kill."""
        before = killed_for_memory()
        try:
            return await self._build(request)
        except ChildDied:
            start = monotonic()
        try:
            return await self._build(request)
        except ChildDied as error:
            return _given_up(_cause_of_death(error, before), start)

    async def _build(self, request: BuildRequest) -> BuildResult:
        child = await self._idle.get()
        start = monotonic()
        try:
            async with self._turn():
                start = monotonic()
                reply = await child.ask(Request(0, build=request), self._timeout_s)
            return self._taken(reply.built, child)
        except StepTimeout:
            reason = f"the compiler did not end within {self._timeout_s:g} s"
            return _given_up(reason, start)
        finally:
            self._idle.put_nowait(child)

    def _taken(self, built: BuildResult | None, child: Child) -> BuildResult:
        """The result with its binary where the device worker reads it; before the child builds anything else."""
        if built is None:
            raise HarnessError("the compile worker gave no result")
        return self._artifacts.take(built, Path(child.setup.scratch)) if built.status is None else built


def _given_up(reason: str, start: float) -> BuildResult:
    """What compiling took too much time or memory for."""
    return BuildResult(
        status=Status.COMPILE_FAILED, reason=reason, seconds=monotonic() - start, check=Check.COMPILE_LIMITS
    )


def _cause_of_death(error: ChildDied, before: int | None) -> str:
    """In words. ``before``: how many processes the system had ended for lack of memory when the first try began."""
    if error.excess:
        return OUT_OF_MEMORY if "of memory" in str(error) else f"the compiler took too much: {error}"
    if any(text in error.last for text in _SIGNS):
        return OUT_OF_MEMORY
    if not error.from_outside:
        return f"the compiler crashed: {error}"
    after = killed_for_memory()
    if before is None or after is None:
        return f"{_TWICE} (out of memory, or by somebody)"
    return (
        OUT_OF_MEMORY
        if after > before
        else f"{_TWICE} by somebody: the system ended nothing for lack of memory"
    )
