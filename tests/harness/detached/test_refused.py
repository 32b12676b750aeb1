"""Results and batches that are damaged, forged or of somebody else are one line, and nothing of them is placed."""

import asyncio
import json
from pathlib import Path

import pytest

from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.files import read_bytes
from kernelwright.harness.detached import folder as folders
from kernelwright.harness.detached.evaluate import evaluate
from kernelwright.harness.detached.folder import Folder, import_results
from kernelwright.harness.detached.records import Header, canonical, digest_of, line_of, read_line

from .test_detached import MAKER, candidate, exchanged, harness, until_pending


async def test_what_is_damaged_or_foreign_is_refused_and_nothing_is_placed(tmp_path: Path) -> None:
    path, results = await exchanged(tmp_path)
    header, line, _ = results.read_bytes().split(b"\n")
    value = json.loads(line)
    timed = value["result"]["outcome"]["cases"]
    cases: dict[str, bytes] = {
        "does not match its hash": header + b"\n" + line.replace(b"2.0", b"1.0") + b"\n",
        "is no JSON": header + b"\n" + line[:-9] + b"\n" + line + b"\n",
        "a header that the file does not have": line + b"\n",
        "has the schema": header.replace(b"kernelwright-result/1", b"kernelwright-result/9") + b"\n",
        "which is no result": header + b"\n" + b" " * (5 << 20) + b"\n",
        "other cases": resigned(header, value, cases=timed[1:]),
        "no times": resigned(header, value, cases=[{**timed[0], "samples_ms": [-1.0]}, *timed[1:]]),
        "nobody asked": (tmp_path / "r.jsonl").read_bytes().replace(line, signed(value, item="f" * 32)),
    }
    before = sorted((path / "results").iterdir())
    for message, data in cases.items():
        bad = tmp_path / "bad.jsonl"
        bad.write_bytes(data)
        with pytest.raises(UserError, match=message) as refused:
            import_results([path], bad)
        assert "\n" not in str(refused.value)
    assert sorted((path / "results").iterdir()) == before


def signed(value: dict[str, object], **changes: object) -> bytes:
    result = value["result"]
    assert isinstance(result, dict)
    body = {"schema": value["schema"], "result": {**result, **changes}}
    return canonical({**body, "sha256": digest_of(body)})


def resigned(header: bytes, value: dict[str, object], **changes: object) -> bytes:
    """With a right hash, so that only the content gives it away."""
    result = value["result"]
    assert isinstance(result, dict)
    return header + b"\n" + signed(value, outcome={**result["outcome"], **changes}) + b"\n"


async def test_another_device_is_refused(tmp_path: Path) -> None:
    path, results = await exchanged(tmp_path)
    device = path / "device.json"
    known = read_line(device.read_bytes(), "device.json")
    assert isinstance(known, Header)
    other = known.model_copy(
        update={"device": known.device.__class__(**{**vars(known.device), "model": "H9"})}
    )
    device.write_bytes(line_of(other))
    with pytest.raises(UserError, match="timings of different devices are not compared"):
        import_results([path], results)


async def test_bundles_that_are_not_ours_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await exchanged(tmp_path)
    good = json.loads((tmp_path / "r.json").read_bytes())
    del good["sha256"]
    terms = good["batches"][0]["terms"]
    wrong = {**good, "batches": [{**good["batches"][0], "terms": {**terms, "seed": 7}}]}
    bad = tmp_path / "bad.json"
    for body, message in ((wrong, "does not match its content"), ({**good, "schema": "x"}, "has the schema")):
        bad.write_bytes(canonical({**body, "sha256": digest_of(body)}))
        with pytest.raises(UserError, match=message):
            await evaluate(bad, tmp_path / "n.jsonl", device="cpu", maker=MAKER)
    monkeypatch.setattr(folders, "MAX_BATCH_BYTES", 10)
    with pytest.raises(UserError, match="is larger than"):
        read_bytes(bad, folders.MAX_BATCH_BYTES)


async def test_damage_in_the_folder_ends_the_waiting(tmp_path: Path) -> None:
    path, _ = await exchanged(tmp_path)
    async with harness(path) as remote, asyncio.timeout(10):
        asking = asyncio.create_task(remote.benchmark(candidate("x"), await remote.compile(candidate("x"))))
        await until_pending(Folder(path), 2)
        (path / "results" / "0009.results.jsonl").write_bytes(b"{}\n")
        with pytest.raises(HarnessError, match=r"0009.*: is nothing that kernelwright wrote"):
            await asking


@pytest.mark.parametrize("line", ["{}", "[]", "7", '{"schema": null}', '{"schema": 1, "header": {}}'])
async def test_what_names_no_schema_is_nothing_of_ours(tmp_path: Path, line: str) -> None:
    (tmp_path / "batches").mkdir()
    file = tmp_path / "f"
    file.write_text(f"{line}\n")
    told = "is nothing that kernelwright wrote: it has no schema, "
    with pytest.raises(UserError) as refused:
        import_results([tmp_path], file)
    assert str(refused.value) == f"{file}:1: {told}'kernelwright-result/1' is read"
    with pytest.raises(UserError) as refused:
        await evaluate(file, tmp_path / "n.jsonl", device="cpu", maker=MAKER)
    assert str(refused.value) == f"{file}: {told}'kernelwright-batch/1' is read"


def test_a_results_file_without_a_whole_line(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"half')
    with pytest.raises(UserError):
        import_results([tmp_path], tmp_path / "r.jsonl")
    (tmp_path / "r.jsonl").write_text("")
    with pytest.raises(UserError):
        import_results([tmp_path], tmp_path / "r.jsonl")
