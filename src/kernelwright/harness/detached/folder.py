"""The folder between a campaign and the other machine.

::

    batches/0001.batch.json      requests, as a bundle of one batch
    results/0001.results.jsonl   what came back, verified
    device.json                  header of the first results: the machine that evaluates
    .asking                      locked while a campaign waits for results

Every other file appears whole or not at all and never changes, so that a kill at any instant loses nothing.
"""

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelwright.core.errors import UserError
from kernelwright.core.files import place, read_bytes, unwritable, write_through
from kernelwright.harness.detached.records import (
    MAX_BATCH_BYTES,
    MAX_LINE_BYTES,
    Batch,
    Bundle,
    Header,
    Item,
    Result,
    hash_of,
    line_of,
    read_bundle,
    read_line,
)

DEVICE: Final = "device.json"
BATCH: Final = ".batch.json"
RESULTS: Final = ".results.jsonl"
ASKING: Final = ".asking"


@dataclass(frozen=True)
class Imported:
    """What an import did: new results, ones that were there already, remarks for people."""

    new: int = 0
    known: int = 0
    notes: tuple[str, ...] = ()


class Folder:
    """DIR of ``detached:DIR``. Raises UserError when it cannot be used."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self.path = path
        self._asking: int | None = None
        self.batches, self.results = path / "batches", path / "results"
        if not create and not self.batches.is_dir():
            what = "is no folder of a detached device: it has no batches" if path.is_dir() else "is no folder"
            raise UserError(f"{path}: {what}: give the DIR of --device detached:DIR")
        try:
            self.batches.mkdir(parents=True, exist_ok=True)
            self.results.mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(f"{path}: cannot be used as a folder of batches: {error.strerror}") from None

    # -- requests -------------------------------------------------------------------------------------

    def add(self, batch: Batch) -> Path:
        """Write a batch under the next number."""
        return _numbered(self.batches, BATCH, Bundle(batches=(batch,)).to_json())

    def asked(self) -> Iterator[Batch]:
        """Every batch, oldest first."""
        for path in sorted(self.batches.glob(f"*{BATCH}")):
            yield from read_bundle(read_bytes(path, MAX_BATCH_BYTES), str(path)).batches

    def pending(self) -> tuple[Batch, ...]:
        """What has no result yet, one batch for equal terms."""
        answered = {result.item for result in self.answers()}
        merged: dict[str, Batch] = {}
        for batch in self.asked():
            open_ones = batch.only(set(batch.items) - answered)
            if not open_ones.items:
                continue
            key = batch.terms.id
            before = merged.get(key)
            merged[key] = open_ones if before is None else joined(before, open_ones)
        return tuple(merged.values())

    # -- who asks -------------------------------------------------------------------------------------

    def begin_asking(self) -> None:
        """Says that results are waited for, until :meth:`end_asking` or the end of the process."""
        try:
            self._asking = os.open(self.path / ASKING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._asking, fcntl.LOCK_SH)
        except OSError:  # such as a file system without locks
            self.end_asking()

    def end_asking(self) -> None:
        """Nobody here waits any more."""
        if self._asking is not None:
            os.close(self._asking)
            self._asking = None

    def is_asking(self) -> bool:
        """Whether a campaign waits for results of this folder, or may do so where nobody can tell."""
        try:
            handle = os.open(self.path / ASKING, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    # -- results --------------------------------------------------------------------------------------

    @property
    def device(self) -> Header | None:
        """The machine that evaluates; ``None`` before its first results."""
        path = self.path / DEVICE
        if not path.exists():
            return None
        header = read_line(read_bytes(path, MAX_LINE_BYTES), str(path))
        if not isinstance(header, Header):
            raise UserError(f"{path}: does not describe a device")
        return header

    def answers(self, seen: set[str] | None = None) -> Iterator[Result]:
        """Results, oldest first; with ``seen`` only those of files not in it, which are added to it."""
        for path in sorted(self.results.glob(f"[0-9]*{RESULTS}")):
            if seen is not None and path.name in seen:
                continue
            try:
                found = read_results(path)
            except UserError as error:
                raise UserError(f"{error} (delete {path.name} and import the results again)") from None
            yield from (record for record in found.records if isinstance(record, Result))
            if seen is not None:
                seen.add(path.name)

    def take(self, results: "Results", items: dict[str, tuple[Item, Batch]]) -> Imported:
        """Place results of this folder's ``items``. Raises UserError, and then places nothing."""
        known = {result.item for result in self.answers()}
        headers = {hash_of(record): record for record in results.records if isinstance(record, Header)}
        mine = {
            record.item: record
            for record in results.records
            if isinstance(record, Result) and record.item in items
        }
        for result in mine.values():
            item, batch = items[result.item]
            if fault := result.fault(item, batch.terms.cases):
                raise UserError(f"{results.path}: the result of the item {result.item} {fault}")
        new = [result for result in mine.values() if result.item not in known]
        used = {result.header: headers[result.header] for result in new}
        notes = self._same_device(list(used.values()), results.path)
        if new:
            if self.device is None:  # before the results: whoever waits for those asks for the device next
                place(self.path / DEVICE, line_of(next(iter(used.values()))))
            lines = [line_of(header) for header in used.values()] + [line_of(result) for result in new]
            _numbered(self.results, RESULTS, b"".join(lines))
        return Imported(len(new), len(mine) - len(new), notes)

    def _same_device(self, headers: list[Header], path: Path) -> tuple[str, ...]:
        """Timings of different devices are never compared."""
        notes: dict[str, None] = {}
        before = self.device or (headers[0] if headers else None)
        for header in headers:
            assert before is not None
            was, now = before.device, header.device
            if (was.kind, was.model, was.arch) != (now.kind, now.model, now.arch):
                raise UserError(
                    f"{path}: was measured on {now.model}, what is in {self.path} on {was.model}: "
                    "timings of different devices are not compared, use another folder"
                )
            if was.toolchain != now.toolchain:
                notes[f"another toolchain than before: {now.toolchain}, was {was.toolchain}"] = None
        return tuple(notes)


@dataclass(frozen=True)
class Results:
    """A results file that was read and verified. ``rest`` is the length of a last line cut off by a kill."""

    path: Path
    records: tuple[Header | Result, ...]
    rest: int = 0


def read_results(path: Path) -> Results:
    """Every line of a results file. Raises UserError for a damaged one, but the last may be cut off."""
    data = read_bytes(path, MAX_BATCH_BYTES)
    whole, _, rest = data.rpartition(b"\n")
    records: list[Header | Result] = []
    headers: set[str] = set()
    for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
        record = read_line(line, f"{path}:{number}")
        if isinstance(record, Header):
            headers.add(hash_of(record))
        elif record.header not in headers:
            raise UserError(f"{path}:{number}: belongs to a header that the file does not have")
        records.append(record)
    return Results(path, tuple(records), len(rest))


def import_results(paths: list[Path], file: Path, *, others_too: bool = False) -> Imported:
    """Place a results file into the folders that asked for it. Raises UserError, and then places nothing.

    ``others_too``: a file may be of other campaigns altogether, and is left alone then.
    """
    folders = [Folder(path) for path in paths]
    results = read_results(file)
    asked = [
        {id_: (item, batch) for batch in folder.asked() for id_, item in batch.items.items()}
        for folder in folders
    ]
    everything = {id_ for items in asked for id_ in items}
    foreign = [r.item for r in results.records if isinstance(r, Result) and r.item not in everything]
    if foreign and others_too and len(foreign) == sum(isinstance(r, Result) for r in results.records):
        return Imported(notes=("is of other campaigns",))
    if foreign:
        raise UserError(
            f"{file}: has results of {len(foreign)} items that nobody asked for in "
            f"{', '.join(map(str, paths))}, such as {foreign[0]}: give the folders that were exported"
        )
    if not results.records:
        raise UserError(f"{file}: holds no whole line: give the file that evaluate-batch wrote")
    done = [folder.take(results, items) for folder, items in zip(folders, asked, strict=True)]
    notes = [note for part in done for note in part.notes]
    if results.rest:
        notes.append("the last line is cut off, as a kill leaves it: its item stays pending")
    return Imported(sum(p.new for p in done), sum(p.known for p in done), tuple(dict.fromkeys(notes)))


def joined(first: Batch, second: Batch) -> Batch:
    """Two batches of equal terms as one."""
    return Batch(
        terms=first.terms,
        sources={**first.sources, **second.sources},
        items={**first.items, **second.items},
    )


def _numbered(folder: Path, suffix: str, data: bytes) -> Path:
    """Place a file under the next number; two writers never get the same one."""
    numbers = [int(p.name[:4]) for p in folder.glob(f"[0-9][0-9][0-9][0-9]{suffix}")]
    number = max(numbers, default=0)
    partial = folder / f".{os.getpid()}{suffix}.partial"
    try:
        write_through(partial, data)
        while True:
            number += 1
            path = folder / f"{number:04d}{suffix}"
            try:
                path.hardlink_to(partial)
            except FileExistsError:
                continue
            return path
    except OSError as error:
        raise unwritable(folder, error) from None
    finally:
        partial.unlink(missing_ok=True)
