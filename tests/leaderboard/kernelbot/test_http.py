"""Servers that break HTTP, dawdle, flood, lead elsewhere or echo: bounded, typed, and a submission is sent once."""

import asyncio
import gzip
import logging
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from kernelwright.leaderboard.base import BoardError, RateLimited, Refused
from kernelwright.leaderboard.kernelbot.client import Client, Limits
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.wire import Unavailable

CLI_ID = "0e4a7f0c-58c7-4f6e-9d2d-3f5d8a1b2c3d"
LIMITS = Limits(
    silence_s=5.0,
    call_s=5.0,
    stream_s=5.0,
    first_wait_s=0.001,
    interval_s=0.0,
    answer_bytes=5000,
    stream_bytes=5000,
)
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
GPUS = HEAD + b'Content-Length: 8\r\n\r\n["H100"]'
BUSY = b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
STREAM = HEAD + b"Content-Type: text/event-stream\r\n\r\n"
FLOOD = b"x" * 65536


@asynccontextmanager
async def serving(*answers: bytes, forever: bytes = b"") -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives these answers, one a connection and the last again and again, and what it was asked.

    ``forever`` is sent after the answer without end; an answer that is empty is never given.
    """
    asked: list[bytes] = []
    hold = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head)
        answer = answers[min(len(asked), len(answers)) - 1]
        try:
            writer.write(answer)
            await writer.drain()
            while forever and not hold.is_set():
                writer.write(forever)
                await writer.drain()
            if not answer:
                await hold.wait()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
        hold.set()


@asynccontextmanager
async def opened(url: str, limits: Limits = LIMITS) -> AsyncIterator[Client]:
    client = Client(url, Secret(CLI_ID), limits=limits, transport=httpx.AsyncHTTPTransport(verify=False))
    yield client
    await client.close()


async def submit(client: Client) -> object:
    return await client.submit("b", "H100", "test", "t.py", b"code")


async def stream(client: Client) -> object:
    return await client.submit_streaming("b", "H100", "test", "t.py", b"code")


async def gpus(client: Client) -> object:
    return await client.gpus("b")


async def test_a_question_is_asked_again_and_a_submission_never() -> None:
    async with serving(BUSY, b"HTTP/1.1 ", GPUS) as (url, asked), opened(url) as client:
        assert await client.gpus("b") == ("H100",)
        assert len(asked) == 3
    for call in (submit, stream):
        for answer in (BUSY, b"HTTP/1.1 ", HEAD + b"\r\n{", STREAM + b"event: status\ndata: {}\n\n"):
            async with serving(answer, GPUS) as (url, asked), opened(url) as client:
                with pytest.raises(BoardError):
                    await call(client)
                assert len(asked) == 1


async def test_questions_end_after_their_tries() -> None:
    async with serving(BUSY) as (url, asked), opened(url) as client:
        with pytest.raises(Unavailable, match="503"):
            await client.gpus("b")
        assert len(asked) == LIMITS.tries


@pytest.mark.parametrize(
    "status", [b"429 Slow", b"400 Bad", b"404 None", b"302 Found\r\nLocation: http://a.example/"]
)
async def test_what_is_no_failure_is_not_asked_again(status: bytes) -> None:
    answer = b"HTTP/1.1 " + status + b"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    async with serving(answer, GPUS) as (url, asked), opened(url) as client:
        with pytest.raises((Refused, RateLimited)):
            await client.gpus("b")
        assert len(asked) == 1


BROKEN = {
    "garbage": b"\x00\xff no http at all\r\n\r\n",
    "nothing": b"\r\n",
    "cut in the body": HEAD + b"Content-Length: 999\r\n\r\n[",
    "no length that is one": HEAD + b"Content-Length: ten\r\n\r\n[]",
    "chunks that are none": HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n" + CLI_ID.encode(),
    "a head that echoes": b"HTTP/1.1 200 " + CLI_ID.encode() + b"\r\nX: " + CLI_ID.encode() + b"\r\n\r\n[1",
    "a malformed head that echoes": HEAD + CLI_ID.encode() + b"\r\n\r\n",
    "a place that is none": b"HTTP/1.1 302 X\r\nConnection: close\r\nLocation: http://["
    + CLI_ID.encode()
    + b"\r\n\r\n",
    "a body that echoes": HEAD.replace(b"200", b"400")
    + b'\r\n{"detail": "who is '
    + CLI_ID.encode()
    + b'?"}',
    "escaped echo": HEAD.replace(b"200", b"400") + b'\r\n{"detail": "\\u0030' + CLI_ID[1:].encode() + b'"}',
    "a cookie": HEAD + b"Set-Cookie: a=" + CLI_ID.encode() + b"; Path=/\r\n\r\nno json",
    "packed": HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"[]" * 10**6),
    "a huge head": HEAD + b"X: " + b"y" * 300_000 + b"\r\n\r\n[]",
}


@pytest.mark.parametrize("call", [gpus, submit, stream])
@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_a_broken_answer_is_one_line_without_the_credential(
    answer: bytes, call: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(answer) as (url, _), opened(url, replace(LIMITS, tries=2)) as client:
        with pytest.raises(BoardError) as caught:
            await call(client)  # type: ignore[operator]
    shown = [str(caught.value), repr(caught.value), *traceback.format_exception(caught.value), caplog.text]
    assert CLI_ID not in "".join(shown)
    assert caught.value.__context__ is None
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("call", "head"), [(gpus, HEAD + b"\r\n"), (submit, HEAD + b"\r\n"), (stream, STREAM)]
)
async def test_an_answer_without_end_is_cut(call: object, head: bytes) -> None:
    async with serving(head, forever=FLOOD) as (url, asked), opened(url) as client:
        with pytest.raises(BoardError, match="larger than 5000 bytes"):
            await call(client)  # type: ignore[operator]
        assert len(asked) == 1


@pytest.mark.parametrize("call", [gpus, submit, stream])
@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (replace(LIMITS, silence_s=0.05, tries=1), r"cannot be asked \(it fell silent\)"),
        (replace(LIMITS, call_s=0.05, stream_s=0.05, tries=1), r"no answer within 0\.05 s"),
    ],
)
async def test_waiting_ends(call: object, limits: Limits, said: str) -> None:
    async with serving(b"") as (url, _), opened(url, limits) as client:
        with pytest.raises(Unavailable, match=said):
            await call(client)  # type: ignore[operator]


async def test_all_tries_together_end_in_time() -> None:
    limits = replace(LIMITS, question_s=0.1)
    async with serving(b"") as (url, asked), opened(url, limits) as client:
        with pytest.raises(Unavailable, match=r"GPU MODE at http://.*: GET /gpus/b: no answer within 0\.1 s"):
            await client.gpus("b")
        assert len(asked) == 1


async def test_nothing_is_unpacked() -> None:
    async with serving(BROKEN["packed"]) as (url, _), opened(url) as client:
        with pytest.raises(BoardError, match="packed"):
            await client.gpus("b")


async def test_cookies_are_not_kept() -> None:
    answer = GPUS.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=b; Path=/\r\n\r\n")
    async with serving(answer) as (url, asked), opened(url) as client:
        await client.gpus("b")
        await client.gpus("b")
    assert len(asked) == 2
    assert b"cookie" not in b"".join(asked).lower()


async def test_a_stream_that_only_lives_on_ends_in_time() -> None:
    alive = STREAM + b"event: status\ndata: {}\n\n"
    limits = replace(LIMITS, stream_s=0.05, stream_bytes=2**60)
    async with serving(alive, forever=b": still here\n\n") as (url, _), opened(url, limits) as client:
        with pytest.raises(Unavailable, match=r"no answer within 0\.05 s"):
            await stream(client)


async def test_nobody_there_is_one_line() -> None:
    async with serving(GPUS) as (url, _):
        pass
    async with opened(url) as client:
        with pytest.raises(Unavailable, match=r"GET /gpus/b: cannot be asked \(nobody listens there\)"):
            await client.gpus("b")


@pytest.mark.parametrize("names", [["a/b", "H100"], ["a..", "?x=1"], ["a#b", "é\n"]])
async def test_names_stay_within_their_part_of_the_path(names: Sequence[str]) -> None:
    async with serving(HEAD + b"\r\n[]") as (url, asked), opened(url) as client:
        assert await client.ranking(names[0], names[1]) == ()
    path = asked[0].split(b" ")[1]
    assert path.startswith(b"/submissions/")
    assert path.count(b"/") == 3
    assert b"?" not in path


@pytest.mark.parametrize("name", ["", ".", "..", "..."])
async def test_names_of_dots_lead_nowhere(name: str) -> None:
    async with serving(GPUS) as (url, asked), opened(url) as client:
        for call in (client.gpus(name), client.submission(name), client.submit(name, "a", "b", "c", b"")):
            with pytest.raises(Refused, match="is no name"):
                await call
    assert asked == []
