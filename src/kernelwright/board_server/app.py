"""The ASGI application: routes, guards, and every error as one line."""

from collections.abc import Callable
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kernelwright.board_server.api import Api
from kernelwright.board_server.guards import Guard
from kernelwright.board_server.pages import Pages
from kernelwright.board_server.requests import MAX_BODY_BYTES, Denied
from kernelwright.board_server.service import Service
from kernelwright.core.errors import KernelwrightError

_PHRASES: Final = {404: "there is nothing here", 405: "this way of asking is not for this address"}


def make_app(service: Service, notify: Callable[[str], None]) -> Starlette:
    """The application over a service; the evaluators run beside it. ``notify`` hears of faults of the store."""
    pages = Pages(service)

    def answer(
        request: Request, status: int, message: str, headers: dict[str, str] | None = None
    ) -> Response:
        if request.url.path.startswith("/api"):
            return JSONResponse({"error": message}, status, headers=headers)
        page = pages.error(status, message)
        page.headers.update(headers or {})
        return page

    def denied(request: Request, error: Exception) -> Response:
        assert isinstance(error, Denied)
        headers = {} if error.retry_s is None else {"Retry-After": f"{error.retry_s:.0f}"}
        if error.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return answer(request, error.status, str(error), headers)

    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        return answer(request, error.status_code, _PHRASES.get(error.status_code, error.detail), headers)

    def failed(request: Request, error: Exception) -> Response:
        notify(f"{type(error).__name__}: {error}")
        return answer(request, 503, "the board's file cannot be used just now: try again later")

    def broken(request: Request, error: Exception) -> Response:  # noqa: ARG001 - uvicorn prints it
        return answer(request, 500, "a fault of the board: its owner can read more on the server")

    return Starlette(
        routes=[*Api(service).routes(), *pages.routes()],
        middleware=[Middleware(Guard, max_bytes=MAX_BODY_BYTES)],
        exception_handlers={
            Denied: denied,
            HTTPException: refused,
            KernelwrightError: failed,
            Exception: broken,
        },
    )
