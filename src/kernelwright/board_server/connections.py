"""Connections to the board, before a request is there: how many at once, and how long each may take.

Nobody needs a token to hold a connection, so that these limits keep a board reachable: in all there are fewer than the
process may open files, one address has half of them, and each has to get on.
"""

import asyncio
import contextlib
import errno
import json
import os
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 1000
SPARE_FILES: Final = 256
"""For the harness, its children and the board's file; of a small limit half."""
HEAD_WITHIN_S: Final = 15.0
ANSWER_WITHIN_S: Final = 120.0
"""From the end of a request's head until its answer was taken; its body has a shorter time of its own."""
KEEP_ALIVE_S: Final = 75
"""Longer than clients keep an idle connection: a request must not meet a server that is just closing it."""
TOLD_AFTER_S: Final = 1.0
TOLD_EVERY_S: Final = 60.0
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def most_connections() -> int:
    """As many as leave files for everything else."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, files - min(SPARE_FILES, files // 2))


class Gate:
    """Counts open connections, and those that were turned away: ``notify`` hears their number, once a minute at most."""

    def __init__(self, most: int, notify: Callable[[str], None]) -> None:
        self._most = most
        self._notify = notify
        self._open: Counter[str] = Counter()
        self._turned_away = 0
        self._due = time.monotonic()

    def enter(self, source: str) -> bool:
        """Whether one more from there is let in."""
        if self._open.total() >= self._most or self._open[source] >= max(1, self._most // 2):
            self.turn_away()
            return False
        self._open[source] += 1
        return True

    def leave(self, source: str) -> None:
        """One that was let in was closed."""
        self._open[source] -= 1
        if not self._open[source]:
            del self._open[source]

    def turn_away(self) -> None:
        """One could not be let in."""
        if not self._turned_away:
            self._due = max(self._due, time.monotonic() + TOLD_AFTER_S)
        self._turned_away += 1

    def tell(self) -> None:
        """Called now and then."""
        if self._turned_away and time.monotonic() >= self._due:
            self._notify(
                f"connections turned away: {self._turned_away}; open are {self._open.total()}, "
                f"{max(self._open.values(), default=0)} of them from one address (at most {self._most // 2})"
            )
            self._turned_away, self._due = 0, time.monotonic() + TOLD_EVERY_S


class Listener(socket.socket):
    """Closes at once what the gate does not let in: asyncio alone would take all, and log each that it cannot take."""

    def __init__(self, bound: socket.socket, gate: Gate) -> None:
        super().__init__(fileno=bound.detach())
        self.gate = gate
        self._spare: int | None = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def accept(self) -> tuple[socket.socket, Any]:
        """Raises BlockingIOError where nobody is let in now: whoever waits behind has the next turn."""
        try:
            connection, address = super().accept()
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            self._drop_one()
            raise BlockingIOError from None
        source = _source(address[0])
        if not self.gate.enter(source):
            connection.close()
            raise BlockingIOError
        return _Admitted(connection, self.gate, source), address

    def close(self) -> None:
        """As any socket."""
        super().close()
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def _drop_one(self) -> None:
        """Without a free file nobody can be refused, and the loop would be woken for ever: one file is kept for that."""
        self.gate.turn_away()
        if self._spare is not None:
            os.close(self._spare)
        with contextlib.suppress(OSError):
            super().accept()[0].close()
        self._spare = None
        with contextlib.suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class _Admitted(socket.socket):
    """Gives its place back when it is closed."""

    def __init__(self, connection: socket.socket, gate: Gate, source: str) -> None:
        super().__init__(fileno=connection.detach())
        self._gate = gate
        self._source = source

    def close(self) -> None:
        """As any socket."""
        if self.fileno() >= 0:
            self._gate.leave(self._source)
        super().close()


def _source(host: str) -> str:
    """Whom a place counts for: a network of IPv6 has more addresses for one user than there are places."""
    if ":" not in host:
        return host
    return socket.inet_pton(socket.AF_INET6, host.partition("%")[0])[:8].hex()


class Connection(H11Protocol):
    """uvicorn's, with an end to every wait: for a head, for an answer to be taken, for the next request."""

    _end: asyncio.TimerHandle | None = None
    _idle = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """The first head has to come."""
        super().connection_made(transport)
        self._within(HEAD_WITHIN_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        super().connection_lost(exc)
        if self._end is not None:
            self._end.cancel()

    def data_received(self, data: bytes) -> None:
        """Of a head, however many bytes come: only its end is progress."""
        cycle, idle, self._idle = self.cycle, self._idle, False
        super().data_received(data)
        if self.cycle is not cycle:
            self._within(ANSWER_WITHIN_S)
        elif idle:
            self._within(HEAD_WITHIN_S)

    def on_response_complete(self) -> None:
        """Then the next request has its time; it may have come already."""
        cycle = self.cycle
        super().on_response_complete()
        if self.cycle is not cycle:
            self._within(ANSWER_WITHIN_S)
        elif not self.transport.is_closing():
            self._idle = True
            self._within(KEEP_ALIVE_S)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words
        """As every other error, JSON; what was asked for is not known."""
        content = json.dumps({"error": "this is no HTTP request that can be read"}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(content)))]
        answer = h11.Response(
            status_code=400, headers=[*headers, ("connection", "close")], reason=b"Bad Request"
        )
        with contextlib.suppress(h11.LocalProtocolError):  # an answer is on its way already
            for event in (answer, h11.Data(data=content), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _within(self, seconds: float) -> None:
        if self._end is not None:
            self._end.cancel()
        # Not close(), which waits until the other side has read what was written.
        self._end = self.loop.call_later(seconds, self.transport.abort)
