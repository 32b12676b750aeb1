"""``export-batch``, ``evaluate-batch``, ``import-batch``: the device is on another machine."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from kernelwright.cli.options import DeviceOption, JsonOption, StrictOption, pick_device
from kernelwright.core.errors import UserError
from kernelwright.core.files import place
from kernelwright.harness.detached.evaluate import evaluate
from kernelwright.harness.detached.folder import Folder, import_results
from kernelwright.harness.detached.records import Batch, Bundle

POLL_S: Final = 0.5


def export_batch(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of --device detached:DIR.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    wait: Annotated[bool, typer.Option("--wait", help="Until there is something to evaluate.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Put everything that waits for a device into one file, for evaluate-batch on another machine."""
    opened = [Folder(path, create=wait) for path in folders]
    while not (batches := _pending(opened)) and wait:
        time.sleep(POLL_S)
    if not batches:
        raise UserError("nothing waits for a device there: is the campaign running? (--wait waits for it)")
    bundle = Bundle(batches=batches)
    place(output, bundle.to_json())
    items = sum(len(batch.items) for batch in batches)
    if as_json:
        typer.echo(json.dumps({"file": str(output), "items": items, "sha256": bundle.hash}))
    else:
        typer.echo(f"{output}: {items} items, sha256 {bundle.hash[:16]}; next: kernelwright evaluate-batch")
    return 0


def _pending(folders: list[Folder]) -> tuple[Batch, ...]:
    return tuple(batch for folder in folders for batch in folder.pending())


def evaluate_batch(
    file: Annotated[Path, typer.Argument(help="A file of export-batch.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where results are appended; a file for each batch.")
    ],
    device: DeviceOption = "auto",
    compile_workers: Annotated[
        int, typer.Option(min=1, max=256, help="Parallel compilers, at most one a core.")
    ] = 4,
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> int:
    """Evaluate a batch on this machine. Killed and run again, it goes on where it was; exit code 3 if items are open."""
    name = pick_device(device)

    def notify(text: str) -> None:
        print(f"kernelwright: {text}", file=sys.stderr)

    count = asyncio.run(
        evaluate(file, output, device=name, compile_workers=compile_workers, strict=strict, notify=notify)
    )
    if as_json:
        typer.echo(json.dumps({"done": count.done, "skipped": count.skipped, "faults": count.faults}))
    else:
        known = f", {count.skipped} were there" if count.skipped else ""
        typer.echo(f"{output}: {count.done} items evaluated{known}; next: kernelwright import-batch")
    return 3 if count.faults else 0


def import_batch(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders that the batch was exported from.")
    ],
    results: Annotated[Path, typer.Argument(help="The file of evaluate-batch.")],
    as_json: JsonOption = False,
) -> int:
    """Verify results of another machine and give them to the campaigns that wait for them."""
    done = import_results(folders, results)
    if as_json:
        typer.echo(json.dumps({"new": done.new, "known": done.known, "notes": done.notes}))
    else:
        typer.echo(f"{results}: {done.new} new results, {done.known} known")
        for note in done.notes:
            typer.echo(f"note: {note}")
    return 0
