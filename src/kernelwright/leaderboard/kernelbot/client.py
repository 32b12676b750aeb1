"""What GPU MODE's server can be asked, at a bounded pace: :mod:`~kernelwright.leaderboard.wire` has the rest.

A question (GET) that got no answer is asked again; a submission never is.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote

from pydantic import JsonValue

from kernelwright.leaderboard.base import BoardError, Refused
from kernelwright.leaderboard.kernelbot.address import WHERE
from kernelwright.leaderboard.kernelbot.answers import (
    Accepted,
    Leaderboard,
    Listed,
    RankRow,
    Streamed,
    Submission,
)
from kernelwright.leaderboard.kernelbot.refusals import refusal
from kernelwright.leaderboard.kernelbot.sse import Event, Events
from kernelwright.leaderboard.known import known_credentials
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.untrusted import line, read
from kernelwright.leaderboard.wire import Unavailable, Wire

HEADER: Final = "X-Popcorn-Cli-Id"
MIB: Final = 1024 * 1024

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Seconds, bytes and tries. The server itself lets ten calls a second through."""

    connect_s: float = 10.0
    silence_s: float = 60.0
    """Longest wait for the next bytes; a stream has a sign of life every 15 s."""
    call_s: float = 300.0
    question_s: float = 120.0
    """Of a question with all its tries."""
    stream_s: float = 3600.0
    tries: int = 3
    first_wait_s: float = 0.5
    interval_s: float = 0.1
    answer_bytes: int = 4 * MIB
    catalogue_bytes: int = 64 * MIB
    """``/leaderboards`` holds every file of every problem."""
    stream_bytes: int = 32 * MIB


class Pace:
    """At most one call in ``interval_s``, over all who share it."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for one's turn; turns are given in the order of the calls."""
        now = time.monotonic()
        mine = max(now, self._next)
        self._next = mine + self._interval_s
        if mine > now:
            await asyncio.sleep(mine - now)


class Client:
    """Asking raises BoardError, and MissingError without the ``board`` extra.

    ``transport`` is httpx's, for tests; ``pace`` is shared by clients of one server.
    """

    def __init__(
        self,
        base_url: str,
        credential: Secret | None = None,
        *,
        limits: Limits = Limits(),
        pace: Pace | None = None,
        transport: Any = None,
    ) -> None:
        self._secret = credential
        self._limits = limits
        self._pace = pace or Pace(limits.interval_s)
        self._where = f"{WHERE} at {base_url}" if base_url else WHERE
        self._wire = Wire(
            self._where,
            base_url,
            hidden=known_credentials(credential),
            connect_s=limits.connect_s,
            silence_s=limits.silence_s,
            transport=transport,
        )

    async def leaderboards(self) -> tuple[Leaderboard, ...]:
        """All leaderboards that can be read; a malformed one hides no other."""
        rows = read(list[JsonValue], await self.get("/leaderboards", catalogue=True), self._where)
        found: list[Leaderboard] = []
        for row in rows:
            try:
                found.append(read(Leaderboard, row, self._where))
            except BoardError:
                continue
        return tuple(found)

    async def gpus(self, leaderboard: str) -> tuple[str, ...]:
        """Names of the GPUs that a leaderboard ranks."""
        return read(tuple[str, ...], await self.get(_path("gpus", leaderboard)), self._where)

    async def ranking(
        self, leaderboard: str, gpu: str, limit: int | None = None, offset: int = 0
    ) -> tuple[RankRow, ...]:
        """The best entry of each user, the best first."""
        query = {} if limit is None else {"limit": limit, "offset": offset}
        return read(
            tuple[RankRow, ...], await self.get(_path("submissions", leaderboard, gpu), query), self._where
        )

    async def own(
        self, leaderboard: str | None = None, limit: int = 100, offset: int = 0
    ) -> tuple[Listed, ...]:
        """The user's own submissions, the newest first; at most 100 a page."""
        query: dict[str, str | int] = {"limit": limit, "offset": offset} if offset else {"limit": limit}
        if leaderboard is not None:
            query = {"leaderboard": leaderboard, **query}
        return read(tuple[Listed, ...], await self.get("/user/submissions", query), self._where)

    async def submission(self, number: str) -> Submission:
        """One of the user's own submissions."""
        return read(Submission, await self.get(_path("user", "submissions", number)), self._where)

    async def submit(self, leaderboard: str, gpu: str, mode: str, name: str, code: bytes) -> Accepted:
        """Queue a submission. It is never sent again: after an Unavailable it has to be looked for."""
        path = _path("submission", leaderboard, gpu, mode)
        return read(Accepted, await self._ask("POST", path, files=_form(name, code)), self._where)

    async def submit_streaming(
        self, leaderboard: str, gpu: str, mode: str, name: str, code: bytes
    ) -> Streamed:
        """Submit and wait on one connection: the only way to what the runner printed. Never sent again."""
        path = _path(leaderboard, gpu, mode)
        return await self._call("POST", path, self._limits.stream_s, self._follow, files=_form(name, code))

    async def get(
        self, path: str, query: Mapping[str, str | int] | None = None, *, catalogue: bool = False
    ) -> JsonValue:
        """Ask, and ask again where there was no answer. Raises BoardError."""
        limits = self._limits
        most = limits.catalogue_bytes if catalogue else limits.answer_bytes
        try:
            async with asyncio.timeout(limits.question_s):
                return await self._tried(path, most, query)
        except TimeoutError:
            raise Unavailable(
                f"{self._where}: GET {line(path, 100)}: no answer within {limits.question_s:g} s"
            ) from None

    async def _tried(self, path: str, most: int, query: Mapping[str, str | int] | None) -> JsonValue:
        wait = self._limits.first_wait_s
        for _ in range(self._limits.tries - 1):
            try:
                return await self._ask("GET", path, most, params=query or None)
            except Unavailable:
                await asyncio.sleep(wait)
                wait *= 2
        return await self._ask("GET", path, most, params=query or None)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def _ask(self, method: str, path: str, most: int | None = None, **parts: Any) -> JsonValue:
        """One call, one answer. ``parts`` are httpx's: params, files, json."""

        async def use(answer: Any) -> JsonValue:
            body = await self._wire.body(answer, most or self._limits.answer_bytes)
            return self._understand(answer.status_code, body)

        return await self._call(method, path, self._limits.call_s, use, **parts)

    async def _call(
        self, method: str, path: str, seconds: float, use: Callable[[Any], Awaitable[T]], **parts: Any
    ) -> T:
        """At the server's pace. What is public is asked without the credential."""
        await self._pace.turn()
        private = method != "GET" or path.startswith("/user/")
        headers = {HEADER: self._secret.reveal()} if self._secret and private else {}
        return await self._wire.call(method, path, seconds, use, headers, **parts)

    async def _follow(self, answer: Any) -> Streamed:
        """The result at the end of a stream."""
        if answer.status_code != 200:
            self._understand(answer.status_code, await self._wire.body(answer, self._limits.answer_bytes))
        events = Events()
        async with aclosing(self._wire.pieces(answer, self._limits.stream_bytes)) as pieces:
            async for piece in pieces:
                for event in events.feed(piece):
                    if (found := self._last(event)) is not None:
                        return found
        raise Unavailable(f"{self._where}: the stream ended without a result")

    def _understand(self, status: int, body: bytes) -> JsonValue:
        """The content of a success; everything else is raised."""
        if 200 <= status < 300:
            return self._wire.json(body)
        if 300 <= status < 400:
            raise Refused(
                f"{self._where}: the address leads elsewhere (HTTP {status}), which is not followed: mend it"
            )
        raise refusal(status, self._detail(body))

    def _detail(self, body: bytes) -> str:
        """What an error says: FastAPI's ``detail``, a text or a list of complaints; else nothing."""
        try:
            content = self._wire.json(body)
        except BoardError:
            return ""
        match content:
            case {"detail": str(text)}:
                return text
            case {"detail": [*items]}:
                said = [item["msg"] for item in items[:5] if isinstance(item, dict) and "msg" in item]
                return "; ".join(text for text in said if isinstance(text, str))
            case _:
                return ""

    def _last(self, event: Event) -> Streamed | None:
        """The result, if this is the frame that holds it. Raises what an error frame says."""
        if event.name == "result":
            return read(Streamed, self._wire.json(event.data), self._where)
        if event.name == "error":
            self._raise_frame(self._wire.json(event.data))
        return None

    def _raise_frame(self, content: JsonValue) -> NoReturn:
        """An error after the stream began comes with HTTP 200 and has its status inside."""
        frame = content if isinstance(content, dict) else {}
        status, parts = frame.get("status_code"), (frame.get("detail"), frame.get("raw_error"))
        said = ": ".join(part for part in parts if isinstance(part, str))
        raise refusal(status if isinstance(status, int) else 500, said)


def _path(*parts: str) -> str:
    """Raises Refused for a part of dots only, which would lead to another path."""
    if not all(part.strip(".") for part in parts):
        raise Refused(f"{WHERE}: {line('/'.join(parts), 100)} is no name")
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _form(name: str, code: bytes) -> dict[str, tuple[str, bytes, str]]:
    return {"file": (name, code, "text/x-python")}
