"""Every recorded exchange with the real server, over HTTP and through the adapter."""

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from kernelwright.leaderboard.base import BoardError, Mode, RateLimited, Refused, Sent, State, Unauthorized
from kernelwright.leaderboard.kernelbot.answers import (
    Accepted,
    Leaderboard,
    Listed,
    RankRow,
    Streamed,
    Submission,
)
from kernelwright.leaderboard.kernelbot.board import KernelbotBoard
from kernelwright.leaderboard.kernelbot.client import Client, Limits, Pace
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.wire import Unavailable
from tests.leaderboard.kernelbot.recorded import SEED, Exchange, Player, exchanges, play

EXCHANGES = exchanges()
FAST = Limits(interval_s=0.0, tries=1)
CODE = b"def custom_kernel(data): ..."

# By title; an error's type has to be exact. What is not here is a success.
ERRORS: dict[str, tuple[type[BoardError], str]] = {
    "auth init bad provider": (Refused, "Invalid provider"),
    "gpus unknown lb": (Refused, "`nope` does not exist"),
    "submit no auth": (Unauthorized, "popcorn register"),
    "submit bad auth": (Unauthorized, "popcorn register"),
    "submit pending auth": (Unauthorized, "popcorn register"),
    "submit bad mode": (Refused, "Invalid submission mode value: 'foo'"),
    "submit private mode": (Refused, "is not supported for this endpoint"),
    "submit bad gpu": (Refused, "Supported GPUs: A100, H100"),
    "submit unknown lb": (Refused, "`nope` does not exist"),
    "submit upper-case lb": (Refused, "`Grayscale-dev` does not exist"),
    "submit empty": (Refused, "Empty file"),
    "submit stream word": (Refused, "work on another stream"),
    "submit bad ext": (Refused, "Please provide a Python"),
    "submit too large": (Refused, "too large (limit: 1MB)"),
    "submit not utf8": (Refused, "UTF-8"),
    "submit directive mismatch": (Refused, "doesn't match"),
    "submit missing file field": (Refused, "Field required"),
    "other user's submission": (Refused, "Not authorized to view"),
    "unknown submission": (Refused, "not found"),
    "ranking bad gpu": (Refused, "Invalid GPU type 'B200'"),
    "my submissions bad limit": (Refused, "limit must be between 1 and 100"),
    "SSE submit profile": (Unavailable, "'NoneType' object has no attribute 'trace'"),
    "SSE submit leaderboard": (Unavailable, "ended without a result"),  # its record is cut off
    "SSE bad ext": (Refused, "Please provide a Python"),
    "rate limited async": (RateLimited, "6/2 test submissions per hour"),
    "rate limited SSE": (RateLimited, "6/2 test submissions per hour"),
    "not accepting async": (RateLimited, "not accepting"),
    "admin no token": (Unauthorized, "Missing Authorization header"),
    "closed gpus without auth": (Unauthorized, "Authentication required"),
    "closed submit": (Refused, "do not have access"),
    "join again": (Refused, "already been claimed"),
    "delete not mine": (Refused, "Not authorized to delete"),
    "banned submit": (Refused, "banned"),
    "SSE no auth": (Unauthorized, "popcorn register"),
    "SSE bad auth": (Unauthorized, "popcorn register"),
    "SSE stream word": (Refused, "work on another stream"),
    "SSE unknown lb": (Refused, "`nope` does not exist"),
    "SSE too large": (Refused, "too large"),
    "SSE bad mode": (Refused, "'foo'"),
    "SSE bad gpu": (Refused, "Supported GPUs: A100, H100"),
}
WAITS = {"rate limited async": 3576.0, "rate limited SSE": 3575.0, "not accepting async": None}
STATES = {
    "poll early test": State.RUNNING,
    "poll final test": State.PASSED,
    "poll early benchmark": State.RUNNING,
    "poll final benchmark": State.PASSED,
    "poll early leaderboard": State.RUNNING,
    "poll final leaderboard": State.PASSED,
    "poll final failing": State.FAILED,
    "poll final runner failure": State.FAILED,  # the server says "succeeded", without a run
}


@pytest.fixture(scope="module")
def played() -> Iterator[tuple[str, Player]]:
    with play() as started:
        yield started


async def ask(client: Client, exchange: Exchange) -> Any:
    """The adapter's own call for the request; what it has no call for goes through its reader alone."""
    path = urlsplit(exchange.path).path
    query: dict[str, Any] = dict(parse_qsl(urlsplit(exchange.path).query))
    numbers = {key: int(value) for key, value in query.items() if value.isdecimal()}
    match [exchange.method, *path.strip("/").split("/")]:
        case ["GET", "leaderboards"]:
            return await client.leaderboards()
        case ["GET", "gpus", name]:
            return await client.gpus(name)
        case ["GET", "submissions", name, gpu]:
            return await client.ranking(name, gpu, **numbers)
        case ["GET", "user", "submissions"]:
            return await client.own(query.get("leaderboard"), **numbers)
        case ["GET", "user", "submissions", number]:
            return await client.submission(number)
        case ["POST", "submission", name, gpu, mode] if exchange.has_file:
            return await client.submit(name, gpu, mode, "submission.py", CODE)
        case ["POST", name, gpu, mode] if name not in {"admin", "submission"}:
            return await client.submit_streaming(name, gpu, mode, "submission.py", CODE)
        case _:
            return await client._ask(exchange.method, path, params=query or None)


async def replay(exchange: Exchange, url: str) -> Any:
    # Nothing is encrypted here, and reading the system's certificates would take most of the time.
    plain = httpx.AsyncHTTPTransport(verify=False)
    client = Client(url, Secret(exchange.cli_id) if exchange.cli_id else None, limits=FAST, transport=plain)
    try:
        return await ask(client, exchange)
    finally:
        await client.close()


def test_there_are_77_and_every_error_is_named() -> None:
    assert len(EXCHANGES) == 77
    titles = {e.title for e in EXCHANGES}
    assert {*ERRORS, *WAITS, *STATES} <= titles
    bad = {e.title for e in EXCHANGES if e.status >= 400 or (e.streams and "event: error" in e.body)}
    assert bad | {"SSE submit leaderboard"} == set(ERRORS)


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda e: e.title.replace(" ", "-"))
async def test_every_exchange_gives_its_typed_result_or_error(
    exchange: Exchange, played: tuple[str, Player]
) -> None:
    url, player = played
    player.current, player.wrong, player.asked = exchange, [], 0
    if exchange.title in ERRORS:
        kind, said = ERRORS[exchange.title]
        with pytest.raises(BoardError, match=re.escape(said)) as caught:
            await replay(exchange, url)
        assert type(caught.value) is kind
        assert "\n" not in str(caught.value)
        if isinstance(caught.value, RateLimited):
            assert caught.value.retry_s == WAITS[exchange.title]
    else:
        check(exchange, await replay(exchange, url))
    assert player.wrong == []
    assert player.asked == 1


def check(exchange: Exchange, got: Any) -> None:
    """A success: the adapter's own record where it has a call, and what is in it."""
    body = exchange.body
    assert str(SEED) not in repr(got)
    match got:
        case Accepted():
            assert got.details.id == body["details"]["id"]
        case Submission():
            assert (got.id, got.done, len(got.runs)) == (body["id"], body["done"], len(body["runs"]))
        case Streamed():
            assert got.passed is (exchange.title == "SSE submit test")
        case tuple():
            assert len(got) == len(body)
            kinds = {Leaderboard, RankRow, Listed, str}
            assert {type(item) for item in got} <= kinds
        case _:
            assert got == body
            assert exchange.path.startswith(
                ("/admin", "/auth", "/runner_queue", "/submission_count", "/user")
            )


def polls() -> list[Exchange]:
    return [e for e in EXCHANGES if e.title in STATES]


@pytest.mark.parametrize("exchange", polls(), ids=lambda e: e.title.replace(" ", "-"))
async def test_the_board_knows_where_a_submission_stands(
    exchange: Exchange, played: tuple[str, Player]
) -> None:
    url, player = played
    player.current, player.wrong = exchange, []
    mode = {"b": Mode.BENCHMARK, "t": Mode.TEST, "r": Mode.TEST}.get(
        exchange.title.split()[2][0], Mode.RANKED
    )
    assert exchange.cli_id
    board = KernelbotBoard(url, "grayscale-dev", "A100", Secret(exchange.cli_id), lambda _: "")
    number = exchange.path.rpartition("/")[2]
    result = await board.result(Sent(number, mode, "tag"))
    await board.close()
    assert (result.state, result.mode, result.submission) == (STATES[exchange.title], mode, number)
    assert (result.score_s is not None) == (exchange.title == "poll final leaderboard")
    assert bool(result.reason) == (result.state is State.FAILED)
    assert bool(result.cases) == (exchange.title in {"poll final benchmark", "poll final leaderboard"})
    for case in result.cases:
        assert case.case == {"seed": 54352, "size": 16384}
        assert case.mean_s == pytest.approx(16.56025041145776e-6)
        assert case.best_s == pytest.approx(16.229045403228605e-6)
        assert case.std_s == pytest.approx(0.1656025041145776e-6)
        assert case.runs == 100
    if result.score_s is not None:
        assert result.score_s == 0.00001656025041145776
    if exchange.title == "poll final failing":
        assert "ranked validation failed on A100" in result.reason
        assert "seed: 1001; size: 128: mismatch found!" in result.reason


async def test_the_board_tells_its_problem(played: tuple[str, Player]) -> None:
    url, player = played
    player.current = player.always
    board = KernelbotBoard(url, "grayscale-dev", "H100", None, lambda _: "")
    info = await board.info()
    assert (info.name, info.device, info.devices) == ("grayscale-dev", "H100", ("A100", "H100"))
    assert info.ranking == "last"
    assert [case["size"] for case in info.cases] == [512, 1024, 2048, 4096, 8192, 16384]
    assert info.deadline == datetime(2027, 11, 29, 12, 6, 12, 607273, tzinfo=UTC).timestamp()
    assert (info.limits.test_timeout_s, info.limits.ranked_timeout_s) == (180, 420)
    assert info.limits.max_bytes == 1_000_000
    await board.close()


@pytest.mark.parametrize(("name", "gpu"), [("nope", "A100"), ("grayscale-dev", "B200")])
async def test_an_unknown_board_or_gpu_is_refused(name: str, gpu: str, played: tuple[str, Player]) -> None:
    url, player = played
    player.current = player.always
    board = KernelbotBoard(url, name, gpu, None, lambda _: "")
    with pytest.raises(Refused, match=name):
        await board.info()
    await board.close()


async def test_nothing_needs_a_credential_to_be_refused_without_one(played: tuple[str, Player]) -> None:
    url, player = played
    player.asked = 0
    board = KernelbotBoard(url, "grayscale-dev", "A100", None, lambda _: "")
    for call in (board.find("t", Mode.TEST), board.result(Sent("1", Mode.TEST, "t"))):
        with pytest.raises(Unauthorized, match="POPCORN_CLI_ID"):
            await call
    assert player.asked == 0
    await board.close()


def test_the_clients_share_their_pace(played: tuple[str, Player]) -> None:
    url, player = played
    player.current = next(e for e in EXCHANGES if e.title == "gpus")
    clock = asyncio.run(_six_calls(url))
    assert clock >= 5 * 0.04


async def _six_calls(url: str) -> float:
    pace = Pace(0.04)
    clients = [Client(url, pace=pace) for _ in range(3)]
    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.gather(*(client.gpus("grayscale-dev") for client in clients * 2))
    for client in clients:
        await client.close()
    return loop.time() - started
