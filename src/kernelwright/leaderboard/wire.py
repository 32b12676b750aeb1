"""HTTP with a board's server, for every adapter: sizes and times are bounded, and every failure is a BoardError.

The credential travels in one header, to one address: redirects are not followed and cookies are not kept.
"""

import asyncio
import importlib
import logging
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import JsonValue

from kernelwright.core.errors import MissingError
from kernelwright.leaderboard.base import BoardError
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.untrusted import line, parse_json

INSTALL: Final = "pip install 'kernelwright[board]'"

_UNCONNECTED: Final[Mapping[type[BaseException], str]] = {
    socket.gaierror: "there is no host of that name",
    ConnectionRefusedError: "nobody listens there",
    ssl.SSLError: "it does not speak TLS as it should",
    TimeoutError: "it does not answer",
}

T = TypeVar("T")


class Unavailable(BoardError):  # noqa: N818 - reads as what happened
    """The server did not answer, or failed. A question may be asked again; a submission must be looked for."""


class Wire:
    """Requests to one server, none of them repeated.

    ``where`` names it in errors, ``headers`` go with every request, ``hidden`` is cut out of every answer, ``silence_s`` is the longest wait for the next
    bytes. ``client`` and ``transport`` are httpx's, for tests. The first request raises MissingError without httpx.
    """

    def __init__(
        self,
        where: str,
        base_url: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        hidden: Sequence[Secret],
        connect_s: float,
        silence_s: float,
        transport: Any = None,
        client: Any = None,
    ) -> None:
        self._where = where
        self._base_url = base_url
        self._headers = {"Accept-Encoding": "identity", "User-Agent": "kernelwright", **headers}
        self._timeouts = (connect_s, silence_s)
        self._transport = transport
        self._client = client
        self._closed = False
        self._hidden = hidden

    def __repr__(self) -> str:
        return f"Wire({self._where!r})"

    async def call(
        self,
        method: str,
        path: str,
        seconds: float,
        use: Callable[[Any], Awaitable[T]],
        headers: Mapping[str, str] = MappingProxyType({}),
        **parts: Any,
    ) -> T:
        """What ``use`` makes of the answer. ``headers`` go with this request; ``parts`` are httpx's: params, files, json.

        The library's errors hold the request and with it the credential: they end here, as nobody's context.
        """
        if self._closed:
            raise BoardError(f"{self._where}: the connection was closed")
        httpx = import_httpx()
        client = self._client = self._client or self._opened(httpx)
        try:
            async with (
                asyncio.timeout(seconds),
                client.stream(
                    method, self._base_url + path, headers={**self._headers, **headers}, **parts
                ) as answer,
            ):
                return await use(answer)
        except TimeoutError:
            failure = f"no answer within {seconds:g} s"
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            failure = (
                f"cannot be asked ({_unconnected(error)}): is the server running, and the address right?"
            )
        except httpx.TimeoutException:
            failure = "cannot be asked (it fell silent)"
        except httpx.RemoteProtocolError:
            failure = "cannot be asked (it closed the connection, or what it says is no HTTP)"
        except httpx.NetworkError:
            failure = "cannot be asked (the connection broke off)"
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError):
            # UnicodeError: a host's name that looks encoded (xn--) and is not.
            failure = "cannot be asked (the address is none, or its answer cannot be read)"
        raise Unavailable(f"{self._where}: {method} {line(path, 100)}: {failure}")

    def json(self, data: bytes) -> JsonValue:
        """What the server said, for every adapter: nothing of a credential is in it. Raises BoardError."""
        return parse_json(data, self._hidden, self._where)

    async def body(self, answer: Any, most: int) -> bytes:
        """All of an answer of at most ``most`` bytes. Raises BoardError."""
        return b"".join([piece async for piece in self.pieces(answer, most)])

    async def pieces(self, answer: Any, most: int) -> AsyncGenerator[bytes, None]:
        """Raw bytes: nothing is unpacked, so that a small answer cannot become a large one."""
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise BoardError(f"{self._where}: the answer is packed, which was not asked for")
        size = 0
        async with aclosing(answer.aiter_raw()) as raw:
            async for piece in raw:
                size += len(piece)
                if size > most:
                    raise BoardError(f"{self._where}: the answer is larger than {most} bytes")
                yield piece

    async def close(self) -> None:
        """Close the connections."""
        self._closed = True
        if self._client is not None:
            await self._client.aclose()

    def _opened(self, httpx: Any) -> Any:
        connect_s, silence_s = self._timeouts
        return httpx.AsyncClient(
            timeout=httpx.Timeout(silence_s, connect=connect_s),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            transport=self._transport,
        )


def _unconnected(error: BaseException) -> str:
    """Why there is no connection: the library wraps what the system said, several times over."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and each not in seen:
            seen.append(each)
            waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    for kind, words in _UNCONNECTED.items():
        if any(isinstance(each, kind) for each in seen):
            return words
    return "there is no way to it"


def import_httpx() -> Any:
    """The library, without its log: that quotes heads of answers, which may echo the credential."""
    try:
        module = importlib.import_module("httpx")
    except ImportError:
        raise MissingError(f"boards need httpx: {INSTALL}") from None
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return module
