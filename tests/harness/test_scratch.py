"""Scratch folders, artifacts, the cache and the device lock."""

import asyncio
import hashlib
import os
import tempfile
from pathlib import Path

import pytest

from kernelwright.core.errors import HarnessError, UserError
from kernelwright.devices.base import BuildResult
from kernelwright.harness import device_lock as device_lock_module
from kernelwright.harness.device_lock import device_lock, lock_path, told_once
from kernelwright.harness.scratch import MAX_ARTIFACT_BYTES, Artifacts, Scratch, shared_cache


def built(path: Path, content: bytes = b"binary", digest: str = "") -> BuildResult:
    path.write_bytes(content)
    return BuildResult(artifact=str(path), digest=digest or hashlib.sha256(content).hexdigest())


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


def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Of the artifacts, and a compile worker's scratch."""
    for name in ("artifacts", "scratch"):
        (tmp_path / name).mkdir()
    return tmp_path / "artifacts", tmp_path / "scratch"


def test_what_a_compile_worker_says_it_built_is_checked(tmp_path: Path) -> None:
    kept, scratch = folders(tmp_path)
    artifacts = Artifacts(kept)
    (outside := tmp_path / "secret").write_bytes(b"binary")
    (scratch / "link").symlink_to(outside)
    (scratch / "hard").hardlink_to(outside)
    os.mkfifo(scratch / "pipe")
    (big := scratch / "big").touch()
    os.truncate(big, MAX_ARTIFACT_BYTES + 1)
    digest = built(scratch / "a").digest
    wrong = {
        "outside its scratch: /": built(outside),
        "outside its scratch": BuildResult(f"{scratch}/../secret", digest),
        "or that of another": built(scratch / "a", digest="0" * 64),
        "has 0 bytes": built(scratch / "b", content=b""),
        "No such file": BuildResult(str(scratch / "nothing"), digest),
        "cannot be read": BuildResult(str(scratch / "link"), digest),
        "is no ordinary file": BuildResult(str(scratch / "hard"), digest),
        "no ordinary file": BuildResult(str(scratch / "pipe"), digest),
        "67108865 bytes": BuildResult(str(big), digest),
        "strange name": built(scratch / "a.fast.so.x"),
    }
    for reason, result in wrong.items():
        with pytest.raises(HarnessError, match=reason):
            artifacts.take(result, scratch)
    assert list(kept.iterdir()) == []


def test_a_binary_is_kept_under_its_digest_and_gone_from_the_scratch(tmp_path: Path) -> None:
    kept, scratch = folders(tmp_path)
    artifacts = Artifacts(kept)
    taken = artifacts.take(built(scratch / "any.fast.so"), scratch)
    assert taken.artifact == str(kept / f"{taken.digest[:32]}.fast.so")
    assert taken.artifact in artifacts
    assert Path(taken.artifact).read_bytes() == b"binary"
    assert list(scratch.iterdir()) == []


def test_only_the_newest_artifacts_are_kept(tmp_path: Path) -> None:
    kept, scratch = folders(tmp_path)
    artifacts = Artifacts(kept, kept=2)
    taken = [artifacts.take(built(scratch / name, name.encode()), scratch) for name in "abac"]
    assert [result.artifact in artifacts for result in taken] == [True, False, True, True]
    assert sorted(kept.iterdir()) == sorted(Path(result.artifact) for result in taken[2:])


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


async def test_who_waits_for_a_device_has_the_next_turn(tmp_path: Path) -> None:
    """One that asks again at once, as a campaign does, does not keep the other one out."""
    order: list[str] = []
    told: list[str] = []
    tell = told_once(told.append)

    async def use(name: str) -> None:
        while min(order.count("campaign"), order.count("board")) < 4:
            async with device_lock("a", folder=tmp_path, waiting=tell):
                order.append(name)
                await asyncio.sleep(0.03)  # longer than a look at the lock

    async with asyncio.timeout(20):
        await asyncio.gather(use("campaign"), use("board"))
    assert min(order[:12].count("campaign"), order[:12].count("board")) >= 3
    assert len(told) == 1


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


def test_a_lock_lies_where_every_user_of_the_machine_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that look in their own TMPDIR would measure on one device at once."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert lock_path("a").parent == device_lock_module.FOLDERS[0] == Path("/tmp")
    places = tuple(tmp_path / name for name in ("missing", "second", "third"))
    for folder in places[1:]:
        folder.mkdir()
    monkeypatch.setattr(device_lock_module, "FOLDERS", places)
    assert lock_path("a").parent == places[1]
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert lock_path("a").parent == places[0]  # the error names the first
    lock_path("a", places[2]).touch()
    assert lock_path("a").parent == places[2]  # another user made it: reading is enough for a lock
