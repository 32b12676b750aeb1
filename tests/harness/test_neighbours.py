"""Foreign processes on the GPU: waited for, then refused; never one's own."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Collection

import pytest

from kernelwright.core.errors import HarnessError
from kernelwright.harness.neighbours import Neighbours, device_workers, foreign, own_processes


def neighbours(
    *lists: Collection[int] | None, wait_s: float = 60.0
) -> tuple[Neighbours, list[str], list[int]]:
    """One that sees the lists one after the other (the last again and again); its notes; its looks."""
    left, notes, looks = list(lists), [], []

    def processes() -> Collection[int] | None:
        looks.append(1)
        return left.pop(0) if len(left) > 1 else left[0]

    return Neighbours("cuda:0", processes, notify=notes.append, wait_s=wait_s, poll_s=0.001), notes, looks


async def test_alone_nothing_is_said_and_the_next_look_is_later() -> None:
    one, notes, looks = neighbours({os.getpid()})
    await one.wait()
    await one.wait()
    assert notes == []
    assert len(looks) == 1


async def test_others_are_waited_for_with_one_note() -> None:
    busy = {os.getpid(), 999_999_999}
    one, notes, looks = neighbours(busy, busy, busy, {os.getpid()})
    await one.wait()
    assert notes == ["cuda:0: waiting for other processes on the GPU (pid 999999999)"]
    assert len(looks) == 4


async def test_then_the_device_is_refused_by_their_ids() -> None:
    one, _, _ = neighbours({os.getpid(), 999_999_998, 999_999_999}, wait_s=0.0)
    with pytest.raises(HarnessError, match="pid 999999998, 999999999"):
        await one.wait()


async def test_a_device_that_nobody_can_tell_of_is_used_with_one_note() -> None:
    one, notes, _ = neighbours(None)
    await one.wait()
    assert len(notes) == 1
    assert "cannot be told" in notes[0]


def test_a_child_is_ones_own_and_so_is_its_child() -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as shell:
        assert shell.stdout is not None
        grandchild = int(shell.stdout.readline())
        assert {os.getpid(), shell.pid, grandchild} <= own_processes()
        os.killpg(shell.pid, 9)


def test_the_one_unknown_of_another_namespace_is_ones_own() -> None:
    assert foreign({999_999_999}, {1, 2}) == set()
    assert foreign({999_999_998, 999_999_999}, {1, 2}) == {999_999_998, 999_999_999}
    assert foreign({1, 999_999_999}, {1, 2}) == {999_999_999}
    assert foreign(set(), {1}) == set()


def test_workers_of_another_harness_are_no_neighbours() -> None:
    command = [sys.executable, "-c", "print(flush=True); input()", "kernelwright.harness.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert foreign({os.getpid(), other.pid}, {os.getpid()}) == set()
        other.kill()


def test_a_board_beside_a_campaign_in_a_container_is_no_neighbour() -> None:
    """NVML counts in the host's namespace: two workers are seen here, two strangers there."""
    before = device_workers()
    setup = '{"role": "device", "device": "cuda:0"}'
    words = ["-c", "print(flush=True); input()", "kernelwright.harness.worker", setup]
    with contextlib.ExitStack() as stack:
        for others in (words, words, [*words[:3], setup.replace("cuda:0", "cpu")]):
            child = subprocess.Popen(
                [sys.executable, *others], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.enter_context(child)
            stack.callback(child.kill)
            assert child.stdout is not None
            child.stdout.readline()
        assert device_workers() >= before + 1
        assert foreign({999_999_998, 999_999_999}, {1, 2}, device_workers()) == set()
    assert foreign({999_999_997, 999_999_998, 999_999_999}, {1, 2}, 2) != set()
    assert foreign({1, 999_999_999}, {1, 2}, 2) == {999_999_999}
