"""A whole campaign on a pretended GPU, made by the product's own loop: models, duels, a certificate."""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from kernelwright.campaign.budget import Budget
from kernelwright.campaign.campaign import Campaign
from kernelwright.campaign.events import Silent
from kernelwright.campaign.settings import Settings
from kernelwright.certificate import certify
from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.outcome import CaseTiming, Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.devices.base import DuelCase, DuelResult
from kernelwright.harness.protocol import Built, CompileResult, Harness
from kernelwright.memory.records import CampaignRecord, ProblemRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem

from ..campaign.fakes import FACTS, FakeHarness
from ..campaign.test_campaign import Proposals
from ..campaign.test_writing import STOP, Scripted, proposal

NAME = "c1"
PROBLEM = load_problem("vector_add")
CASES = [case.id for case in PROBLEM.cases(slow=True)]
GPU = replace(FACTS, name="cuda:0", kind="cuda", model="NVIDIA H200", uuid="GPU-1", toolchain="NVRTC 13.1")
TIMES: dict[tuple[str, int], float | Status] = {
    ("baseline", 0): 2.0,
    **{("t1", x): 1.5 - 0.01 * x for x in range(1, 5)},
    **{("t2", x): 1.0 - 0.01 * x for x in range(1, 5)},
    ("t1", 3): Status.WRONG,
}


def name_of(candidate: Candidate) -> tuple[str, int]:
    """Name as the model gave it, and X."""
    return candidate.template.name.split("-")[0], int(candidate.configuration.get("X", 0))


@dataclass
class Gpu(FakeHarness):
    """Times all cases, a little otherwise each time; ``factor`` slows everything, ``noise`` is the samples' spread."""

    facts: DeviceFacts = GPU
    factor: float = 1.0
    noise: float = 0.001
    build: str = ""
    method: str = "events"

    def _answer(self, candidate: Candidate) -> float | Status:
        answer = self.times.get(name_of(candidate), 1.9)
        return answer if isinstance(answer, Status) else answer * self.factor

    async def compile(self, candidate: Candidate) -> CompileResult:
        compiled = await super().compile(candidate)
        return replace(compiled, digest=f"{candidate.id}{self.build}")

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        outcome = await super().benchmark(candidate, compiled, screen)
        if outcome.status is not Status.MEASURED:
            return outcome
        time = outcome.cases[0].median_ms
        timings = [
            CaseTiming(case, self._samples(n * time, 8, n), self.method) for n, case in enumerate(CASES, 1)
        ]
        return replace(outcome, cases=tuple(timings), seconds={"time": 0.01 * len(self.measured)})

    def _samples(self, time: float, number: int, phase: int) -> tuple[float, ...]:
        return tuple(time * (1 + self.noise * ((7 * i + phase) % 5 - 2)) for i in range(number))

    async def duel(
        self, challenger: Built, incumbent: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        result = await super().duel(challenger, incumbent, rounds, cases)
        if not result.cases:
            return result
        times = [float(self._answer(side.candidate)) for side in (challenger, incumbent)]
        both = [
            DuelCase(
                case,
                self._samples(n * times[0], rounds, n),
                self._samples(n * times[1], rounds, n + 2),
                "events",
            )
            for n, case in enumerate(CASES, 1)
        ]
        return replace(result, cases=tuple(both))


@dataclass
class Treacherous(Gpu):
    """``t2`` breaks a check when it is confirmed: once it was checked a second time."""

    async def duel(
        self, challenger: Built, incumbent: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        side = challenger.candidate
        if name_of(side)[0] == "t2" and self.measured.count(side.id) > 1:
            return DuelResult(Status.WRONG, "other bits", "repeat", "challenger")
        return await super().duel(challenger, incumbent, rounds, cases)


@dataclass
class Specialists(Gpu):
    """``t1`` is fast on the smallest case, ``t2`` on the others; what is put together has both times."""

    times: dict[tuple[str, int], float | Status] = field(default_factory=lambda: {("baseline", 0): 2.0})

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        outcome = await super().benchmark(candidate, compiled, screen)
        name, x = name_of(candidate)
        fast = {"t1": CASES[:1], "t2": CASES[1:], "dispatch": CASES}.get(name, [])
        share = [0.7 - 0.01 * x if timing.case in fast else 0.85 - 0.01 * x for timing in outcome.cases]
        timings = [
            replace(timing, samples_ms=tuple(part * sample for sample in timing.samples_ms))
            for part, timing in zip(share, outcome.cases, strict=True)
        ]
        return replace(outcome, cases=tuple(timings))


async def make_campaign(
    folder: Path, *replies: str, problem: str = "vector_add", harness: Gpu | None = None, **settings: object
) -> Path:
    """A finished campaign with its certificate; the memory's file."""
    texts = replies or (proposal("t1") + proposal("t2"), STOP, STOP, STOP)
    given = {"problem": problem, "device": "cuda:0", "slow_cases": True, "young_budget": 2, "proposals": 2}
    values = Settings.model_validate({**given, **settings})
    record = CampaignRecord(
        NAME, PROBLEM.id, values.model_dump_json(), json.dumps(asdict(GPU)), PROBLEM.objective, 0.0
    )
    spec = PROBLEM.spec.model_dump_json()
    model = Scripted(list(texts))
    with Memory.open(folder / "memory.db") as memory:
        memory.start_campaign(
            record,
            ProblemRecord(PROBLEM.id, PROBLEM.name, spec, PROBLEM.reference_source, PROBLEM.baseline_source),
        )
        campaign = Campaign(
            id=NAME, settings=values, problem=PROBLEM, harness=harness or Gpu(TIMES), memory=memory, proposer=Proposals(),
            listener=Silent(), budget=Budget(60.0, values.evaluations), models={model.name: model},
        )  # fmt: skip
        await campaign.run()
        certify(memory, NAME)
    return folder / "memory.db"


def opener(harness: Gpu) -> Callable[[Path], contextlib.AbstractAsyncContextManager[Harness]]:
    """As ``rebuild`` wants its harness."""

    @contextlib.asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Harness]:
        assert load_problem(folder).id == PROBLEM.id
        yield harness

    return opened


def tampered(file: Path, folder: Path, statement: str, *values: object) -> Path:
    """A copy of a memory in which history was changed behind its back."""
    with contextlib.closing(sqlite3.connect(file)) as original:
        original.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy = Path(shutil.copy(file, folder / file.name))
    with contextlib.closing(sqlite3.connect(copy)) as database, database:
        triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            database.execute(f"DROP TRIGGER {name}")
        assert database.execute(statement, values).rowcount > 0, "nothing was changed"
    return copy
