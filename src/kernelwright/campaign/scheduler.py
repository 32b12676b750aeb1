"""Two lanes: compiling runs ahead in parallel, the device is used by one candidate at a time.

Seed setting: at most two candidates in the device lane (one runs, one is staged). A lane that has compiled
waits for its place there, so nothing is chosen long before the device can use it. A harness that queues by itself
(a detached device) has more places and gets them all at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kernelwright.campaign.policy import Work
from kernelwright.core.errors import in_flight
from kernelwright.core.outcome import Outcome
from kernelwright.core.screen import Screen
from kernelwright.harness.protocol import CompileResult, Harness
from kernelwright.harness.together import together

T = TypeVar("T")


async def _nothing() -> None:
    """The device is used by candidates only."""


@dataclass(frozen=True)
class Scheduler:
    """Runs work through a harness.

    ``take`` gives the next work, or ``None`` when there is no more; ``known`` the outcome of an equal binary
    measured before; ``started`` hears what goes to the device; ``done`` takes each result. ``between`` may use the
    device before each candidate, ``screen`` says what that one has to beat.
    """

    harness: Harness
    compile_workers: int
    take: Callable[[], Awaitable[Work | None]]
    known: Callable[[Work, CompileResult], Outcome | None]
    started: Callable[[Work], None]
    done: Callable[[Work, Outcome], Awaitable[None]]
    between: Callable[[], Coroutine[Any, Any, None]] = _nothing
    screen: Callable[[], Screen | None] = lambda: None
    device: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever uses the device."""

    async def run(self, stop: asyncio.Event) -> None:
        """Until there is no more work or ``stop`` is set; the experiment on the device is always finished.

        A HarnessError in one lane ends all lanes.
        """
        places = asyncio.Semaphore(self.harness.places)
        lanes = self.compile_workers + self.harness.places
        await together(self._lane(places, stop) for _ in range(lanes))

    async def care(
        self, stop: asyncio.Event, idle: Callable[[], bool], news: Callable[[], asyncio.Event]
    ) -> None:
        """What is due between candidates does not wait for one while none is in flight: a model may take minutes."""
        while not stop.is_set():
            next_news = news()
            if idle() and not self.device.locked():
                async with self.device:
                    await unless(stop, self.between())
            await unless(stop, next_news.wait())

    async def _lane(self, places: asyncio.Semaphore, stop: asyncio.Event) -> None:
        while not stop.is_set():
            work = await self.take()
            if work is None:
                return
            candidate = work.candidate
            with in_flight(f"{candidate.id} ({candidate})", "kernelwright resume"):
                await self._try(work, places, stop)

    async def _try(self, work: Work, places: asyncio.Semaphore, stop: asyncio.Event) -> None:
        compiled = await unless(stop, self.harness.compile(work.candidate))
        if compiled is None:
            return
        if compiled.status is not None:
            await self.done(work, compiled.as_outcome())
            return
        async with places:
            outcome = self.known(work, compiled) or await self._measure(work, compiled, stop)
        if outcome is not None:
            await self.done(work, outcome)
        if not self.harness.exclusive and not self.device.locked():
            async with self.device:
                await unless(stop, self.between())

    async def _measure(self, work: Work, compiled: CompileResult, stop: asyncio.Event) -> Outcome | None:
        if not self.harness.exclusive:
            # Nothing is lost when the budget ends first: the request stays where it was queued.
            self.started(work)
            return await unless(stop, self.harness.benchmark(work.candidate, compiled, self.screen()))
        async with self.device:
            if not stop.is_set():
                await self.between()
            if stop.is_set():
                return None
            self.started(work)
            return await self.harness.benchmark(work.candidate, compiled, self.screen())


async def unless(stop: asyncio.Event, call: Coroutine[Any, Any, T]) -> T | None:
    """Result of ``call``, or ``None`` when ``stop`` comes first (the call is cancelled)."""
    task, stopping = asyncio.create_task(call), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        stopping.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def either(stop: asyncio.Event, seconds: float) -> None:
    """Wait, but not beyond the campaign's end."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


async def cancelled(tasks: Sequence["asyncio.Task[None]"]) -> list[BaseException]:
    """End tasks; what went wrong in them before."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
