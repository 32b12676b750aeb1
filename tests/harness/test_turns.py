"""Many compilers or one measurement."""

import asyncio

import pytest

from kernelwright.harness.turns import Turns


class Log(list[str]):
    async def share(self, turns: Turns, name: str, until: asyncio.Event) -> None:
        async with turns.shared():
            self.append(f"+{name}")
            await until.wait()
            self.append(f"-{name}")

    async def take(self, turns: Turns, name: str) -> None:
        async with turns.alone():
            assert turns.taken
            self.append(f"+{name}")
            await asyncio.sleep(0)
            self.append(f"-{name}")


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_many_share_and_one_alone_waits_for_all() -> None:
    turns, log, go = Turns(), Log(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for name in "ab":
            group.create_task(log.share(turns, name, go))
        await settle()
        group.create_task(log.take(turns, "X"))
        await settle()
        assert log == ["+a", "+b"]
        go.set()
    assert log == ["+a", "+b", "-a", "-b", "+X", "-X"]
    assert not turns.taken


async def test_who_wants_it_alone_goes_before_new_sharers() -> None:
    turns, log, go = Turns(), Log(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(log.share(turns, "a", go))
        await settle()
        group.create_task(log.take(turns, "X"))
        await settle()
        group.create_task(log.share(turns, "b", go))
        await settle()
        go.set()
    assert log == ["+a", "-a", "+X", "-X", "+b", "-b"]


async def test_two_alone_take_turns() -> None:
    turns, log = Turns(), Log()
    await asyncio.gather(log.take(turns, "X"), log.take(turns, "Y"))
    assert log in (["+X", "-X", "+Y", "-Y"], ["+Y", "-Y", "+X", "-X"])


async def test_a_cancelled_wait_lets_the_others_go_on() -> None:
    turns, log, go = Turns(), Log(), asyncio.Event()
    first = asyncio.create_task(log.share(turns, "a", go))
    await settle()
    waiting = asyncio.create_task(log.take(turns, "X"))
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    second = asyncio.create_task(log.share(turns, "b", go))
    await settle()
    assert log == ["+a", "+b"]
    go.set()
    await asyncio.gather(first, second)
