"""What strangers without a token can do to a server: hold connections, send halves of requests, and rubbish."""

import asyncio
import contextlib
import errno
import json
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from kernelwright.board_server import connections
from kernelwright.board_server.connections import Gate, Listener, most_connections
from kernelwright.board_server.running import Settings, _Server, serve

from .support import Benches, listing

ROOT = Path(__file__).parents[2]
FILES = 128
ALLOWED = FILES // 2
HALF = b"GET /api/boards HTTP/1.1\r\nHost: x\r\nX-a: "


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "board.db"


@contextlib.contextmanager
def small_server(data: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    limited = ["sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh"]
    command = [*limited, sys.executable, "-m", "tests.board_server.pretend_server", data, "0", "0"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[1], process
        finally:
            process.kill()


def connected(url: str, source: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30, source_address=(source, 0))


def closed(connection: socket.socket) -> bool:
    """Whether the server has closed it; waits for neither."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def asked(url: str, source: str) -> int:
    with httpx.Client(transport=httpx.HTTPTransport(local_address=source), timeout=30) as client:
        return client.get(f"{url}/api/boards").status_code


async def test_half_requests_of_one_address_leave_room_for_others(data: Path) -> None:
    with small_server(data) as (url, process), contextlib.ExitStack() as stack:
        held = [stack.enter_context(connected(url, "127.0.0.1")) for _ in range(3 * FILES)]
        for each in held:
            with contextlib.suppress(ConnectionError):
                each.send(HALF)
        assert asked(url, "127.0.0.2") == 200
        while sum(not closed(each) for each in held) > ALLOWED // 2:
            await asyncio.sleep(0.01)
        more = [stack.enter_context(connected(url, "127.0.0.3")) for _ in range(3 * FILES)]
        while sum(not closed(each) for each in more) > ALLOWED // 2:
            await asyncio.sleep(0.01)
        held[0].close()
        for each in (*held, *more):
            each.close()
        assert asked(url, "127.0.0.1") == 200
        assert process.stdout is not None
        assert process.stdout.readline().startswith("vector_add: has no deadline")
        said = process.stdout.readline()
        process.kill()
        assert said.startswith("connections turned away: ")
        assert process.stdout.read() == ""
        assert process.stderr is not None
        assert process.stderr.read() == ""


@contextlib.asynccontextmanager
async def serving(data: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, list[str]]]:
    """A server in this process."""
    said: list[str] = []
    begun = asyncio.Event()

    def notify(text: str) -> None:
        said.append(text)
        if text.startswith("board: "):
            begun.set()

    servers: list[_Server] = []
    monkeypatch.setattr(
        "kernelwright.board_server.running._Server", lambda *a: servers.append(_Server(*a)) or servers[0]
    )
    work = asyncio.create_task(serve(Settings([listing()], ["cpu"], data, port=0), notify, Benches().open))
    await begun.wait()
    try:
        yield said[0].split()[1], said
    finally:
        servers[0].should_exit = True
        await work


async def opened(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


@pytest.mark.parametrize("begin", [b"", HALF, b"GET /api/boards HTTP/1.1\r\nHost: x\r\n\r\n" + HALF])
async def test_a_head_that_does_not_end_is_cut_off(
    data: Path, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    for name in ("HEAD_WITHIN_S", "KEEP_ALIVE_S"):
        monkeypatch.setattr(connections, name, 0.2)
    async with serving(data, monkeypatch) as (url, _):
        reader, writer = await opened(url)
        writer.write(begin)

        async def trickle() -> None:
            while True:
                writer.write(b"a" if begin else b"")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(trickle())
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(), 20)
        dripping.cancel()
        writer.close()


async def test_an_idle_connection_is_not_held_for_ever(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_WITHIN_S", 0.1)
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", 0.3)
    async with serving(data, monkeypatch) as (url, _):
        reader, writer = await opened(url)
        writer.write(b"GET /api/boards HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_an_answer_that_nobody_reads_is_given_up(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_WITHIN_S", 0.5)
    async with serving(data, monkeypatch) as (url, _):
        host, port = url.removeprefix("http://").split(":")
        with socket.socket() as greedy:
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                greedy.connect((host, int(port)))
            wanted = b"GET /api/boards/vector_add/problem HTTP/1.1\r\nHost: x\r\n\r\n" * 1000
            with contextlib.suppress(ConnectionError):
                while True:  # never reading: the server stops taking requests, and then ends it
                    with contextlib.suppress(BlockingIOError):
                        greedy.send(wanted)
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "rubbish", [b"\x16\x03\x01 hello\r\n\r\n", b"GET / FTP/1.1\r\n\r\n", b"GET /a\r\n" + b"X" * 70_000]
)
async def test_rubbish_gets_one_line_and_writes_none(
    data: Path, monkeypatch: pytest.MonkeyPatch, rubbish: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(data, monkeypatch) as (url, said):
        reader, writer = await opened(url)
        writer.write(rubbish)
        head, _, body = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n\r\n")
        writer.close()
        assert head.startswith(b"HTTP/1.1 400")
        assert list(json.loads(body)) == ["error"]
        assert len(said) == 2
    assert capfd.readouterr() == ("", "")


async def test_a_body_whose_head_says_too_much_is_refused_at_once(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(data, monkeypatch) as (url, _):
        reader, writer = await opened(url)
        writer.write(
            b"POST /api/boards/vector_add/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"
        )
        answer = await asyncio.wait_for(reader.read(), 5)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 413")


async def test_a_client_that_goes_away_in_the_middle_of_a_body_has_asked_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen = []
    monkeypatch.setattr("kernelwright.board_server.api.read_submission", seen.append)
    async with serving(data, monkeypatch) as (url, _):
        _, writer = await opened(url)
        writer.write(
            b"POST /api/boards/vector_add/submissions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}"
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{url}/api/boards")).status_code == 200
    assert seen == []
    assert capfd.readouterr() == ("", "")


def test_a_process_without_a_free_file_refuses_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "TOLD_AFTER_S", 0.0)
    said: list[str] = []
    gate = Gate(4, said.append)
    with Listener(socket.create_server(("127.0.0.1", 0)), gate) as listener:
        listener.setblocking(False)
        with contextlib.ExitStack() as stack:
            waiting = stack.enter_context(socket.create_connection(listener.getsockname()))
            before = resource.getrlimit(resource.RLIMIT_NOFILE)
            stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
            resource.setrlimit(resource.RLIMIT_NOFILE, (waiting.fileno() + 1, before[1]))
            with pytest.raises(BlockingIOError):
                listener.accept()
            assert waiting.recv(1) == b""
        gate.tell()
        assert said == ["connections turned away: 1; open are 0, 0 of them from one address (at most 2)"]
        with pytest.raises(BlockingIOError) as nobody:
            listener.accept()
        assert nobody.value.errno == errno.EAGAIN


def test_the_gate_counts_networks_and_says_so_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "TOLD_AFTER_S", 0.0)
    said: list[str] = []
    gate = Gate(4, said.append)
    assert [gate.enter("a") for _ in range(3)] == [True, True, False]
    assert [gate.enter(source) for source in "bcd"] == [True, True, False]
    for _ in range(100):
        gate.tell()
    assert said == ["connections turned away: 2; open are 4, 2 of them from one address (at most 2)"]
    gate.leave("b")
    assert gate.enter("d")
    assert not gate.enter("d")
    gate.tell()
    assert len(said) == 1
    assert connections._source("2001:db8::1") == connections._source("2001:db8::ffff:2")
    assert connections._source("fe80::1%lo") != connections._source("2001:db8::1")


def test_a_quarter_of_a_usual_limit_is_left_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, most in ((1024, 768), (200, 100), (10**6, 1000), (resource.RLIM_INFINITY, 1000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert most_connections() == most
