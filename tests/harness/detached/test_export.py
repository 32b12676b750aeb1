"""``export-batch --wait`` knows whether anybody asks."""

import asyncio
import threading
from pathlib import Path

import pytest

from kernelwright.cli import detached
from kernelwright.cli.detached import export_batch
from kernelwright.core.errors import UserError
from kernelwright.harness.detached.folder import Folder

from .test_detached import answer, harness


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "POLL_S", 0.02)
    monkeypatch.setattr(detached, "GONE_S", 0.2)


async def test_it_ends_when_the_campaign_has_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, file = tmp_path / "d", tmp_path / "b.json"
    async with asyncio.TaskGroup() as group:
        group.create_task(answer(path, tmp_path / "probe.jsonl"))
        remote = harness(path)
        await remote.start()
    waiting = asyncio.create_task(asyncio.to_thread(export_batch, [path], file, wait=True))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    await remote.close()
    async with asyncio.timeout(10):
        assert await waiting == 1
    assert "no campaign asks there any more" in capsys.readouterr().err
    assert not file.exists()


def test_it_waits_for_a_campaign_that_has_not_begun_and_takes_what_it_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, file = tmp_path / "d", tmp_path / "b.json"
    codes: list[int] = []
    waiting = threading.Thread(target=lambda: codes.append(export_batch([path], file, wait=True)))
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()

    async def asks() -> None:
        remote = harness(path)
        starting = asyncio.create_task(remote.start())
        await asyncio.to_thread(waiting.join, 10)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)

    asyncio.run(asks())
    assert codes == [0]
    assert file.exists()
    told = capsys.readouterr()
    assert told.err.count("no campaign runs there yet") == 1
    assert "2 items" in told.out
    # What was asked stays; who exports it now learns that nobody waits.
    assert export_batch([path], file) == 0
    assert "for one that is resumed" in capsys.readouterr().err


def test_without_waiting_it_says_whether_a_campaign_runs(tmp_path: Path) -> None:
    path = tmp_path / "d"
    folder = Folder(path, create=True)
    with pytest.raises(UserError, match="no campaign runs"):
        export_batch([path], tmp_path / "b.json")
    folder.begin_asking()
    with pytest.raises(UserError, match="a campaign runs"):
        export_batch([path], tmp_path / "b.json")
    folder.end_asking()
    assert not folder.is_asking()
