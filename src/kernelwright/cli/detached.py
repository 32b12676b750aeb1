"""``export-batch``, ``evaluate-batch``, ``import-batch``: the device is on another machine."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from kernelwright.cli.options import DeviceOption, JsonOption, StrictOption, path, pick_device
from kernelwright.core.errors import UserError
from kernelwright.core.files import place, read_bytes
from kernelwright.harness.detached.evaluate import evaluate
from kernelwright.harness.detached.folder import RESULTS, Folder, Imported, import_results
from kernelwright.harness.detached.records import MAX_BATCH_BYTES, Batch, Bundle, read_bundle

POLL_S: Final = 0.5
GONE_S: Final = 10.0
"""A campaign that is started or resumed just now takes some of it to say so."""


def export_batch(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", parser=path, help="Folders of --device detached:DIR.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", parser=path, help="The file to write.")],
    wait: Annotated[bool, typer.Option("--wait", help="Until there is something to evaluate.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Put everything that waits for a device into one file. Exit code 1 when nobody asks any more while it waits."""
    opened = [Folder(folder, create=wait) for folder in folders]
    batches = _waited(opened) if wait else _pending(opened)
    running = any(folder.is_asking() for folder in opened)
    if not batches and wait:
        _tell("no campaign asks there any more: it has ended, or was stopped; there is nothing to evaluate")
        return 1
    if not batches:
        state = "a campaign runs" if running else "no campaign runs"
        raise UserError(f"nothing waits for a device there, {state} (--wait waits for it)")
    if not running:
        _tell("no campaign waits there: the results are for one that is resumed")
    bundle = Bundle(batches=batches)
    _refuse_other(output)
    place(output, bundle.to_json())
    items = sum(len(batch.items) for batch in batches)
    if as_json:
        typer.echo(json.dumps({"file": str(output), "items": items, "sha256": bundle.hash}))
    else:
        typer.echo(f"{output}: {items} items, sha256 {bundle.hash[:16]}; next: kernelwright evaluate-batch")
    return 0


def _refuse_other(output: Path) -> None:
    """What is there may be written over when it is such a file itself."""
    if output.is_file():
        try:
            read_bundle(read_bytes(output, MAX_BATCH_BYTES), str(output))
        except UserError:
            raise UserError(f"{output}: is there, and no batch: choose another name, or remove it") from None


def _waited(folders: list[Folder]) -> tuple[Batch, ...]:
    """What waits for a device, as soon as anything does; nothing when the campaign there has gone."""
    known, told, seen = any(any(folder.asked()) for folder in folders), False, time.monotonic()
    while not (batches := _pending(folders)):
        if any(folder.is_asking() for folder in folders):
            known, seen = True, time.monotonic()
        elif known and time.monotonic() - seen > GONE_S:
            break
        elif not (known or told):
            _tell(f"no campaign runs there yet: waiting for one with --device detached:{folders[0].path}")
            told = True
        time.sleep(POLL_S)
    return batches


def _tell(text: str) -> None:
    print(f"kernelwright: {text}", file=sys.stderr, flush=True)


def _pending(folders: list[Folder]) -> tuple[Batch, ...]:
    return tuple(batch for folder in folders for batch in folder.pending())


def evaluate_batch(
    file: Annotated[Path, typer.Argument(parser=path, help="A file of export-batch.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            parser=path,
            help="Where results are appended: a folder for all batches, or FILE.jsonl for one.",
        ),
    ] = Path("results"),
    device: DeviceOption = "auto",
    compile_workers: Annotated[
        int, typer.Option(min=1, max=256, help="Parallel compilers, at most one a core.")
    ] = 4,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> int:
    """Evaluate a batch on this machine. Killed and run again, it goes on where it was; exit code 3 if items are open."""
    name = pick_device(device)

    count = asyncio.run(
        evaluate(file, output, device=name, compile_workers=compile_workers, strict=strict, notify=_tell)
    )
    if as_json:
        done = {"done": count.done, "skipped": count.skipped, "faults": count.faults}
        typer.echo(json.dumps({**done, "file": str(count.file)}))
    else:
        known = f", {count.skipped} were there" if count.skipped else ""
        typer.echo(f"{count.file}: {count.done} items evaluated{known}; next: kernelwright import-batch")
    return 3 if count.faults else 0


def import_batch(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", parser=path, help="Folders that the batch was exported from."),
    ],
    results: Annotated[
        Path, typer.Argument(parser=path, help="What evaluate-batch wrote: a file, or a folder of them.")
    ],
    as_json: JsonOption = False,
) -> int:
    """Verify results of another machine and give them to the campaigns that wait for them."""
    found, faults = _imported(folders, results)
    for fault in faults:
        _tell(f"error: {fault}")
    if as_json:
        notes = [note for _, done in found for note in done.notes]
        sums = {"new": sum(d.new for _, d in found), "known": sum(d.known for _, d in found)}
        typer.echo(json.dumps({**sums, "notes": notes, "faults": faults}))
        return 2 if faults else 0
    for file, done in found:
        typer.echo(f"{file}: {done.new} new results, {done.known} known")
        for note in done.notes:
            typer.echo(f"note: {note}")
    return 2 if faults else 0


def _imported(folders: list[Path], results: Path) -> tuple[list[tuple[Path, Imported]], list[str]]:
    """What each file brought, and what is wrong with files of a folder: the others count all the same."""
    if not results.is_dir():
        return [(results, import_results(folders, results))], []
    for folder in folders:  # what is wrong with one of them is told once
        _ = Folder(folder).device
    found, faults = [], []
    for file in _results(results):
        try:
            found.append((file, import_results(folders, file, others_too=True)))
        except UserError as error:
            faults.append(str(error))
    if not faults and not any(done.new or done.known for _, done in found):
        raise UserError(f"{results}: has nothing that was asked for in {', '.join(map(str, folders))}")
    return found, faults


def _results(folder: Path) -> list[Path]:
    """A folder's files by the name that evaluate-batch gives."""
    found = sorted(folder.glob(f"*{RESULTS}"))
    if not found:
        raise UserError(f"{folder}: holds no *{RESULTS}: give what evaluate-batch wrote")
    return found
