"""The Board protocol against a server of GPU MODE's protocol that keeps what it is sent."""

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import Board, Mode, Ranking, Refused, Unauthorized
from kernelwright.leaderboard.kernelbot.board import PAGE, KernelbotBoard
from kernelwright.leaderboard.kernelbot.client import Client, Limits
from kernelwright.leaderboard.kernelbot.facts import MAX_BYTES
from kernelwright.leaderboard.secret import Secret
from kernelwright.problems.loader import load_problem
from tests.leaderboard.board_conformance import BoardConformance, Subject
from tests.leaderboard.kernelbot.stub import GPUS, NAME, Entry, Stub, stubbed

_, SOURCE = load_problem("vector_add").catalogue()[0]
CANDIDATE = Candidate(parse_template(SOURCE), Configuration())


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Stub]]:
    with stubbed() as started:
        yield started


@pytest.fixture
def stub(server: tuple[str, Stub]) -> Stub:
    _, stub = server
    stub.entries.clear()
    stub.codes.clear()
    return stub


def open_board(url: str, cli_id: str | None = "cli-alice", gpu: str = "H100") -> KernelbotBoard:
    secret = Secret(cli_id) if cli_id else None
    client = Client(url, secret, limits=Limits(interval_s=0.0, tries=1))
    return KernelbotBoard(url, NAME, gpu, secret, lambda c: f"# {c.id}\n", client=client)


@pytest_asyncio.fixture
async def board(server: tuple[str, Stub], stub: Stub) -> AsyncIterator[KernelbotBoard]:
    opened = open_board(server[0])
    yield opened
    await opened.close()


class TestKernelbot(BoardConformance):
    @pytest.fixture
    def subject(self, board: KernelbotBoard) -> Subject:
        checked: Board = board
        return Subject(checked, CANDIDATE, poll_s=0.0)


async def test_what_is_sent_is_what_was_written(board: KernelbotBoard, stub: Stub) -> None:
    sent = await board.submit(CANDIDATE, Mode.RANKED, "first-1")
    assert sent.submission == "1"
    (entry,) = stub.entries
    assert (entry.name, entry.gpu, entry.mode, entry.user) == ("first-1.py", "H100", "leaderboard", "999")
    assert stub.codes == [f"# {CANDIDATE.id}\n".encode()]


async def test_too_large_or_without_a_credential_is_not_sent(server: tuple[str, Stub], stub: Stub) -> None:
    anonymous = open_board(server[0], cli_id=None)
    with pytest.raises(Unauthorized, match="popcorn register"):
        await anonymous.submit(CANDIDATE, Mode.TEST, "t")
    await anonymous.close()
    large = KernelbotBoard(server[0], NAME, "H100", Secret("cli-alice"), lambda _: "é" * (MAX_BYTES // 2 + 1))
    with pytest.raises(Refused, match="1000002 bytes"):
        await large.submit(CANDIDATE, Mode.TEST, "t")
    await large.close()
    assert stub.codes == []


async def test_whether_the_server_takes_the_credential_is_asked_for(server: tuple[str, Stub]) -> None:
    for cli_id, said in (("cli-alice", ""), ("cli-nobody", "the board says"), (None, "popcorn register")):
        board = open_board(server[0], cli_id)
        with pytest.raises(Unauthorized, match=said) if said else contextlib.nullcontext():
            await board.authorize()
        await board.close()


async def test_found_far_behind_and_never_on_another_gpu_or_of_another_user(
    server: tuple[str, Stub], board: KernelbotBoard, stub: Stub
) -> None:
    stub.entries.append(Entry(1, "999", "lost.py", "H100", "test"))
    stub.entries += [Entry(i, "999", f"t{i}.py", "H100", "test") for i in range(2, PAGE + 2)]
    found = await board.find("lost", Mode.TEST)
    assert found is not None
    assert found.submission == "1"
    stub.entries[0] = Entry(1, "999", "lost.py", "A100", "leaderboard", looked=9)
    assert await board.find("lost", Mode.RANKED) is None
    other = open_board(server[0], "cli-robert")
    assert await other.find("t2", Mode.TEST) is None
    assert not any(place.mine for place in await other.ranks())
    await other.close()


async def test_the_newest_of_equal_names_is_found(board: KernelbotBoard, stub: Stub) -> None:
    stub.entries += [Entry(i, "999", "twice.py", "H100", "test") for i in (1, 2)]
    found = await board.find("twice", Mode.TEST)
    assert found is not None
    assert found.submission == "2"


async def test_names_are_shown_without_control_characters(board: KernelbotBoard, stub: Stub) -> None:
    places = await board.ranks()
    assert [(place.user, place.score_s) for place in places] == [("eve [2J", 3e-6), ("user 18", 9e-6)]


async def test_cases_come_in_the_boards_order_with_its_ranking(board: KernelbotBoard, stub: Stub) -> None:
    info = await board.info()
    assert (info.ranking, info.devices) == (Ranking.GEOMEAN, tuple(GPUS))
    assert [case["size"] for case in info.cases] == [1024, 4096]
    assert info.rules == {"banned_words": ("stream",), "portable": True}


@pytest.mark.parametrize(
    ("name", "gpu"), [("..", "H100"), ("a/b", "H100"), ("a", "H 100"), ("", "H100"), ("a", "x\n")]
)
def test_names_that_could_lead_elsewhere_are_refused(name: str, gpu: str) -> None:
    with pytest.raises(UserError, match="use letters"):
        KernelbotBoard("http://localhost:1", name, gpu, None, lambda _: "")
