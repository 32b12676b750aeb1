"""Scratch folders, artifacts, the cache and the device lock."""

import asyncio
import os
from pathlib import Path

import pytest

from kernelwright.core.errors import HarnessError, UserError
from kernelwright.devices.base import BuildResult
from kernelwright.harness.device_lock import device_lock, lock_path
from kernelwright.harness.scratch import MAX_ARTIFACT_BYTES, Artifacts, Scratch, shared_cache


def built(path: Path, content: bytes = b"binary", digest: str = "0" * 64) -> BuildResult:
    path.write_bytes(content)
    return BuildResult(artifact=str(path), digest=digest)


def test_a_new_scratch_leaves_those_of_the_living_alone(tmp_path: Path) -> None:
    first, second = Scratch(tmp_path), Scratch(tmp_path)
    assert first.path.exists()
    assert first.path != second.path
    first.close()
    second.close()
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_scratch_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kernelwright-notes").mkdir()
    Scratch(tmp_path).close()
    assert (tmp_path / "kernelwright-notes").exists()


def test_a_place_that_is_no_folder_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="no scratch folder can be made there"):
        Scratch(tmp_path / "file")


def test_artifacts_are_checked(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(MAX_ARTIFACT_BYTES + 1)
    wrong = {
        "outside": built(tmp_path / "elsewhere/a"),
        "SHA-256": built(tmp_path / "a", digest="../../a"),
        "has 0 bytes": built(tmp_path / "b", content=b""),
        "not there": BuildResult(str(tmp_path / "nothing"), "0" * 64),
        "lies outside": BuildResult(str(tmp_path / "link"), "0" * 64),
        "67108865 bytes": BuildResult(str(big), "0" * 64),
    }
    for reason, result in wrong.items():
        with pytest.raises(HarnessError, match=reason):
            artifacts.accept(result)
        assert result.artifact not in artifacts


def test_only_the_newest_artifacts_are_kept(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path, kept=2)
    results = [built(tmp_path / name) for name in "abc"]
    for result in (*results[:2], results[0], results[2]):
        artifacts.accept(result)
    assert [result.artifact in artifacts for result in results] == [True, False, True]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]


def test_the_cache_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() or 1000)
    folder = shared_cache(tmp_path)
    if os.getuid():
        assert folder == tmp_path / "cache/kernelwright"
    else:  # made by another user than the one it is for
        assert folder == tmp_path


def test_a_cache_that_others_may_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "kernelwright").mkdir()
    (tmp_path / "kernelwright").chmod(0o777)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() or 1000)
    assert shared_cache(tmp_path / "fallback") == tmp_path / "fallback"


async def test_a_device_is_held_by_one(tmp_path: Path) -> None:
    order: list[str] = []
    waiting = asyncio.Event()
    held = asyncio.Event()

    async def first() -> None:
        async with device_lock("GPU-1/2", folder=tmp_path):
            held.set()
            await waiting.wait()
            order.append("first")

    async def second() -> None:
        await held.wait()
        async with device_lock("GPU-1/2", folder=tmp_path, waiting=lambda _: waiting.set()):
            order.append("second")

    await asyncio.gather(first(), second())
    assert order == ["first", "second"]
    assert lock_path("GPU-1/2", tmp_path).name == "kernelwright-device-GPU-1-2.lock"


async def test_two_devices_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async with device_lock("a", folder=tmp_path), device_lock("b", folder=tmp_path, wait_s=0):
        pass


async def test_waiting_has_an_end(tmp_path: Path) -> None:
    async with device_lock("a", folder=tmp_path):
        with pytest.raises(HarnessError, match="kept by another process"):
            async with device_lock("a", folder=tmp_path, wait_s=0.05):
                pass


async def test_a_lock_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    lock_path("a", tmp_path).symlink_to("/etc/passwd")
    with pytest.raises(HarnessError, match="cannot be opened"):
        async with device_lock("a", folder=tmp_path):
            pass
