"""Nothing is sent twice, whatever ends in between."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from kernelwright.campaign.binaries import Binaries
from kernelwright.campaign.budget import Budget
from kernelwright.campaign.events import Silent
from kernelwright.campaign.outbox import Outbox, tag_of
from kernelwright.campaign.scene import Scene
from kernelwright.campaign.standing import Standing
from kernelwright.core.objective import Objective, ObjectiveName
from kernelwright.leaderboard.base import BoardError, Mode, RateLimited, Refused
from kernelwright.leaderboard.local import LocalBoard
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


async def test_modes_configurations_and_boards_have_tags_of_their_own() -> None:
    boards = ("kernelbot:x@H100", "kernelbot:x@A100")
    tags = {
        tag_of(each, mode, board) for each in (ONE, candidate("t", 2)) for mode in Mode for board in boards
    }
    assert len(tags) == 12
    assert all(len(tag) <= 40 and tag.replace("-", "").isalnum() for tag in tags)


async def test_what_an_earlier_campaign_sent_is_taken_over(scene: Scene) -> None:
    board = FakeBoard()
    await board.submit(ONE, Mode.TEST, tag_of(ONE, Mode.TEST, board.url))
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


@dataclass
class Stub:
    """A board in this process; ``kill`` ends the process that has just sent, before it gets its answer."""

    kill: bool = False
    posts: list[str] = field(default_factory=list)
    url: str = ""

    def get(self, path: str) -> dict[str, object] | None:
        query = parse_qs(urlsplit(path).query)
        if "/submissions" not in path:
            return {"name": "p", "device": "cpu", "ranking": "mean", "cases": []}
        tag = query["tag"][0] if "tag" in query else path.rpartition("/")[2]
        known = {"id": tag, "mode": "ranked", "state": "passed", "score_s": 0.001}
        return known if tag in self.posts else None

    def post(self, body: dict[str, object], pid: int) -> dict[str, object]:
        self.posts.append(str(body["tag"]))
        if self.kill:
            os.kill(pid, signal.SIGKILL)
        return {"id": body["tag"], "mode": "ranked", "state": "waiting"}


@pytest.fixture
def stub() -> Iterator[Stub]:
    board = Stub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(board.get(self.path))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(board.post(body, int(self.headers["Authorization"].rpartition("-")[2])))

        def reply(self, answer: dict[str, object] | None) -> None:
            content = json.dumps(answer or {"error": "no such submission"}).encode()
            with contextlib.suppress(OSError):  # whoever asked may have been killed
                self.send_response(200 if answer else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        board.url = f"http://127.0.0.1:{server.server_port}/p"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield board
        server.shutdown()
        thread.join()


SENDER = """
    import asyncio, os, signal, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[4])
    from tests.campaign.test_outbox import ONE, LocalBoard, Memory, Mode, Outbox, scene_of

    class Dies(LocalBoard):
        async def submit(self, candidate, mode, tag):
            if sys.argv[3] == "intent":
                os.kill(os.getpid(), signal.SIGKILL)
            return await super().submit(candidate, mode, tag)

    with Memory.open(Path(sys.argv[1])) as memory:
        board = Dies(sys.argv[2], f"token-{os.getpid()}")
        asyncio.run(Outbox(board, scene_of(memory)).deliver(ONE, Mode.RANKED))
"""


@pytest.mark.parametrize("moment", ["intent", "sent"])
@pytest.mark.parametrize("idempotent", [True, False])
def test_killed_around_sending_it_is_never_there_twice(
    tmp_path: Path, stub: Stub, moment: str, *, idempotent: bool
) -> None:
    """``intent``: killed after that is written and before it is sent; ``sent``: the board has it, the memory not yet."""
    stub.kill = moment == "sent"
    file, root = tmp_path / "memory.db", Path(__file__).parents[2]
    words = [sys.executable, "-c", textwrap.dedent(SENDER), f"{file}", stub.url, moment, f"{root}"]
    assert subprocess.run(words, cwd=root, check=False).returncode == -signal.SIGKILL
    stub.kill = False

    class Again(LocalBoard):
        pass

    Again.idempotent = idempotent

    async def resumed(memory: Memory) -> str:
        board = Again(stub.url, "token-0")
        try:
            outbox = Outbox(board, scene_of(memory), sleep=no_sleep)
            return (await outbox.deliver(ONE, Mode.RANKED)).state
        finally:
            await board.close()

    with Memory.open(file) as memory:
        assert [each.state for each in memory.submissions("c1")] == ["intended"]
        state = asyncio.run(resumed(memory))
    assert len(stub.posts) == (1 if moment == "sent" or idempotent else 0)
    assert state == ("passed" if stub.posts else "unclear")
