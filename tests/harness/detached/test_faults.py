"""What goes wrong on the other machine and is no candidate's fault: items stay open, and who runs it again goes on."""

import asyncio
import errno
import os
import tempfile
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.core.candidate import Candidate
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.outcome import Status
from kernelwright.harness.detached.evaluate import evaluate
from kernelwright.harness.detached.folder import Folder, import_results, read_results
from kernelwright.harness.detached.harness import DetachedHarness
from kernelwright.harness.detached.records import Result
from kernelwright.harness.local import LocalHarness

from .test_detached import MAKER, candidate, exchanged, harness, until_pending


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(LocalHarness, "benchmark", fail)


async def test_an_item_that_cannot_be_measured_stays_open_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await exchanged(tmp_path)
    batch, results, told = tmp_path / "r.json", tmp_path / "again.jsonl", list[str]()
    with monkeypatch.context() as broken:
        failing(broken, HarnessError("the device is gone"))
        count = await evaluate(batch, results, device="cpu", maker=MAKER, notify=told.append)
    assert [fault.partition(": ")[2] for fault in count.faults] == ["the device is gone"]
    assert any(line.endswith("stays open: the device is gone") for line in told)
    again = await evaluate(batch, results, device="cpu", maker=MAKER)
    assert (again.done, again.faults) == (1, [])
    found = [record for record in read_results(results).records if isinstance(record, Result)]
    assert [record.outcome and record.outcome.status for record in found] == [Status.MEASURED]


async def test_a_fault_of_ours_names_the_item_that_was_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await exchanged(tmp_path)
    failing(monkeypatch, RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug") as raised:
        await evaluate(tmp_path / "r.json", tmp_path / "again.jsonl", device="cpu", maker=MAKER)
    (note,) = raised.value.__notes__
    assert note.startswith("in flight: the item ")
    assert note.endswith("the same command goes on")


async def test_who_is_interrupted_while_it_compiles_says_nothing_of_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler whose worker is closed fails, and nobody waits for it any more."""
    await exchanged(tmp_path)
    compiling, said = asyncio.Event(), list[str]()

    async def fail_when_closed(*_: object, **__: object) -> None:
        compiling.set()
        try:
            await asyncio.sleep(3600)
        finally:
            raise HarnessError("the compile worker was closed while it worked")

    monkeypatch.setattr(LocalHarness, "compile", fail_when_closed)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context["message"]))
    running = asyncio.create_task(
        evaluate(tmp_path / "r.json", tmp_path / "again.jsonl", device="cpu", maker=MAKER)
    )
    await compiling.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert said == []


async def test_after_a_kill_the_next_one_finds_whose_folder_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await exchanged(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    found: list[tuple[int, int]] = []

    def look(_: str) -> None:
        found.append(
            (len(list(scratch.glob("kernelwright-*"))), len(list(scratch.glob("kernelwright-*/owner"))))
        )

    await evaluate(tmp_path / "r.json", tmp_path / "again.jsonl", device="cpu", maker=MAKER, notify=look)
    assert found[0] == (1, 1), "a folder that is locked by its owner"
    assert not list(scratch.glob("kernelwright-*/"))


async def test_a_full_disk_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await exchanged(tmp_path)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"again.jsonl: cannot be written: .*: free some space there"):
        await evaluate(tmp_path / "r.json", tmp_path / "again.jsonl", device="cpu", maker=MAKER)


async def test_campaigns_of_several_problems_may_share_a_folder(tmp_path: Path) -> None:
    path, results = await exchanged(tmp_path)
    import_results([path], results)
    async with DetachedHarness("reduce_sum", path, slow_cases=True, idle_s=0.05, poll_s=0.02) as other:
        mine = Candidate(other.problem.baseline(), Configuration())
        asking = asyncio.create_task(other.benchmark(mine, await other.compile(mine)))
        await until_pending(Folder(path))
        asking.cancel()
    async with harness(path) as ours, asyncio.timeout(20):
        assert (await ours.benchmark(candidate(), await ours.compile(candidate()))).cases


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (
            ("import-batch", "nosuch", "results"),
            "nosuch: is no folder: give the DIR of --device detached:DIR",
        ),
        (
            ("import-batch", "results", "results"),
            "results: is no folder of a detached device: it has no batches: give ",
        ),
        (("export-batch", "d", "-o", "results"), "results: is a folder: name a file in it"),
        (
            ("export-batch", "d", "-o", "nosuch/b.json"),
            "nosuch/b.json: cannot be written: No such file or directory: make its folder first",
        ),
        (
            ("export-batch", "d", "-o", "mine.cu"),
            "mine.cu: is there, and no batch: choose another name, or remove it",
        ),
    ],
)
async def test_a_wrong_place_is_one_line(
    words: tuple[str, ...],
    fault: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await exchanged(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"results/{name}.results.jsonl").write_bytes((tmp_path / "r.jsonl").read_bytes())
    (tmp_path / "mine.cu").write_text("{}")
    with pytest.raises(SystemExit) as ended:
        await asyncio.to_thread(main, list(words))
    error = capsys.readouterr().err.replace(
        "kernelwright: no campaign waits there: the results are for one that is resumed\n", ""
    )
    assert (ended.value.code, error.count("\n")) == (2, 1)
    assert error.startswith(f"kernelwright: error: {fault}")
    assert (tmp_path / "mine.cu").read_text() == "{}"
