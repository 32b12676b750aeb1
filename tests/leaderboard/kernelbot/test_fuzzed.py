"""Whatever a server answers: a record or a BoardError of one line, and never the credential."""

import asyncio
import copy
import json
import traceback
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.leaderboard.base import BoardError, Mode, Sent
from kernelwright.leaderboard.kernelbot.board import KernelbotBoard
from kernelwright.leaderboard.kernelbot.client import HEADER, Client, Limits
from kernelwright.leaderboard.secret import Secret
from kernelwright.problems.loader import load_problem
from tests.leaderboard.kernelbot.recorded import SEED, exchanges

CLI_ID = "0e4a7f0c-58c7-4f6e-9d2d-3f5d8a1b2c3d"
LIMITS = Limits(interval_s=0.0, tries=1, answer_bytes=2**20, catalogue_bytes=2**20)
CANDIDATE = Candidate(parse_template(load_problem("vector_add").catalogue()[0][1]), Configuration())
BODIES = {e.path.partition("?")[0]: e.body for e in exchanges() if e.status < 300}
STREAMS = [e.body.encode() for e in exchanges() if e.streams]
SENT = Sent("3", Mode.RANKED, "t")
ASK: dict[str, Callable[[KernelbotBoard, Client], Awaitable[Any]]] = {
    "info": lambda board, _: board.info(),
    "submit": lambda board, _: board.submit(CANDIDATE, Mode.TEST, "t"),
    "find": lambda board, _: board.find("submission", Mode.TEST),
    "result": lambda board, _: board.result(SENT),
    "benchmark": lambda board, _: board.result(Sent("2", Mode.BENCHMARK, "t")),
    "ranks": lambda board, _: board.ranks(),
    "leaderboards": lambda _, client: client.leaderboards(),
    "gpus": lambda _, client: client.gpus("grayscale-dev"),
    "stream": lambda _, client: client.submit_streaming("grayscale-dev", "A100", "test", "a.py", b"x"),
}
echoes = st.sampled_from([CLI_ID, CLI_ID.upper(), f"x{CLI_ID}y\x1b[2J\n", {CLI_ID: CLI_ID}, [CLI_ID]])
numbers = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([10**400, -1, 0, 2**63])
)
words = st.text(max_size=30) | st.sampled_from(
    ["succeeded", "nan", "1e999", "-0.5", "٣", "2026-13-45", "0001-01-01T00:00+14:00"]
)
values = st.recursive(
    st.none() | st.booleans() | numbers | words | echoes,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=8,
)


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    yield here
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from paths(part, (*here, key))


@st.composite
def spoiled(draw: st.DrawFn, body: Any) -> bytes:
    """A recorded answer with some of its places overwritten, or left out."""
    value = {"all": copy.deepcopy(body)}
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([p for p in paths(value) if p]))
        inside: Any = value
        for key in path[:-1]:
            inside = inside[key]
        if draw(st.booleans()):
            inside[path[-1]] = copy.deepcopy(draw(values))
        elif path != ("all",):
            del inside[path[-1]]
    return json.dumps(value["all"]).encode()


answers = st.one_of(
    st.binary(max_size=60),
    values.map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b"", b"[" * 5000, b"NaN", b"1" * 5000, b'"\\ud800"', b'{"a":1,"a":2}', b"\xff\xfe"]),
)
statuses = st.sampled_from([*([200] * 20), 202, 204, 301, 400, 401, 403, 404, 418, 422, 429, 500, 503, 599])
errors = st.builds(
    lambda text, more: json.dumps({"detail": f"{text} {more}" if isinstance(more, str) else more}).encode(),
    st.sampled_from(
        ["Rate limit exceeded. Try again in 9999999999s.", "does not exist", f"who is {CLI_ID}?", "500: "]
    ),
    values,
)


@st.composite
def answering(draw: st.DrawFn) -> Callable[[httpx.Request], httpx.Response]:
    """A server: each path has one answer, good or spoiled or anything."""
    made: dict[str, tuple[int, bytes]] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        private = request.method == "POST" or path.startswith("/user/")
        assert request.headers.get(HEADER) == (CLI_ID if private else None)
        if path not in made:
            good = BODIES.get(path)
            whole = st.just(json.dumps(good).encode())
            body = whole | spoiled(good) | spoiled(good) | spoiled(good) | answers | errors
            if request.method == "POST" and "/submission/" not in path:
                body = st.sampled_from(STREAMS) | frames
            made[path] = draw(statuses), draw(body)
        status, content = made[path]
        headers = {"x-echo": CLI_ID, "set-cookie": CLI_ID}
        return httpx.Response(status, stream=httpx.ByteStream(content), headers=headers)

    return answer


frames = st.lists(
    st.builds(
        lambda name, data, end: f"event: {name}{end}data: ".encode() + data + f"{end}{end}".encode(),
        st.sampled_from(["status", "result", "error", "x", ""]),
        errors
        | answers
        | st.just(b'{"status":"success","results":[{"success":true,"runs":{"test":{"run":null}}}]}'),
        st.sampled_from(["\n", "\r\n", "\r"]),
    ),
    max_size=4,
).map(b"".join)


@pytest.mark.parametrize("what", ASK)
@settings(max_examples=70, deadline=None)
@given(answer=answering())
def test_any_answer_is_a_record_or_one_line_without_the_credential(
    what: str, answer: Callable[[httpx.Request], httpx.Response]
) -> None:
    shown = asyncio.run(once(what, answer))
    assert CLI_ID not in shown.lower()
    assert str(SEED) not in shown


async def once(what: str, answer: Callable[[httpx.Request], httpx.Response]) -> str:
    """All that could be shown of what came of it."""
    secret = Secret(CLI_ID)
    client = Client("http://localhost", secret, limits=LIMITS, transport=httpx.MockTransport(answer))
    board = KernelbotBoard("http://localhost", "grayscale-dev", "A100", secret, lambda _: "x", client=client)
    try:
        return repr(await ASK[what](board, client)) + repr(vars(board))
    except BoardError as error:
        message = str(error)
        assert message.isprintable()
        assert len(message) < 700
        everything = [str(error.__dict__), repr(error), *traceback.format_exception(error)]
        return "".join(everything)
    finally:
        await client.close()
