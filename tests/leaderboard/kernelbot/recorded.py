"""The 77 exchanges with the real server, and a server that plays them: real HTTP, one exchange at a time."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from kernelwright.leaderboard.kernelbot.client import HEADER

FILE = Path(__file__).parents[2] / "data" / "kernelbot" / "exchanges.json"
SEED = 918273645
"""Stands in the place of every ``secret_seed``: it may turn up nowhere."""


@dataclass(frozen=True)
class Exchange:
    """A request and the answer to it. Contents of files and some long texts were left out of the record."""

    title: str
    method: str
    path: str
    cli_id: str | None
    has_file: bool
    status: int
    body: Any

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream of events."""
        return isinstance(self.body, str)


def exchanges() -> list[Exchange]:
    """All of them, in the order of the record."""
    rows = json.loads(FILE.read_text(encoding="utf-8").replace('"secret_seed":0', f'"secret_seed":{SEED}'))
    return [
        Exchange(
            title=row["title"],
            method=row["request"]["method"],
            path=row["request"]["path"],
            cli_id=row["request"].get("headers", {}).get(HEADER),
            has_file="files" in row["request"],
            status=row["status"],
            body=row["body"],
        )
        for row in rows
    ]


@dataclass
class Player:
    """Answers with ``current``, if the request is the recorded one; otherwise notes what is wrong with it."""

    current: Exchange
    always: Exchange
    wrong: list[str] = field(default_factory=list)
    asked: int = 0

    async def answer(self, request: Request) -> Response:
        """The recorded answer; streams in pieces of seven bytes."""
        url = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        if url == self.always.path != self.current.path:
            return JSONResponse(self.always.body)
        self.asked += 1
        self.wrong += await _differences(request, url, self.current)
        if not self.current.streams:
            return JSONResponse(self.current.body, self.current.status)
        data = self.current.body.encode()
        pieces = (data[i : i + 7] for i in range(0, len(data), 7))
        return StreamingResponse(pieces, media_type="text/event-stream")


async def _differences(request: Request, url: str, wanted: Exchange) -> list[str]:
    found = []
    if (request.method, urlsplit(url).path) != (wanted.method, urlsplit(wanted.path).path):
        found.append(f"{request.method} {url}")
    if sorted(parse_qsl(urlsplit(url).query)) != sorted(parse_qsl(urlsplit(wanted.path).query)):
        found.append(f"query {url}")
    if wanted.cli_id is not None and request.headers.get(HEADER) != wanted.cli_id:
        found.append("credential")
    if wanted.has_file:
        form = await request.form()
        part = form.get("file")
        if list(form) != ["file"] or not isinstance(part, UploadFile) or not part.filename:
            found.append("form")
        await form.close()
    return found


@contextmanager
def serve(app: ASGIApp) -> Iterator[str]:
    """Base URL of a server on this machine."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    socket.listen()  # who asks before the server has begun waits for it
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        socket.close()


@contextmanager
def play() -> Iterator[tuple[str, Player]]:
    """A server that plays what ``Player.current`` is set to."""
    all_of_them = exchanges()
    player = Player(all_of_them[0], next(e for e in all_of_them if e.path == "/leaderboards"))
    methods = ["GET", "POST", "PUT", "DELETE"]
    with serve(Starlette(routes=[Route("/{path:path}", player.answer, methods=methods)])) as url:
        yield url, player
