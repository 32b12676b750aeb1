"""The harness whose device is on another machine: requests are written to a folder, results are awaited there."""

import asyncio
import importlib.util
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, Self

from kernelwright import __version__
from kernelwright.core.candidate import Candidate
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, HarnessError, PlanError, UserError
from kernelwright.core.outcome import Check, Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.core.statistics import LOOKS
from kernelwright.devices.base import DuelResult, TimingProtocol
from kernelwright.harness.detached.folder import Folder
from kernelwright.harness.detached.items import item_about, split_rounds, subject_of, terms_of
from kernelwright.harness.detached.records import (
    Batch,
    Header,
    Item,
    Result,
    ScreenRecord,
    Source,
    item_id,
)
from kernelwright.harness.device_lock import silent
from kernelwright.harness.local import LocalHarness, source_refusal
from kernelwright.harness.protocol import Built, CompileResult, ProfileResult, SanitizerResult, SubmitResult
from kernelwright.harness.sandbox import SandboxReport
from kernelwright.harness.wire import Ceilings
from kernelwright.problems.loader import load_problem
from kernelwright.problems.plans import plans_for

BATCH_SIZE: Final = 64
IDLE_S: Final = 2.0
POLL_S: Final = 0.25
DUEL_ROUNDS: Final = LOOKS[-1]
"""Rounds of one trip: all looks of a duel. Rounds cost less than a trip."""
ELSEWHERE: Final = "elsewhere"
"""Stands for the binary, which is built where it runs."""


class DetachedHarness:
    """Implements :class:`~kernelwright.harness.protocol.Harness`. Use as an async context manager.

    A batch is written when ``batch_size`` requests wait, or when nothing new has come for ``idle_s`` seconds.
    Where NVRTC is installed, candidates for a GPU are compiled here first, for early errors and static metrics.
    """

    exclusive = False

    def __init__(
        self,
        problem: str | Path,
        folder: Path,
        *,
        seed: int = 0,
        compile_workers: int = 4,
        slow_cases: bool = False,
        strict: bool = False,
        batch_size: int = BATCH_SIZE,
        idle_s: float = IDLE_S,
        poll_s: float = POLL_S,
        notify: Callable[[str], None] = silent,
    ) -> None:
        self.problem = load_problem(problem)
        self.folder = Folder(folder, create=True)
        self.timing = TimingProtocol()
        self.places = batch_size
        self.notify = notify
        self._idle_s, self._poll_s = idle_s, poll_s
        self._cases = self.problem.cases(slow=slow_cases)
        self._terms = terms_of(self.problem, slow_cases=slow_cases, seed=seed, timing=self.timing)
        self._library_terms = self._terms.with_library(self.problem.library_source)
        self._terms_id, self._library_id = self._terms.id, self._library_terms.id
        self._seed, self._slow, self._workers, self._strict = seed, slow_cases, compile_workers, strict
        self._header: Header | None = None
        self._compiler: LocalHarness | None = None
        self._turns: Counter[str] = Counter()
        self._asked: dict[str, tuple[Item, dict[str, Source]]] = {}
        self._known: dict[str, Item] = {}
        self._earlier: dict[bytes, Item] = {}
        self._results: dict[str, Result] = {}
        self._seen: set[str] = set()
        self._futures: dict[str, asyncio.Future[Result]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._new = asyncio.Event()
        self._fought: tuple[tuple[object, ...], DuelResult] | None = None

    # -- life -----------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Read the folder; wait for the first results when the other machine is not known yet."""
        self.folder.begin_asking()
        own_terms = {self._terms_id, self._library_id}
        for batch in self.folder.asked():
            if batch.terms.id in own_terms:  # other campaigns may share the folder
                self._known.update(batch.items)
        first = [item for item in self._known.values() if item.kind == "benchmark" and not item.turn]
        self._earlier = {subject_of(item): item for item in first}
        self._take_results()
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._read())]
        try:
            if self.folder.device is None:
                self.notify(f"waiting for the device's facts: kernelwright export-batch {self.folder.path}")
                self._foresee_baseline()
                await self._ask(Item(kind="probe"), {})
            self._header = self.folder.device
            assert self._header is not None, "the first results brought it"
            await self._start_compiler()
        except BaseException:
            await self.close()
            raise

    async def _start_compiler(self) -> None:
        """Where there is no NVRTC, what does not compile is found on the other machine."""
        if self.facts.kind != "cuda" or importlib.util.find_spec("cuda") is None:
            return
        compiler = LocalHarness(
            self.problem.folder,
            "cuda:0",
            seed=self._seed,
            compile_workers=self._workers,
            slow_cases=self._slow,
            strict=self._strict,
            compile_for=self.facts,
        )
        try:
            await compiler.start()
        except UserError as error:
            self.notify(f"candidates are not compiled here first: {error}")
            return
        self._compiler = compiler

    async def close(self) -> None:
        """End the children; what waits for a result stays in the folder."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._flush()
        if self._compiler is not None:
            await self._compiler.close()
        self.folder.end_asking()

    @property
    def facts(self) -> DeviceFacts:
        """Facts of the other machine's device."""
        if self._header is None:
            raise HarnessError("the harness is not started")
        return self._header.device

    @property
    def sandbox(self) -> SandboxReport:
        """What holds in the other machine's device worker."""
        return self._header.sandbox if self._header else SandboxReport()

    @property
    def ceilings(self) -> Ceilings:
        """What the other machine's device can do at best."""
        return self._header.ceilings if self._header else Ceilings()

    # -- the verbs ------------------------------------------------------------------------------------

    async def compile(self, candidate: Candidate) -> CompileResult:
        """Static refusals and the plan; early compile errors and static metrics where there is a compiler."""
        if self._compiler is not None:
            return await self._compiler.compile(candidate)
        if refusal := source_refusal(candidate.template.source):
            return CompileResult(
                candidate.id, status=Status.RULE_BROKEN, reason=refusal, check=Check.SOURCE_RULES
            )
        try:
            plans_for(candidate, self._cases, self.facts, self.problem.signature)
        except (PlanError, ExpressionError) as error:
            return CompileResult(
                candidate.id, status=Status.LAUNCH_FAILED, reason=str(error), check=Check.PLAN
            )
        return CompileResult(candidate.id, artifact=ELSEWHERE)

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        """Check and time on the other machine. ``compiled`` only says that the candidate may go there."""
        known = (
            ScreenRecord(objective=screen.objective.name, incumbent_ms=dict(screen.incumbent_ms))
            if screen
            else None
        )
        item, sources = item_about("benchmark", candidate, screen=known)
        if (
            screen is not None
        ):  # without one every check is to run; an earlier sitting's may have left some out
            item = self._earlier.pop(subject_of(item), item)
        result = await self._ask(item, sources)
        assert result.outcome is not None
        if compiled.seconds and "compile" not in result.outcome.seconds:
            result.outcome.seconds["compile"] = compiled.seconds
        return result.outcome

    def asked_before(self) -> list[tuple[str, Configuration]]:
        """Candidates that earlier sittings asked about, by the id of their source and configuration, oldest first."""
        sides = [item.sides[0] for item in self._earlier.values()]
        return [(side.template, Configuration(side.configuration)) for side in sides]

    async def duel(
        self, challenger: Built, incumbent: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        """Two candidates in turn, on the other machine.

        A trip costs more than rounds: those of the next looks travel with the first, and so does the sanitizer's
        turn, which comes next for a challenger that wins. Nobody sees a round before it is asked for.
        """
        chosen = self._chosen(cases)
        both = (challenger.candidate, incumbent.candidate)
        key = (both[0].id, both[1].id, chosen)
        fought, self._fought = self._fought, None
        if fought is None or fought[0] != key:
            if self._turns[self._id(item_about("sanitize", challenger.candidate)[0])] == 0:
                self._foresee("sanitize", challenger.candidate)
            result = await self._about("duel", *both, rounds=max(rounds, DUEL_ROUNDS), cases=chosen)
            assert result.dueled is not None
            fought = (key, result.dueled)
        now, later = split_rounds(fought[1], rounds)
        if later.cases:
            self._fought = (key, later)
        return now

    async def against_library(
        self, challenger: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        """A candidate and the vendor library in turn, on the other machine; every call is a trip.

        None is made where the answer is known: no library, no GPU, or a version that may not know the request.
        """
        if reason := self._no_library():
            return DuelResult(Status.NOT_RUN, reason)
        chosen = self._chosen(cases)
        result = await self._about("library", challenger.candidate, rounds=rounds, cases=chosen)
        assert result.dueled is not None
        return result.dueled

    def _no_library(self) -> str:
        if self.facts.kind != "cuda":
            return f"vendor libraries are asked on GPUs only, not on {self.facts.kind}"
        if not self.problem.library_source:
            return f"{self.problem.name} names no vendor library (library.py)"
        if self._header is not None and self._header.kernelwright != __version__:
            there = self._header.kernelwright
            return f"PyTorch is not asked where kernelwright is {there}, here it is {__version__}"
        return ""

    def foresee_duels(self, challengers: Sequence[Candidate], incumbent: Candidate) -> None:
        """Their duels come back with that of whoever challenges first."""
        for challenger in challengers:
            self._foresee("duel", challenger, incumbent, rounds=DUEL_ROUNDS)

    def foresee_end(self, winner: Candidate, baseline: Candidate, duel: int, library: int) -> None:
        """What a campaign's end asks in turn: one trip brings all of it."""
        self._foresee("benchmark", winner)
        self._foresee("duel", winner, baseline, rounds=max(duel, DUEL_ROUNDS))
        if not self._no_library():
            self._foresee("library", winner, rounds=library)

    def _chosen(self, cases: Collection[str] | None) -> tuple[str, ...] | None:
        """In the problem's order; ``None`` is all."""
        return None if cases is None else tuple(case.id for case in self._cases if case.id in cases)

    async def sanitize(self, candidate: Candidate, compiled: CompileResult) -> SanitizerResult:  # noqa: ARG002 - the protocol's
        """compute-sanitizer, or the checked mode, on the other machine."""
        result = await self._about("sanitize", candidate)
        assert result.sanitized is not None
        return result.sanitized

    async def profile(
        self,
        candidate: Candidate,
        case: str,
        *,
        compiled: CompileResult | None = None,  # noqa: ARG002 - it is built where it runs
        level: int = 1,  # noqa: ARG002 - lines of the source do not travel
    ) -> ProfileResult:
        """Hardware counters of one case, on the other machine; without the tool's report and hot lines."""
        result = await self._about("profile", candidate, cases=(case,))
        assert result.profiled is not None
        return result.profiled

    async def submit(self, candidate: Candidate, board: str | None) -> SubmitResult:  # noqa: ARG002 - the protocol's
        """No leaderboard is attached."""
        return SubmitResult("no_board", "no leaderboard is attached")

    # -- requests -------------------------------------------------------------------------------------

    async def _about(self, kind: str, *candidates: Candidate, **values: object) -> Result:
        return await self._ask(*item_about(kind, *candidates, **values))

    def _foresee(self, kind: str, *candidates: Candidate, **values: object) -> None:
        """Let the next request of a kind about candidates travel now; who makes it later finds the result."""
        item, sources = item_about(kind, *candidates, **values)
        item = item.model_copy(update={"turn": self._turns[self._id(item)]})
        self._put(self._id(item), item, sources)

    def _foresee_baseline(self) -> None:
        """It is what a campaign asks first, and costs no trip of its own where it needs no facts of the device."""
        baseline = self.problem.baseline()
        if not baseline.plan.tunables:
            self._foresee("benchmark", Candidate(baseline, Configuration()))

    def _id(self, item: Item) -> str:
        return item_id(self._library_id if item.kind == "library" else self._terms_id, item)

    async def _ask(self, item: Item, sources: dict[str, Source]) -> Result:
        """The result of a request: at once when it is in the folder, and written only when it is not."""
        plain = self._id(item)
        item = item.model_copy(update={"turn": self._turns[plain]})
        self._turns[plain] += 1
        id_ = self._id(item)
        if (result := self._results.get(id_)) is not None:
            return result
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._futures[id_] = future
        self._put(id_, item, sources)
        try:
            return await future
        finally:
            self._futures.pop(id_, None)
            self._asked.pop(id_, None)

    def _put(self, id_: str, item: Item, sources: dict[str, Source]) -> None:
        if id_ not in self._known:
            self._known[id_] = item
            self._asked[id_] = (item, sources)
            self._new.set()

    async def _write(self) -> None:
        """Batches, when enough waits or nothing new comes."""
        while True:
            await self._new.wait()
            self._new.clear()
            while len(self._asked) < self.places:
                try:
                    await asyncio.wait_for(self._new.wait(), self._idle_s)
                except TimeoutError:
                    break
                self._new.clear()
            self._flush()

    def _flush(self) -> None:
        """One batch for what needs the library's file, one for everything else."""
        for about_library, terms in ((False, self._terms), (True, self._library_terms)):
            asked = {k: v for k, v in self._asked.items() if (v[0].kind == "library") == about_library}
            if asked:
                sources = {id_: source for _, used in asked.values() for id_, source in used.items()}
                items = {id_: item for id_, (item, _) in asked.items()}
                self.folder.add(Batch(terms=terms, sources=sources, items=items))
        self._asked.clear()

    async def _read(self) -> None:
        """Results, as they come; a folder that cannot be read ends everybody's waiting."""
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                self._take_results()
            except UserError as error:
                for future in self._futures.values():
                    if not future.done():
                        future.set_exception(HarnessError(str(error)))

    def _take_results(self) -> None:
        for result in self.folder.answers(self._seen):
            item = self._known.get(result.item)
            if item is None:
                continue
            if fault := result.fault(item, self._terms.cases):
                raise UserError(f"{self.folder.path}: the result of the item {result.item} {fault}")
            self._results[result.item] = result
            future = self._futures.get(result.item)
            if future is not None and not future.done():
                future.set_result(result)
