"""The board for people: rank table, chart, a form, a submission's state. No script, nothing from elsewhere."""

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from kernelwright.board_server import chart
from kernelwright.board_server.records import Listing, Submission
from kernelwright.board_server.requests import Denied, NewSubmission, read_submission, wants_every
from kernelwright.board_server.service import Service
from kernelwright.core.identity import content_id

SHOWN_ROWS: Final = 200
CHARTED: Final = 8
_WORDS: Final = {"true": True, "false": False}


@dataclass(frozen=True)
class _Filled:
    """What stays in the form when it comes back with an error; never the token."""

    mode: str = "test"
    configuration: str = ""
    message: str = ""


class Pages:
    """The pages over a service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._templates = _environment()
        self._style = (
            files("kernelwright.board_server").joinpath("templates/style.css").read_text(encoding="utf-8")
        )

    def routes(self) -> list[Route]:
        """All paths; the problems' names come last."""
        return [
            Route("/", self.index),
            Route("/style.css", self.style),
            Route("/submissions/{submission}", self.submission),
            Route("/{problem}", self.board),
            Route("/{problem}", self.submit, methods=["POST"]),
        ]

    async def style(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint's
        """The style sheet."""
        return Response(self._style, media_type="text/css")

    async def index(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint's
        """All boards."""
        rows = [
            (listing, device, self._service.entries(problem, device))
            for problem, listing in self._service.listings.items()
            for device in self._service.evaluators
        ]
        return self._page("index.html.j2", rows=rows, service=self._service)

    async def board(self, request: Request) -> Response:
        """One problem on one device."""
        listing = self._service.listing(request.path_params["problem"])
        device = self._service.device(request.query_params.get("device", ""))
        return self._board(listing, device, _Filled(), every=wants_every(request.query_params))

    async def submit(self, request: Request) -> Response:
        """The form was sent: on to the submission's page, or back with what is wrong."""
        listing = self._service.listing(request.path_params["problem"])
        device = self._service.device(request.query_params.get("device", ""))
        async with request.form(max_files=1, max_fields=8) as form:
            texts = {name: value for name, value in form.items() if isinstance(value, str)}
            filled = _Filled(texts.get("mode", "test"), texts.get("configuration", "")[:2000])
            try:
                user = self._service.user(texts.get("token", "").strip())
                sent = await _read_form(form, device)
                kept, _ = self._service.submit(user, listing.problem.name, sent)
            except Denied as error:
                again = _Filled(filled.mode, filled.configuration, str(error))
                return self._board(listing, device, again, status=error.status)
        return RedirectResponse(f"/submissions/{kept.id}?key={kept.view_key}", 303)

    async def submission(self, request: Request) -> Response:
        """Where a submission stands; who has its key may read why."""
        key = request.query_params.get("key", "")
        found, own = self._service.look(request.path_params["submission"], None, key)
        return self._page(
            "submission.html.j2",
            submission=found,
            own=own,
            refresh=not found.verdict.state.ended,
            rank=self._rank(found),
        )

    def error(self, status: int, message: str) -> Response:
        """What is shown where a page would be."""
        return self._page("error.html.j2", status, status=status, message=message)

    def _rank(self, submission: Submission) -> int | None:
        """Place in the table, where it is its user's best."""
        table = self._service.store.entries(submission.draft.problem, submission.draft.device)
        places = (n for n, entry in enumerate(table, start=1) if entry.submission == submission.id)
        return next(places, None)

    def _board(
        self, listing: Listing, device: str, filled: _Filled, *, status: int = 200, every: bool = False
    ) -> Response:
        service, problem = self._service, listing.problem.name
        steps = service.history(problem, device, CHARTED)
        charts = [chart.rank_chart(steps, time.time(), width) for width in (chart.WIDE, chart.NARROW)]
        return self._page(
            "board.html.j2",
            status,
            listing=listing,
            device=device,
            model=service.model(device),
            devices=list(service.evaluators),
            entries=service.entries(problem, device, every=every),
            shown_rows=SHOWN_ROWS,
            every=every,
            waiting=service.store.queue_length(device),
            charts=charts,
            rules=service.rules,
            deadline=service.store.deadline(problem),
            over=service.over(problem),
            filled=filled,
        )

    def _page(self, template: str, code: int = 200, **values: Any) -> Response:
        return HTMLResponse(self._templates.get_template(template).render(**values), code)


async def _read_form(form: FormData, device: str) -> NewSubmission:
    """The form as the API's record. Raises Denied."""
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Denied(422, "file: choose a .cu file that begins with a plan")
    try:
        source = (await file.read()).decode()
    except UnicodeDecodeError:
        raise Denied(422, "file: is no UTF-8 text") from None
    configuration = _configuration(str(form.get("configuration", "")))
    mode = str(form.get("mode", ""))
    # The same file again is the same submission: its name is its content's.
    tag = content_id("page", source, repr(sorted(configuration.items())))
    sent = {"source": source, "mode": mode, "tag": tag, "configuration": configuration, "device": device}
    return read_submission(json.dumps(sent).encode())


def _configuration(text: str) -> dict[str, bool | int | str]:
    """``BM=64 use_fast_math=true`` as values. Raises Denied."""
    values: dict[str, bool | int | str] = {}
    for part in text.replace(",", " ").split():
        name, found, value = part.partition("=")
        if not found or not name or not value:
            raise Denied(422, f"configuration: {part!r} is not NAME=VALUE")
        number = value.removeprefix("-").isdecimal() and value.isascii() and len(value) < 16
        values[name] = int(value) if number else _WORDS.get(value, value)
    return values


def _environment() -> Environment:
    """Autoescaped; undefined names are errors."""
    env = Environment(
        loader=PackageLoader("kernelwright.board_server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(duration=_duration, moment=_moment)
    return env


def _duration(seconds: float | None) -> str:
    """A kernel's time with its unit."""
    if seconds is None:
        return ""
    return f"{1e3 * seconds:.4g} ms" if seconds >= 1e-4 else f"{1e6 * seconds:.4g} µs"


def _moment(unix_time: float) -> str:
    return datetime.fromtimestamp(unix_time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
