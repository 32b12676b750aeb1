"""The server as a process: many submitters at once, and a kill in the middle."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kernelwright.board_server.opening import only_server
from kernelwright.board_server.running import Settings, serve
from kernelwright.board_server.store import Store
from kernelwright.core.errors import KernelwrightError, UserError
from kernelwright.leaderboard.base import Mode, State
from kernelwright.leaderboard.local import LocalBoard

from .support import Benches, candidate, listing

ROOT = Path(__file__).parents[2]
SUBMITTERS = 200
CLIENTS = 20
"""A client's pool looks at all its connections for each request: many small ones are quicker than a large one."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "board.db"


def tokens(data: Path, count: int) -> list[str]:
    store = Store.open(data)
    made = [store.new_token(f"user{n}") for n in range(count)]
    store.close()
    return made


@contextlib.contextmanager
def server(data: Path, seconds: float = 0.0) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.board_server.pretend_server", data, "0", str(seconds)],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[1], process
        finally:
            process.kill()


async def test_two_hundred_submitters_at_once_lose_nothing(data: Path) -> None:
    made = tokens(data, SUBMITTERS)
    limits = httpx.Limits(max_connections=SUBMITTERS // CLIENTS)
    with server(data) as (url, _):
        async with contextlib.AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(httpx.AsyncClient(timeout=60, limits=limits, verify=False))
                for _ in range(CLIENTS)
            ]
            boards = [
                LocalBoard(f"{url}/vector_add", token, client=clients[number % CLIENTS])
                for number, token in enumerate(made)
            ]

            async def one(number: int) -> str:
                work = candidate(f"ms: {1 + number % 7}")
                first, again = await asyncio.gather(
                    *(boards[number].submit(work, Mode.RANKED, "t") for _ in range(2))
                )
                assert first.submission == again.submission
                found = await boards[number].find("t", Mode.RANKED)
                assert found == first
                return first.submission

            sent = await asyncio.gather(*(one(number) for number in range(SUBMITTERS)))
            assert len(set(sent)) == SUBMITTERS
            while len(places := await boards[0].ranks(1000)) < SUBMITTERS:
                await asyncio.sleep(0.25)
    assert len(places) == SUBMITTERS
    assert {place.submission for place in places} == set(sent)
    scores = [place.score_s for place in places]
    assert scores == sorted(scores)
    assert sum(place.mine for place in places) == 1


async def test_a_kill_in_the_middle_loses_nothing(data: Path) -> None:
    (token,) = tokens(data, 1)
    with server(data, seconds=0.05) as (url, process):
        board = LocalBoard(f"{url}/vector_add", token)
        sent = [await board.submit(candidate(f"ms: {n + 1}"), Mode.RANKED, f"t{n}") for n in range(12)]
        before = await board.ended(sent[1])
        process.send_signal(signal.SIGKILL)
        process.wait()
        await board.close()
    store = Store.open(data)
    kept = [store.by_id(each.submission) for each in sent]
    store.close()
    waiting = sum(each is not None and not each.verdict.state.ended for each in kept)
    assert waiting > 0
    with server(data) as (url, _):
        board = LocalBoard(f"{url}/vector_add", token)
        results = [await board.ended(each) for each in sent]
        again = await board.submit(candidate("ms: 1"), Mode.RANKED, "t0")
        await board.close()
    assert [result.state for result in results] == [State.PASSED] * 12
    assert [round(result.score_s * 1e3) for result in results if result.score_s] == list(range(1, 13))
    assert results[1] == before
    assert again.submission == sent[0].submission


async def test_a_signal_ends_it_in_order(data: Path) -> None:
    (token,) = tokens(data, 1)
    with server(data, seconds=60) as (url, process):
        board = LocalBoard(f"{url}/vector_add", token)
        sent = await board.submit(candidate(), Mode.RANKED, "t")
        while (await board.result(sent)).state is not State.RUNNING:
            await asyncio.sleep(0.01)
        await board.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    store = Store.open(data)
    kept = store.by_id(sent.submission)
    store.close()
    assert kept is not None
    assert (kept.verdict.state, kept.attempts) == (State.WAITING, 0)


async def test_a_server_whose_evaluator_ends_ends_too(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise UserError("the disk is full")

    monkeypatch.setattr(Store, "waiting", broken)
    with pytest.raises(UserError, match="the disk is full"):
        await serve(Settings([listing()], ["cpu"], data, port=0), lambda _: None, Benches().open)


async def test_the_folder_of_the_file_is_made_or_the_mend_is_told(data: Path) -> None:
    def ended(*_: object) -> None:
        raise UserError("enough")

    nested = data.parent / "new" / "folder" / "board.db"
    with pytest.raises(UserError, match="enough"):
        await serve(Settings([listing()], ["cpu"], nested, port=0), ended, Benches().open)
    Store.open(nested, create=False).close()
    inside = nested / "board.db"
    with pytest.raises(UserError, match="choose another --data"):
        await serve(Settings([listing()], ["cpu"], inside, port=0), ended, Benches().open)


async def test_a_second_server_and_a_taken_port_are_refused(data: Path) -> None:
    settings = Settings([listing()], ["cpu"], data, port=0)
    with only_server(data), pytest.raises(UserError, match="another server uses it"):
        await serve(settings, lambda _: None, Benches().open)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--port {port}: cannot listen"):
            await serve(Settings([listing()], ["cpu"], data, port=port), lambda _: None, Benches().open)


async def test_a_second_server_is_refused_by_every_name_of_the_file(data: Path) -> None:
    Store.open(data).close()
    link, hard = data.with_name("link.db"), data.with_name("hard.db")
    link.symlink_to(data.name)
    with only_server(data):
        with pytest.raises(UserError, match="another server uses it"), only_server(link):
            pytest.fail("two servers of one file")
        hard.hardlink_to(data)
        with pytest.raises(UserError, match="a second name"), only_server(hard):
            pytest.fail("two servers of one file")
    with pytest.raises(UserError, match="remove the other"):
        Store.open(hard)
    hard.unlink()
    with only_server(link), pytest.raises(UserError, match="another server uses it"), only_server(data):
        pytest.fail("two servers of one file")
    assert sorted(path.name for path in data.parent.iterdir()) == ["board.db", "link.db"]


@pytest.mark.parametrize("fault", ["device", "problems", "foreign", "fifo", "second"])
async def test_a_server_that_is_refused_leaves_nothing(data: Path, fault: str) -> None:
    benches, listings = Benches(), [listing()]
    benches.refuse = "there is no such device" if fault == "device" else ""
    target = data.parent / "new" / "folder" / "board.db" if fault in {"device", "problems"} else data
    if fault == "problems":
        listings *= 2
    prepare(data, fault)
    before = names_in(data.parent)
    with only_server(data) if fault == "second" else contextlib.nullcontext():
        with pytest.raises(KernelwrightError):
            await serve(Settings(listings, ["cpu"], target, port=0), lambda _: None, benches.open)
        assert names_in(data.parent) == before


def prepare(data: Path, fault: str) -> None:
    if fault == "foreign":
        data.write_text("__global__ void mine() {}", encoding="utf-8")
    elif fault == "fifo":
        os.mkfifo(data)
    elif fault == "second":
        Store.open(data).close()


def names_in(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def test_a_token_that_was_made_meanwhile_is_kept(data: Path) -> None:
    def refused() -> None:
        tokens(data, 1)
        raise UserError("enough")

    with pytest.raises(UserError, match="enough"), only_server(data):
        refused()
    assert data.exists()


def test_a_file_that_others_can_read_is_refused(data: Path) -> None:
    Store.open(data).close()
    assert data.stat().st_mode & 0o777 == 0o600
    data.chmod(0o640)
    with pytest.raises(UserError, match="chmod 600"):
        Store.open(data)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"listings": [listing(), listing()]}, "same name"),
        ({"devices": ["cpu", "cpu"]}, "twice"),
    ],
)
async def test_settings_that_make_no_sense(data: Path, settings: dict[str, object], reason: str) -> None:
    given = {"listings": [listing()], "devices": ["cpu"], "data": data, "port": 0, **settings}
    with pytest.raises(UserError, match=reason):
        await serve(Settings(**given), lambda _: None, Benches().open)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "reason"), [(b"no database at all, but long enough", "no usable board"), (b"", "")]
)
def test_a_file_of_others_is_left_alone(data: Path, content: bytes, reason: str) -> None:
    data.write_bytes(content)
    if not reason:
        data.chmod(0o600)
        Store.open(data).close()
        return
    with pytest.raises(UserError, match=reason):
        Store.open(data)
    assert data.read_bytes() == content
