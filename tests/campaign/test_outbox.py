"""Nothing is sent twice, whatever ends in between."""

import asyncio
import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.campaign.binaries import Binaries
from kernelwright.campaign.budget import Budget
from kernelwright.campaign.events import Silent
from kernelwright.campaign.outbox import Outbox, tag_of
from kernelwright.campaign.scene import Scene
from kernelwright.campaign.standing import Standing
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.leaderboard.base import BoardError, Mode, RateLimited, Refused
from kernelwright.memory.records import CampaignRecord, ProblemRecord
from kernelwright.memory.store import Memory

from .boards import FakeBoard, IdempotentBoard, died, no_sleep
from .fakes import FakeHarness, candidate

ONE = candidate("t", 1)


def scene_of(memory: Memory) -> Scene:
    if not memory.campaigns():
        record = CampaignRecord("c1", "p1", "{}", "{}", "mean", 0.0)
        memory.start_campaign(record, ProblemRecord("p1", "p", "", "", ""))
    harness = FakeHarness({})
    standing = Standing(Objective(ObjectiveName.MEAN))
    return Scene(
        "c1", harness, memory, standing, Budget(60.0), Silent(), Binaries(harness), {ONE.id: ONE}
    )  # fmt: skip


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Memory.open(tmp_path / "memory.db") as memory:
        yield scene_of(memory)


def outbox(scene: Scene, board: FakeBoard) -> Outbox:
    """As after a restart: what is known comes from the memory."""
    return Outbox(board, scene, sleep=no_sleep)


async def test_it_is_sent_once_and_followed_to_its_end(scene: Scene) -> None:
    board = FakeBoard()
    for _ in range(2):
        record = await outbox(scene, board).deliver(ONE, Mode.RANKED)
        assert (record.state, record.score_s, record.submission) == ("passed", 1e-3, "1")
    assert json.loads(record.cases)[0]["case"] == {"n": 1, "seed": 7}
    assert board.sent == [("t [X=1]", Mode.RANKED)]


async def test_modes_and_configurations_have_tags_of_their_own() -> None:
    tags = {tag_of(each, mode) for each in (ONE, candidate("t", 2)) for mode in Mode}
    assert len(tags) == 6
    assert all(len(tag) <= 40 and tag.replace("-", "").isalnum() for tag in tags)


async def test_what_an_earlier_campaign_sent_is_taken_over(scene: Scene) -> None:
    board = FakeBoard()
    await board.submit(ONE, Mode.TEST, tag_of(ONE, Mode.TEST))
    record = await outbox(scene, board).deliver(ONE, Mode.TEST)
    assert record.state == "passed"
    assert len(board.sent) == 1


@pytest.mark.parametrize("board", [FakeBoard(), IdempotentBoard()])
async def test_an_answer_that_got_lost_is_found(scene: Scene, board: FakeBoard) -> None:
    board.faults, board.lost = [died()], 1
    record = await outbox(scene, board).deliver(ONE, Mode.RANKED)
    assert record.state == "passed"
    assert len(board.sent) == 1


async def test_a_request_that_died_is_sent_again_only_where_a_tag_is_taken_once(scene: Scene) -> None:
    plain = FakeBoard(faults=[died(), None])
    record = await outbox(scene, plain).deliver(ONE, Mode.TEST)
    assert record.state == "unclear"
    assert "it is not sent again" in record.reason
    assert plain.sent == []
    assert (await outbox(scene, FakeBoard()).deliver(ONE, Mode.TEST)).state == "unclear"

    once = IdempotentBoard(faults=[died(), died(), None])
    assert (await outbox(scene, once).deliver(ONE, Mode.RANKED)).state == "passed"
    assert len(once.sent) == 1


async def test_a_quota_postpones_and_a_no_is_final(scene: Scene) -> None:
    board = FakeBoard(faults=[RateLimited("6/2 an hour", 5.0), None, Refused("the deadline has passed")])
    with pytest.raises(RateLimited):
        await outbox(scene, board).deliver(ONE, Mode.TEST)
    assert [each.state for each in scene.memory.submissions("c1")] == ["postponed"]
    assert (await outbox(scene, board).deliver(ONE, Mode.TEST)).state == "passed"
    refused = await outbox(scene, board).deliver(ONE, Mode.RANKED)
    assert (refused.state, refused.reason) == ("refused", "the deadline has passed")
    assert (await outbox(scene, board).deliver(ONE, Mode.RANKED)).state == "refused"
    assert len(board.sent) == 1


async def test_a_board_that_never_answers_is_given_up_for_now(scene: Scene) -> None:
    class Silence(FakeBoard):
        async def result(self, sent: object) -> object:  # type: ignore[override]
            raise died()

    board = Silence()
    with pytest.raises(BoardError, match="closed"):
        await outbox(scene, board).deliver(ONE, Mode.TEST)
    recovered = FakeBoard(taken=board.taken)
    assert (await outbox(scene, recovered).deliver(ONE, Mode.TEST)).state == "passed"
    assert recovered.sent == []


KILLED = """
    import asyncio, os, signal, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[3])
    from tests.campaign.boards import FakeBoard
    from tests.campaign.test_outbox import ONE, Mode, Outbox, scene_of
    from kernelwright.memory.store import Memory

    class Dies(FakeBoard):
        async def submit(self, candidate, mode, tag):
            if sys.argv[2] == "after":
                await super().submit(candidate, mode, tag)
                Path(sys.argv[1] + ".taken").write_text(tag)
            os.kill(os.getpid(), signal.SIGKILL)

    with Memory.open(Path(sys.argv[1])) as memory:
        asyncio.run(Outbox(Dies(), scene_of(memory)).deliver(ONE, Mode.RANKED))
"""


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", [FakeBoard, IdempotentBoard])
def test_killed_around_sending_it_is_never_there_twice(
    tmp_path: Path, moment: str, kind: type[FakeBoard]
) -> None:
    """``before``: the kill came between the intent and the board; ``after``: the board has it, the memory not yet."""
    file = tmp_path / "memory.db"
    root = Path(__file__).parents[2]
    words = [sys.executable, "-c", textwrap.dedent(KILLED), f"{file}", moment, f"{root}"]
    done = subprocess.run(words, cwd=root, check=False)
    assert done.returncode == -signal.SIGKILL
    board = kind()
    if moment == "after":
        asyncio.run(board.submit(ONE, Mode.RANKED, Path(f"{file}.taken").read_text(encoding="utf-8")))
    with Memory.open(file) as memory:
        assert [each.state for each in memory.submissions("c1")] == ["intended"]
        record = asyncio.run(outbox(scene_of(memory), board).deliver(ONE, Mode.RANKED))
    assert len(board.sent) == (0 if moment == "before" and kind is FakeBoard else 1)
    assert record.state == ("passed" if board.sent else "unclear")
