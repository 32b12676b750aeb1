"""The climb: a board with 57 entries, a campaign that begins at its bottom and submits as it goes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from kernelwright.board_server.app import make_app
from kernelwright.campaign.attaching import Attached
from kernelwright.campaign.budget import Budget
from kernelwright.campaign.campaign import Campaign
from kernelwright.campaign.settings import Settings
from kernelwright.core.candidate import Candidate
from kernelwright.core.outcome import Outcome, Status
from kernelwright.core.screen import Screen
from kernelwright.devices.base import DuelResult
from kernelwright.harness.protocol import Built, CompileResult
from kernelwright.leaderboard.base import Mode
from kernelwright.leaderboard.local import LocalBoard
from kernelwright.memory.records import CampaignRecord, ProblemRecord
from kernelwright.memory.store import Memory
from kernelwright.problems.loader import load_problem
from kernelwright.report import as_html, build_report

from ..board_server.support import Site, candidate, site
from .fakes import DEVICE, FakeHarness, key, template
from .test_campaign import Proposals
from .test_submitting import Heard

PROBLEM = load_problem("vector_add")
CASES = PROBLEM.cases(slow=True)
OTHERS_MS = [0.05 * n for n in range(1, 58)]
STEPS_MS = [1.9, 1.4, 0.9, 0.42, 0.12]
STEPS = [template(f"step{n}", values=1, extra=f" ms: {ms}") for n, ms in enumerate(STEPS_MS, 1)]


@dataclass
class Table(FakeHarness):
    """All cases of the problem, as the board's harness has them."""

    async def benchmark(
        self, candidate: Candidate, compiled: CompileResult, screen: Screen | None = None
    ) -> Outcome:
        outcome = await super().benchmark(candidate, compiled, screen)
        return replace(outcome, cases=tuple(replace(outcome.cases[0], case=case.id) for case in CASES))

    async def duel(
        self, challenger: Built, incumbent: Built, rounds: int, cases: Collection[str] | None = None
    ) -> DuelResult:
        result = await super().duel(challenger, incumbent, rounds, cases)
        return replace(result, cases=tuple(replace(result.cases[0], case=case.id) for case in CASES))


@contextlib.asynccontextmanager
async def filled(folder: Path) -> AsyncIterator[tuple[Site, LocalBoard]]:
    """57 entries of others, measured by the board."""
    async with site(folder / "board.db") as here:
        seeder, us = here.token("seeder", seeder=True), here.token("us")
        app = make_app(here.service, here.said.append)

        def board(token: str) -> LocalBoard:
            client = httpx.AsyncClient(transport=httpx.ASGITransport(app))
            return LocalBoard("http://board/vector_add", token, client=client)

        others, ours = board(seeder), board(us)
        for ms in OTHERS_MS:
            each = candidate(f"ms: {ms:.2f}")
            await here.ended(
                (await others.send(each, Mode.RANKED, each.id, f"e{round(100 * ms)}")).submission
            )
        assert len(await ours.ranks()) == 57
        yield here, ours
        await others.close()
        await ours.close()


async def climb(memory: Memory, board: LocalBoard, goal: str) -> Campaign:
    settings = Settings(
        problem="vector_add", device="cpu", young_budget=1, goal=goal, board=board.url, slow_cases=True,
        objective="mean",
    )  # fmt: skip
    record = CampaignRecord("c1", PROBLEM.id, settings.model_dump_json(), DEVICE, "mean", 0.0)
    memory.start_campaign(record, ProblemRecord(PROBLEM.id, PROBLEM.name, "", "", ""))
    times: dict[tuple[str, int], float | Status] = {
        (step.name, 1): ms for step, ms in zip(STEPS, STEPS_MS, strict=True)
    }
    attached = Attached(
        board, await board.info(), {case.id: case.sizes for case in CASES}, submit=True, max_submissions=20
    )
    baseline = PROBLEM.baseline_source + "// ms: 2.6\n"
    problem = replace(PROBLEM, baseline_source=baseline)
    harness = Table({**times, ("baseline", 0): 2.6}, device_seconds=0.05)
    return Campaign(
        id="c1", settings=settings, problem=problem, harness=harness, memory=memory,
        proposer=Proposals(*STEPS), listener=Heard(), budget=Budget(60.0), board=attached,
    )  # fmt: skip


async def briefly(seconds: float) -> None:
    await asyncio.sleep(seconds / 50)


async def test_a_campaign_climbs_from_the_bottom_until_its_goal(tmp_path: Path) -> None:
    async with filled(tmp_path) as (here, board):
        with Memory.open(tmp_path / "memory.db") as memory:
            campaign = await climb(memory, board, "rank<=4")
            assert campaign.submitting is not None
            campaign.submitting.outbox.sleep = briefly
            result = await campaign.run()
            assert result.goal_reached
            assert result.state == "finished"
            ranks = [place.rank for place in memory.places("c1") if place.rank is not None]
            assert ranks[0] > 50
            assert ranks[-1] == 3
            assert ranks == sorted(ranks, reverse=True)
            report = build_report(memory, memory.campaign("c1"))
            assert report.milestones[0].rank == ranks[0]
            assert report.milestones[-1].rank == 3
            assert "Rank over time" in as_html(report)
        sent = here.service.store
        mine = [row for row in sent.entries("vector_add", "cpu") if row.user == "us"]
        assert len({row.submission for row in mine}) == len(mine)
    heard = campaign.listener
    assert isinstance(heard, Heard)
    assert heard.has("official and local times agree")
    assert key(campaign.candidates[result.incumbent.id]) == ("step5", 1)
