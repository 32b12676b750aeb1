"""The client of a board of one's own, against the server's own application and against strangers."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelwright.board_server.records import Rules
from kernelwright.cli.main import main
from kernelwright.core.errors import UserError
from kernelwright.leaderboard import local
from kernelwright.leaderboard.base import (
    BoardError,
    Mode,
    Ranking,
    RateLimited,
    Refused,
    Sent,
    State,
    Unauthorized,
)
from kernelwright.leaderboard.local import MAX_ANSWER_BYTES, LocalBoard
from kernelwright.leaderboard.tokens import find_token
from tests.board_server.support import Site, candidate, site

from .board_conformance import BoardConformance, Subject
from .kernelbot.test_http import serving

URL = "http://board/vector_add"
TOKEN = "kwb_0123456789ab_sEcReT-sEcReT-sEcReT"


def client_of(here: Site) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=here.client._transport)


def answering(status: int, content: bytes | Any, **headers: str) -> LocalBoard:
    """A board whose every answer is this one."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    transport = httpx.MockTransport(
        lambda _: httpx.Response(status, stream=httpx.ByteStream(body), headers=headers)
    )
    return LocalBoard(URL, TOKEN, client=httpx.AsyncClient(transport=transport))


class TestLocalBoard(BoardConformance):
    @pytest_asyncio.fixture
    async def subject(self, tmp_path: Path) -> AsyncIterator[Subject]:
        async with site(tmp_path / "board.db") as here:
            crowd = LocalBoard(URL, here.token("crowd", seeder=True), client=client_of(here))
            for n in range(3):
                sent = await crowd.send(candidate(f"ms: {n + 2}"), Mode.RANKED, f"t{n}", f"e{n}")
                await here.ended(sent.submission)
            board = LocalBoard(URL, here.token("anna"), client=client_of(here))
            yield Subject(board, candidate(X=2))


async def test_what_the_board_says_is_what_the_server_has(tmp_path: Path) -> None:
    async with site(tmp_path / "board.db", rules=Rules(5, 7, 4e9)) as here:
        board = LocalBoard(f"{URL}@cpu", here.token("anna"), client=client_of(here))
        info = await board.info()
        assert (info.device, info.devices, info.ranking, info.deadline) == (
            "cpu",
            ("cpu",),
            Ranking.SEED,
            4e9,
        )
        assert (info.limits.test_per_hour, info.limits.ranked_per_hour) == (5, 7)
        assert list(info.cases) == [{"N": 65536}, {"N": 100003}, {"N": 1048576}]
        assert (await board.facts()).num_sms == 2
        assert "extern" in (await board.files())["baseline.cu"]
        result = await board.ended(await board.submit(candidate("wrong"), Mode.RANKED, "t"))
        assert (result.state, result.reason) == (State.FAILED, "wrong: because")


async def test_refusals_have_their_types(tmp_path: Path) -> None:
    async with site(tmp_path / "board.db", rules=Rules(ranked_per_hour=1)) as here:
        token = here.token("anna")
        nobody, anna = LocalBoard(URL, client=client_of(here)), LocalBoard(URL, token, client=client_of(here))
        with pytest.raises(Unauthorized, match="KERNELWRIGHT_BOARD_TOKEN"):
            await nobody.submit(candidate(), Mode.TEST, "t")
        sent = await anna.submit(candidate(), Mode.RANKED, "t")
        with pytest.raises(RateLimited) as limited:
            await anna.submit(candidate(), Mode.RANKED, "t2")
        assert limited.value.retry_s is not None
        assert 3500 < limited.value.retry_s <= 3600
        with pytest.raises(Refused, match="another source"):
            await anna.submit(candidate("ms: 9"), Mode.RANKED, "t")
        for url in ("http://board/gemm", f"{URL}@tpu"):
            with pytest.raises(Refused, match="there is no"):
                await LocalBoard(url, token, client=client_of(here)).find("t", Mode.RANKED)
        await here.ended(sent.submission)
        assert [(place.user, place.mine) for place in await nobody.ranks()] == [("anna", False)]
        assert await anna.find("t", Mode.RANKED) == sent


async def test_an_unreachable_board_is_one_line() -> None:
    board = LocalBoard("http://127.0.0.1:1/vector_add", TOKEN)
    with pytest.raises(
        BoardError, match=r"cannot be asked .*: is the server running, and the address"
    ) as failed:
        await board.info()
    await board.close()
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (200, b"<html>", BoardError), (200, b"", BoardError), (200, [], BoardError), (200, {"id": "a"}, BoardError),
        (200, {"id": "a\nb", "mode": "test", "state": "passed"}, BoardError),
        (200, {"id": "a", "mode": "test", "state": "won"}, BoardError),
        (200, {"id": "a", "mode": "test", "state": "passed", "score_s": -1}, BoardError),
        (200, b" " * (MAX_ANSWER_BYTES + 1), BoardError), (200, b"[" * 100_000, BoardError),
        (302, b"", BoardError), (500, {"error": "x"}, BoardError), (403, {"error": "no"}, Refused),
        (401, b"\xff", Unauthorized), (429, {"error": "slow"}, RateLimited),
    ],
)  # fmt: skip
async def test_an_odd_answer_is_a_board_error(status: int, content: Any, error: type[BoardError]) -> None:
    with pytest.raises(error) as failed:
        await answering(status, content).result(Sent("s1", Mode.TEST, "t"))
    assert "\n" not in str(failed.value)
    assert len(str(failed.value)) < 400


async def test_whether_the_board_takes_the_token_is_asked_for(tmp_path: Path) -> None:
    async with site(tmp_path / "board.db") as here:
        await LocalBoard(URL, here.token("anna"), client=client_of(here)).authorize()
        with pytest.raises(Unauthorized, match="401"):
            await LocalBoard(URL, TOKEN, client=client_of(here)).authorize()
    with pytest.raises(Unauthorized, match="a token is needed"):
        await LocalBoard(URL, client=client_of(here)).authorize()


class Drip(httpx.AsyncByteStream):
    """Never silent for long, and never at an end."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("question_s", "call_s"), [(0.05, 9.0), (9.0, 0.05)])
async def test_a_board_that_drips_is_not_waited_for(
    question_s: float, call_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "QUESTION_S", question_s)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Drip()))
    board = LocalBoard(URL, TOKEN, client=httpx.AsyncClient(transport=transport), call_s=call_s)
    with pytest.raises(BoardError, match=r"ranks: no answer within 0\.05 s"):
        await board.ranks()
    await board.close()


async def test_a_refusal_without_a_reason_says_so() -> None:
    with pytest.raises(Refused, match="the board says 403: no reason"):
        await answering(403, {"error": ""}).info()


@pytest.mark.parametrize(("retry", "seconds"), [("17", 17.0), ("", None), ("-1", None), ("9" * 20, None)])
async def test_when_to_ask_again(retry: str, seconds: float | None) -> None:
    with pytest.raises(RateLimited) as limited:
        await answering(429, {"error": "slow"}, **{"Retry-After": retry}).info()
    assert limited.value.retry_s == seconds


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(TOKEN),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.sampled_from(
        ["id", "mode", "state", "reason", "score_s", "cases", "error", "rank", "user", "name", "device", "ranking"]
    ), inner, max_size=6),
    max_leaves=12,
)  # fmt: skip
HALF_RIGHT = st.fixed_dictionaries(
    {"id": st.just("s1"), "mode": st.just("test"), "state": st.just("failed"), "reason": JSON}
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(answer=JSON | HALF_RIGHT, status=st.sampled_from([200, 201, 302, 400, 401, 404, 429, 500]))
async def test_no_answer_breaks_the_client_or_brings_the_token_out(answer: Any, status: int) -> None:
    board = answering(status, json.dumps(answer).encode())
    sent = Sent("s1", Mode.TEST, "t")
    for ask in (
        board.info, board.ranks, lambda: board.result(sent), lambda: board.find("t", Mode.TEST), board.files, board.facts,
        lambda: board.submit(candidate(), Mode.TEST, "t"),
    ):  # fmt: skip
        try:
            shown = repr(await ask())
        except BoardError as error:
            shown = str(error)
            assert "\n" not in shown
        assert TOKEN not in shown


@pytest.mark.parametrize(
    "echo",
    [
        {"id": TOKEN, "mode": "test", "state": "passed"},
        {"id": "s1", "mode": "test", "state": "passed", "cases": [{"case": {TOKEN: "x"}, "mean_s": 1}]},
        {"id": "s1", "mode": "test", "state": "passed", "cases": [{"case": {TOKEN: 1}, "mean_s": 1}]},
        {"id": "s1", "mode": "test", "state": "failed", "reason": TOKEN.upper()},
    ],
)
async def test_an_echo_of_the_token_is_kept_nowhere(echo: Any) -> None:
    try:
        shown = repr(await answering(200, echo).result(Sent("s1", Mode.TEST, "t")))
    except BoardError as error:
        shown = f"{error} {error.__context__}"
    assert TOKEN.lower() not in shown.lower()


async def test_a_packed_answer_is_not_unpacked() -> None:
    packed = gzip.compress(b'{"error": "' + b"x" * 10**6 + b'"}')
    with pytest.raises(BoardError, match="packed"):
        await answering(200, packed, **{"Content-Encoding": "gzip"}).info()


def test_the_token_is_in_no_text_of_the_board() -> None:
    board = LocalBoard(URL, TOKEN)
    assert TOKEN not in f"{board!r} {board} {vars(board)}"


@pytest.mark.parametrize(
    "url",
    ["", "gemm", "ftp://h/gemm", "http://h", "http://h/", "http:///gemm", "http://h/Gemm", "http://h:x/gemm",
     "http://h/gemm?x", "http://h/a b", "http://h/gemm\n", "http://h:/gemm",
     "http://a b/gemm", "http://b%00/gemm", "http://*/gemm", "http://b\u00fccher/gemm", "h:8000/gemm", "http://[x]/gemm", "http://me:secret@h/gemm", "http://:secret@h:x/gemm", "http://@h/gemm", "http://[::1/gemm"],
)  # fmt: skip
def test_a_url_that_names_no_board(url: str) -> None:
    with pytest.raises(UserError) as failed:
        LocalBoard(url)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    "server", ["http://[::1]:8", "http://[fe80::1%eth0]", "https://xn--bcher-kva.example", "http://h_1.a-b"]
)
def test_servers_have_names_and_addresses(server: str) -> None:
    board = LocalBoard(f"{server}/gemm///")
    assert (board._base, board.problem) == (server, "gemm")


async def test_a_name_that_looks_encoded_and_is_not_is_one_line() -> None:
    board = LocalBoard("http://xn--/gemm", TOKEN)
    with pytest.raises(BoardError, match="cannot be asked"):
        await board.info()
    await board.close()


def test_a_url_may_name_a_device_and_lie_behind_a_path() -> None:
    board = LocalBoard("https://h.example:8/boards/gemm@cuda:0")
    assert (board._base, board.problem, board._device) == ("https://h.example:8/boards", "gemm", "cuda:0")


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / ".config" / "kernelwright" / "board-token"
    file.parent.mkdir(parents=True)
    file.touch(0o600)
    return file


def test_a_files_token_goes_to_the_server_before_it_only(tmp_path: Path, token_file: Path) -> None:
    assert find_token(URL, {}, tmp_path) is None
    token_file.write_text(f"# mine\nhttp://a:8000 {TOKEN}\n\n https://b.example/class  token-of-b\n")
    for url in ("http://a:8000/gemm", "http://A:8000/p/softmax@cuda:1"):
        assert find_token(url, {}, tmp_path) == TOKEN
    assert find_token("https://b.example:443/gemm", {}, tmp_path) == "token-of-b"
    for url in (
        "http://a:8001/gemm",
        "https://a:8000/gemm",
        "http://a/gemm",
        "http://a:8000@c/gemm",
        "http://c/gemm",
        "gemm",
    ):
        assert find_token(url, {}, tmp_path) is None
    assert (
        find_token("http://c/gemm", {"KERNELWRIGHT_BOARD_TOKEN": "another-token"}, tmp_path)
        == "another-token"
    )


@pytest.mark.parametrize(
    "content",
    [b"a-bare-secret-token\n", b"http://a a secret of several words", b"ftp://a secret-token", b"http://u:secret@a secret-token",
     b"http://a:x secret-token", b"http://a", b"\xff\xfe"],
)  # fmt: skip
def test_a_file_of_anything_else_is_one_line_without_the_token(
    content: bytes, tmp_path: Path, token_file: Path
) -> None:
    token_file.write_bytes(content)
    with pytest.raises(UserError, match=r"board-token:.* 'http://HOST:PORT TOKEN'") as failed:
        find_token("http://a/gemm", {}, tmp_path)
    assert "secret" not in str(failed.value)


def test_an_environment_that_holds_no_token_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="KERNELWRIGHT_BOARD_TOKEN: is no token") as failed:
        find_token(URL, {"KERNELWRIGHT_BOARD_TOKEN": "a secret"}, tmp_path)
    assert "secret" not in str(failed.value)


async def test_fetching_a_problem_sends_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_BOARD_TOKEN", TOKEN)
    files = {"problem.toml": "", "reference.py": "", "baseline.cu": "", "../evil": "x"}
    body = json.dumps(files).encode()
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    async with serving(answer) as (url, asked):
        fetched = ["board", "fetch", f"{url}/gemm", "-o", str(tmp_path / "a" / "p")]
        with pytest.raises(SystemExit) as ended:
            await asyncio.to_thread(main, fetched)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert f"{url}/gemm: its problem cannot be used: problem.toml: " in told
    assert str(tmp_path) not in told
    assert asked
    assert TOKEN.encode() not in b"".join(asked)
    assert await asyncio.to_thread(lambda: list(tmp_path.rglob("*"))) == [tmp_path / "a"]
