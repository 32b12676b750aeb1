"""The other machine's part: evaluates a bundle, one line a finished item, so that a kill loses the one in flight."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final

from kernelwright import __version__
from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import HarnessError, UserError, in_flight
from kernelwright.core.files import read_bytes, unwritable
from kernelwright.core.outcome import Status
from kernelwright.devices.base import DuelResult
from kernelwright.harness.detached.folder import RESULTS, read_results
from kernelwright.harness.detached.records import (
    MAX_BATCH_BYTES,
    Batch,
    Bundle,
    Header,
    Item,
    Result,
    hash_of,
    line_of,
    read_bundle,
)
from kernelwright.harness.device_lock import silent
from kernelwright.harness.local import LocalHarness
from kernelwright.harness.protocol import Built, CompileResult, ProfileResult, SanitizerResult
from kernelwright.harness.scratch import Scratch
from kernelwright.harness.setup import DEVICES
from kernelwright.harness.together import together
from kernelwright.problems.loader import LIBRARY_FILE, load_problem

COMPILES_KEPT: Final = 128
FAULTS_TO_STOP: Final = 3
"""Faults of the harness after which the machine is not believed to be fit."""
AHEAD: Final = 2

Notify = Callable[[str], None]


@dataclass
class Count:
    """How far an evaluation has come, and the file that its results are in."""

    file: Path
    done: int = 0
    skipped: int = 0
    faults: list[str] = field(default_factory=list)


async def evaluate(
    file: Path,
    results: Path,
    *,
    device: str,
    compile_workers: int = 4,
    strict: bool = False,
    maker: str = DEVICES,
    notify: Notify = silent,
) -> Count:
    """Evaluate what ``results`` does not have yet. Raises UserError or HarnessError; what is done is kept.

    ``results`` is a file of this batch's own, or a folder, in which its file is named by the batch's hash. What is not
    there yet becomes a folder when its name has no ending.
    """
    bundle = read_bundle(read_bytes(file, MAX_BATCH_BYTES), str(file))
    wanted = {id_ for batch in bundle.batches for id_ in batch.items}
    count = Count(_file_of(bundle, results))
    with _open(count.file, wanted) as (output, known):
        count.skipped = len(known)
        for batch in bundle.batches:
            left = batch.only(set(batch.items) - known)
            if left.items:
                await _evaluate_batch(
                    left,
                    _Sheet(output, bundle.hash, count, notify),
                    device=device,
                    compile_workers=compile_workers,
                    strict=strict,
                    maker=maker,
                )
    return count


def _file_of(bundle: Bundle, results: Path) -> Path:
    if results.suffix and not results.is_dir():
        return results
    try:
        results.mkdir(parents=True, exist_ok=True)
    except FileExistsError:  # a file without an ending
        return results
    except OSError as error:
        raise UserError(f"{results}: cannot be made: {error.strerror}") from None
    return results / f"{bundle.hash[:16]}{RESULTS}"


class _open:  # noqa: N801 - a context manager
    """The results file for appending, and the items that it has; a line that a kill cut off is removed."""

    def __init__(self, path: Path, wanted: set[str]) -> None:
        self._known: set[str] = set()
        if path.exists():
            try:
                before = read_results(path)
            except UserError as error:
                raise UserError(f"{error}; or give another file, or a folder") from None
            self._known = {r.item for r in before.records if isinstance(r, Result)}
            if self._known - wanted:
                raise UserError(f"{path}: has results of another batch: give another file, or a folder")
        try:
            self._file: BinaryIO = path.open("ab")
            if path.stat().st_size and before.rest:
                self._file.truncate(path.stat().st_size - before.rest)
        except OSError as error:
            raise unwritable(path, error) from None

    def __enter__(self) -> tuple[BinaryIO, set[str]]:
        return self._file, self._known

    def __exit__(self, *exception: object) -> None:
        with suppress(OSError):  # every line is on the disk, or was told not to be
            self._file.close()


@dataclass
class _Sheet:
    """Where results go, each on the disk before the next."""

    file: BinaryIO
    bundle: str
    count: Count
    notify: Notify
    header: str = ""

    def begin(self, harness: LocalHarness) -> None:
        header = Header(
            device=harness.facts,
            sandbox=harness.sandbox,
            ceilings=harness.ceilings,
            kernelwright=__version__,
            bundle=self.bundle,
        )
        self.header = hash_of(header)
        self._append(line_of(header))

    def add(self, item: str, **values: object) -> None:
        result = Result.model_validate({"item": item, "bundle": self.bundle, "header": self.header, **values})
        self._append(line_of(result))
        self.count.done += 1

    def fault(self, item: str, error: HarnessError) -> None:
        """The item stays open; a machine that fails again and again is not fit."""
        self.count.faults.append(f"{item}: {error}")
        self.notify(f"{item} stays open: {error}")
        if len(self.count.faults) >= FAULTS_TO_STOP:
            raise error

    def _append(self, line: bytes) -> None:
        try:
            self.file.write(line)
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise unwritable(self.count.file, error) from None


async def _evaluate_batch(
    batch: Batch, sheet: _Sheet, *, device: str, compile_workers: int, strict: bool, maker: str
) -> None:
    with closing(Scratch()) as scratch:
        harness = LocalHarness(
            _problem_folder(batch, scratch.path),
            device,
            seed=batch.terms.seed,
            compile_workers=compile_workers,
            slow_cases=batch.terms.slow_cases,
            timing=batch.terms.timing,
            strict=strict,
            maker=maker,
            notify=sheet.notify,
        )
        sheet.notify(f"{batch.terms.problem.name}: {len(batch.items)} items")
        async with harness:
            sheet.begin(harness)
            await _Bench(harness, batch, sheet).run(compile_workers + AHEAD)


def _problem_folder(batch: Batch, place: Path) -> Path:
    """The batch's problem as a folder; what this version reads of it has to be what the sender read."""
    files = batch.terms.problem
    folder = place / "problem"
    folder.mkdir()
    for name, text in (
        ("problem.toml", files.toml),
        ("reference.py", files.reference),
        ("baseline.cu", files.baseline),
        (LIBRARY_FILE, files.library),
    ):
        if text or name != LIBRARY_FILE:
            (folder / name).write_text(text, encoding="utf-8")
    problem = load_problem(folder)
    cases = tuple(case.id for case in problem.cases(slow=batch.terms.slow_cases))
    if problem.id != files.id or cases != batch.terms.cases:
        raise UserError(
            f"the batch's problem {files.name} reads differently here: use the version of kernelwright "
            "that exported it"
        )
    return folder


@dataclass
class _Bench:
    """Items of one problem: compiling runs ahead in parallel, the harness gives the device to one at a time."""

    harness: LocalHarness
    batch: Batch
    sheet: _Sheet
    compiles: "OrderedDict[str, asyncio.Task[CompileResult]]" = field(default_factory=OrderedDict)

    async def run(self, lanes: int) -> None:
        """All items; the first fault that is not a candidate's ends it."""
        items = iter(self.batch.items.items())
        try:
            await together(self._lane(items) for _ in range(lanes))
        finally:
            for task in self.compiles.values():  # who waits for them may be gone
                task.cancel()
            await asyncio.gather(*self.compiles.values(), return_exceptions=True)

    async def _lane(self, items: Iterator[tuple[str, Item]]) -> None:
        for id_, item in items:
            try:
                with in_flight(f"the item {id_}", "the same command"):
                    await self._item(id_, item)
            except HarnessError as error:
                self.sheet.fault(id_, error)

    async def _item(self, id_: str, item: Item) -> None:
        if item.kind == "probe":
            self.sheet.add(id_)
            return
        sides = [await self._built(self.batch.candidate(side)) for side in item.sides]
        if item.kind == "duel":
            self.sheet.add(id_, dueled=await self._duel(item, sides[0], sides[1]))
            return
        if item.kind == "library":
            self.sheet.add(id_, dueled=await self._against_library(item, sides[0]))
            return
        built, compiled = sides[0], sides[0].compiled
        if item.kind == "profile":
            self.sheet.add(id_, profiled=await self._profile(built, (item.cases or ("",))[0]))
        elif item.kind == "benchmark":
            screen = item.screen.screen if item.screen else None
            outcome = (
                compiled.as_outcome()
                if compiled.status
                else await self.harness.benchmark(built.candidate, compiled, screen)
            )
            self.sheet.add(id_, outcome=outcome)
        elif compiled.status:
            reason = f"it does not compile: {compiled.reason}"
            self.sheet.add(id_, sanitized=SanitizerResult(Status.NOT_RUN, reason))
        else:
            self.sheet.add(id_, sanitized=await self.harness.sanitize(built.candidate, compiled))

    async def _profile(self, built: Built, case: str) -> ProfileResult:
        """Counters alone: the tool's report stays here."""
        if built.compiled.status is not None:
            return ProfileResult("failed", f"it does not compile: {built.compiled.reason}")
        profiled = await self.harness.profile(built.candidate, case, compiled=built.compiled)
        return replace(profiled, raw="", lines=())

    async def _duel(self, item: Item, challenger: Built, incumbent: Built) -> DuelResult:
        for name, side in (("challenger", challenger), ("incumbent", incumbent)):
            if side.compiled.status is not None:
                return _not_built(name, side.compiled.status, side.compiled)
        return await self.harness.duel(challenger, incumbent, item.rounds, item.cases)

    async def _against_library(self, item: Item, challenger: Built) -> DuelResult:
        if challenger.compiled.status is not None:
            return _not_built("challenger", challenger.compiled.status, challenger.compiled)
        return await self.harness.against_library(challenger, item.rounds, item.cases)

    async def _built(self, candidate: Candidate) -> Built:
        """With its binary; the newest are compiled once only."""
        task = self.compiles.get(candidate.id)
        if task is None:
            task = self.compiles[candidate.id] = asyncio.create_task(self.harness.compile(candidate))
        self.compiles.move_to_end(candidate.id)
        while len(self.compiles) > COMPILES_KEPT:
            self.compiles.popitem(last=False)
        return Built(candidate, await asyncio.shield(task))


def _not_built(side: str, status: Status, compiled: CompileResult) -> DuelResult:
    return DuelResult(status, compiled.reason, compiled.check, side)
