"""What holds for every request: a body of bounded size that comes in time, and headers that browsers obey."""

import asyncio
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_WITHIN_S: Final = 30.0
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Reads the whole body before the application runs, so that nothing larger than the limit is ever held."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            async with asyncio.timeout(BODY_WITHIN_S):
                body = None if self._too_much(scope) else await self._body(receive)
        except TimeoutError:
            await _error(408, "the request's body did not come in time")(scope, receive, sending)
            return
        except _Gone:
            return
        if body is None:
            text = f"the request's body has more than {self._max_bytes} bytes"
            await _error(413, text)(scope, receive, sending)
            return
        await self._app(scope, _replayed(body, receive), sending)

    def _too_much(self, scope: Scope) -> bool:
        """What its head announces is not waited for."""
        announced = Headers(scope=scope).get("content-length", "0")
        return announced.isascii() and announced.isdigit() and int(announced) > self._max_bytes

    async def _body(self, receive: Receive) -> bytes | None:
        """``None`` when it is too large; what more comes is not read. Raises _Gone: half a body is nobody's request."""
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self._max_bytes:
                return None
            if message["type"] == "http.disconnect":
                raise _Gone
            if not message.get("more_body", False):
                return bytes(body)


class _Gone(Exception):  # noqa: N818 - reads as what happened
    """Nobody is there any more."""


def _error(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status, headers={"Connection": "close"})


def _replayed(body: bytes, receive: Receive) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
