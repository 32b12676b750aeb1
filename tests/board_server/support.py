"""A harness that does what comments of the source say, and boards over it."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from kernelwright.board_server.app import make_app
from kernelwright.board_server.records import Draft, Entry, Listing, Rules
from kernelwright.board_server.running import Settings, running
from kernelwright.board_server.service import Service
from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import HarnessError, UserError
from kernelwright.core.outcome import KILLED, CaseTiming, Outcome, Status
from kernelwright.devices.base import DuelCase, DuelResult, RunResult
from kernelwright.harness.protocol import Built, CompileResult
from kernelwright.leaderboard.base import Mode, State

FACTS = DeviceFacts(
    name="cpu", kind="cpu", model="fake", arch="", uuid="secret", num_sms=2, warp_size=32, max_threads_per_block=1024,
    max_shared_bytes=232448, l2_bytes=1 << 20, memory_bytes=1 << 34, registers_per_sm=65536,
    shared_bytes_per_sm=233472, max_threads_per_sm=2048, max_blocks_per_sm=32, toolchain="fake 1",
)  # fmt: skip
PLAN = """/* kernelwright
[tune]
X = [1, 2, 4]
[constraints]
small = "X < 4"
[[launch]]
kernel = "k"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// {words}
extern "C" __global__ void k(const float* A, const float* B, float* C, int N) {{}}
"""


def source(words: str = "ms: 1") -> str:
    """A kernel whose comment says what becomes of it: ``ms: 2.5``, ``wrong``, ``boom``, ``harness``, ``slow``."""
    return PLAN.format(words=words)


def candidate(words: str = "ms: 1", **values: int) -> Candidate:
    return Candidate(parse_template(source(words), "mine.cu"), Configuration(values or {"X": 1}))


@dataclass
class FakeBench:
    """``gate`` holds a benchmark of a ``slow`` source until it is set."""

    listing: Listing
    seed: int
    facts: DeviceFacts = FACTS
    seconds: float = 0.0
    on_killed: Callable[[], bool] = lambda: True
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    compiled: list[str] = field(default_factory=list)
    measured: list[Candidate] = field(default_factory=list)
    checked: list[Candidate] = field(default_factory=list)
    on_device: int = 0
    duels: int = 0
    library_fails: bool = False
    closed: bool = False

    async def compile(self, candidate: Candidate) -> CompileResult:
        self.compiled.append(candidate.template.source)
        if "no compile" in candidate.template.source:
            return CompileResult(candidate.id, status=Status.COMPILE_FAILED, reason="line 3: no\n\x1b[31m")
        return CompileResult(candidate.id, artifact="a", digest=candidate.id)

    async def check(self, candidate: Candidate, compiled: CompileResult) -> RunResult:
        self.checked.append(candidate)
        return (
            RunResult(Status.WRONG, "C[3] is 4")
            if "wrong" in candidate.template.source
            else RunResult(Status.MEASURED)
        )

    async def benchmark(self, candidate: Candidate, compiled: CompileResult) -> Outcome:
        text = candidate.template.source
        self.on_device += 1
        assert self.on_device == 1
        await asyncio.sleep(self.seconds)
        if "slow" in text:
            await self.gate.wait()
        self.on_device -= 1
        self.measured.append(candidate)
        if "boom" in text:
            raise RuntimeError("a bug")
        if "harness" in text:
            raise HarnessError("the driver is gone")
        if "broken problem" in text:
            raise UserError(f"{self.listing.problem.folder}/reference.py:1: not valid Python")
        if "killed" in text and self.on_killed():
            return Outcome(Status.NOT_RUN, "the device worker ended with signal 9 once more", check=KILLED)
        if "folder" in text:
            return Outcome(Status.CRASHED, "said /usr/lib/x.py:3: at 1/2/3 of /no/such/place")
        if "too fast" in text:
            return Outcome(Status.TOO_FAST, "below the floor", cases=self._timings(1e-6))
        for word, status in (("wrong", Status.WRONG), ("endless", Status.TIMED_OUT)):
            if word in text:
                return Outcome(status, "because")
        found = re.search(r"ms: ([\d.]+)", text)
        return Outcome(Status.MEASURED, cases=self._timings(float(found[1]) if found else 1.0))

    async def against_library(self, challenger: Built, rounds: int) -> DuelResult:
        self.duels += 1
        if self.duels == 1 and self.library_fails:
            return DuelResult(Status.NOT_RUN, "PyTorch with CUDA is not usable here: pip install torch")
        samples = (2.0,) * rounds
        cases = tuple(DuelCase(case, (9.0,) * rounds, samples, "events") for case in self.listing.cases)
        return DuelResult(Status.MEASURED, cases=cases, library="PyTorch 9.9")

    def _timings(self, ms: float) -> tuple[CaseTiming, ...]:
        return tuple(CaseTiming(case, (ms, 0.9 * ms, 1.2 * ms), "clock") for case in self.listing.cases)

    async def close(self) -> None:
        self.closed = True


class Benches:
    """Opens fake harnesses and keeps them for a look."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.opened: list[FakeBench] = []
        self.refuse = ""
        self.library_fails = False
        self.kills = 0
        self._seconds = seconds

    def _kill(self) -> bool:
        self.kills += 1
        return self.kills == 1

    async def open(self, listing: Listing, device: str, seed: int) -> FakeBench:
        if self.refuse:
            raise HarnessError(self.refuse)
        bench = FakeBench(listing, seed, seconds=self._seconds, library_fails=self.library_fails)
        bench.on_killed = self._kill
        self.opened.append(bench)
        return self.opened[-1]


def listing(name: str = "vector_add") -> Listing:
    return Listing.of(name, slow_cases=True)


@dataclass
class Site:
    """A board in this process."""

    service: Service
    client: httpx.AsyncClient
    benches: Benches
    data: Path
    said: list[str] = field(default_factory=list)

    def token(self, name: str, *, seeder: bool = False) -> str:
        return self.service.store.new_token(name, seeder=seeder)

    async def post(self, token: str, words: str = "ms: 1", tag: str = "t1", **more: object) -> httpx.Response:
        body = {"source": source(words), "mode": "ranked", "tag": tag, **more}
        return await self.client.post(
            "/api/boards/vector_add/submissions", json=body, headers={"Authorization": f"Bearer {token}"}
        )

    async def get(self, path: str, token: str = "", **query: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self.client.get(path, params=query, headers=headers)

    async def ended(self, submission: str) -> State:
        while not (state := self.state(submission)).ended:
            await asyncio.sleep(0.002)
        return state

    def state(self, submission: str) -> State:
        found = self.service.store.by_id(submission)
        assert found is not None
        return found.verdict.state


@contextlib.asynccontextmanager
async def site(
    data: Path,
    *names: str,
    rules: Rules | None = None,
    benches: Benches | None = None,
    device: str = "cpu",
) -> AsyncIterator[Site]:
    benches = benches or Benches()
    said: list[str] = []
    listings = [listing(name) for name in names or ("vector_add",)]
    settings = Settings(listings, [device], data, rules=rules or Rules())
    async with running(settings, said.append, benches.open) as (service, _):
        transport = httpx.ASGITransport(make_app(service, said.append))
        async with httpx.AsyncClient(transport=transport, base_url="http://board") as client:
            yield Site(service, client, benches, data, said)


def draft(user: str = "anna", words: str = "ms: 1", tag: str = "t1", **more: object) -> Draft:
    values = {"user": user, "problem": "vector_add", "device": "cpu", "mode": Mode.RANKED, "tag": tag}
    return Draft(**{**values, "source": source(words), **more})


def entry(number: int, user: str, score: float, name: str = "") -> Entry:
    return Entry(number, f"s{number}", user, name, score, 1000.0 + number)
