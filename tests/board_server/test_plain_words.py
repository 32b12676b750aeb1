"""Small faults of boards, each told in one line that a user understands."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from kernelwright.board_server.connections import Gate, Listener
from kernelwright.board_server.opening import open_database
from kernelwright.board_server.records import Rules
from kernelwright.board_server.running import Settings, _url, serve
from kernelwright.board_server.store import Store
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import BoardError
from kernelwright.leaderboard.local import LocalBoard
from kernelwright.problems.loader import load_problem
from tests.leaderboard.kernelbot.test_http import serving

from .support import Benches, listing, site
from .test_commands import run
from .test_server import names_in

FILES = {
    name: (load_problem("vector_add").folder / name).read_text(encoding="utf-8")
    for name in ("problem.toml", "reference.py", "baseline.cu")
}


def answer(value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def test_what_is_never_taken_is_not_promised_for_later(tmp_path: Path) -> None:
    async with site(tmp_path / "board.db", rules=Rules(0, 0)) as here:
        refused = await here.post(here.token("anna"))
        assert (refused.status_code, refused.json()) == (
            403,
            {"error": "ranked submissions are not taken here"},
        )


async def test_a_damaged_file_is_told_and_gives_no_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "board.db"
    async with site(data) as here:
        await here.ended((await here.post(here.token("anna"))).json()["id"])
    content = bytearray(data.read_bytes())
    content[4096 * 2 : 4096 * 6] = b"\xff" * (4096 * 4)
    data.write_bytes(content)
    assert await asyncio.to_thread(run, "board", "token", "anna", "--data", data) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert "board.db: " in line
    assert "--data" in line
    assert "memory" not in line
    assert "--dir" not in line


def test_a_token_that_finds_no_room_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.board_server.opening.STEPS", ("no statement at all",))
    with pytest.raises(UserError, match="--data"):
        open_database(tmp_path / "new" / "board.db", create=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_stays_where_it_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "board.db"
    Store.open(data).close()
    monkeypatch.setattr("kernelwright.board_server.opening.STEPS", ("", "", "no statement at all"))
    with pytest.raises(UserError, match="--data"):
        Store.open(data)
    assert data.exists()


async def test_no_host_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--host: is empty"):
        await serve(
            Settings([listing()], ["cpu"], tmp_path / "b.db", host="", port=0), lambda _: None, Benches().open
        )


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", socket.gethostname()), ("127.0.0.1", "127.0.0.1")])
def test_the_address_can_be_passed_on(host: str, shown: str) -> None:
    with Listener(socket.create_server((host, 0)), Gate(9, print)) as listener:
        assert _url(listener) == f"http://{shown}:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"problem.toml": FILES["problem.toml"].replace('"vector_add"', '"gemm"')}, "name: is gemm, and vector_add was asked for"),
        ({"reference.py": "x = '\0'\n"}, "reference.py"),
        ({"reference.py": "def reference(:\n"}, "reference.py"),
        ({"baseline.cu": "__global__ void k() {}\n"}, "baseline.cu"),
    ],
)  # fmt: skip
async def test_a_problem_that_cannot_be_used_is_not_fetched(
    tmp_path: Path, change: dict[str, str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(answer({**FILES, **change})) as (url, _):
        code = await asyncio.to_thread(run, "board", "fetch", f"{url}/vector_add", "-o", str(tmp_path / "p"))
    assert code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("value", "told"),
    [(None, "all of it is no list"), ({}, "all of it is no list"), ([{}], "0.rank is missing"),
     ([{"rank": 0, "user": "a", "score_s": 1}], "0.rank is too small"),
     ([{"rank": 1, "user": 3, "score_s": 1}], "0.user is no text"),
     ([{"rank": "x", "user": "a", "score_s": 1}], "0.rank is no whole number")],
)  # fmt: skip
async def test_an_answer_that_makes_no_sense_is_told_in_words(value: object, told: str) -> None:
    async with serving(answer(value)) as (url, _):
        board = LocalBoard(f"{url}/gemm")
        with pytest.raises(BoardError, match=f"the answer makes no sense: {told}$"):
            await board.ranks()
        await board.close()


@pytest.mark.parametrize("value", [None, {}])
async def test_a_catalogue_that_is_none_is_no_missing_board(
    value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(answer(value)) as (url, _):
        words = ("board", "import", "kernelbot:x", "--server", url, "-o", str(tmp_path / "p"))
        assert await asyncio.to_thread(run, *words) == 2
    assert "makes no sense: all of it is no list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "told"),
    [("http://127.0.0.1:1", "nobody listens there"), ("http://no-such-host.invalid", "there is no host of that name")],
)  # fmt: skip
async def test_why_a_board_cannot_be_asked(url: str, told: str) -> None:
    board = LocalBoard(f"{url}/gemm")
    with pytest.raises(BoardError, match=rf"cannot be asked \({told}\): is the server running"):
        await board.ranks()
    await board.close()


async def test_a_board_that_hangs_up_is_told() -> None:
    async with serving(b"rubbish\r\n\r\n") as (url, _):
        board = LocalBoard(f"{url}/gemm")
        with pytest.raises(BoardError, match=r"it closed the connection, or what it says is no HTTP"):
            await board.ranks()
        await board.close()
