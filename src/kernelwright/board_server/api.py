"""The board as JSON, under ``/api``. docs/boards.md lists the paths."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, Final

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kernelwright.board_server.records import Entry, Submission, User
from kernelwright.board_server.requests import Denied, read_submission, wants_every
from kernelwright.board_server.service import Service
from kernelwright.core.rules import MAX_SOURCE_BYTES
from kernelwright.leaderboard.base import Mode

MAX_ROWS: Final = 1000
HISTORY_TOP: Final = 10
MOST_TOP: Final = 50

Endpoint = Callable[[Request], Awaitable[Response]]


class Api:
    """The endpoints over a service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[Route]:
        """All paths."""
        board, submission = "/api/boards/{problem}", "/api/submissions/{submission}"
        return [
            Route("/api/boards", self.boards),
            Route(board, self.info),
            Route(f"{board}/problem", self.problem),
            Route(f"{board}/submissions", self.find),
            Route(f"{board}/submissions", self.submit, methods=["POST"]),
            Route(f"{board}/ranks", self.ranks),
            Route(f"{board}/history", self.history),
            Route("/api/submissions", self.own),
            Route(submission, self.submission),
            Route(f"{submission}/source", self.source),
        ]

    async def boards(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint's
        """Every problem on every device."""
        return _json([self._info(problem, device) for problem, device in self._pairs()])

    async def info(self, request: Request) -> Response:
        """One board."""
        problem = self._service.listing(request.path_params["problem"]).problem.name
        return _json(self._info(problem, self._service.device(request.query_params.get("device", ""))))

    async def problem(self, request: Request) -> Response:
        """The files of a problem's folder: a client can begin a campaign with them."""
        listing = self._service.listing(request.path_params["problem"])
        texts = {
            "problem.toml": listing.problem.toml,
            "reference.py": listing.problem.reference_source,
            "baseline.cu": listing.problem.baseline_source,
        }
        return _json(texts)

    async def submit(self, request: Request) -> Response:
        """Take a submission: 201, or 200 with the one that has this tag already."""
        user = self._service.user(_token(request))
        sent = read_submission(await request.body())
        kept, new = self._service.submit(user, request.path_params["problem"], sent)
        return _json(as_json(kept, own=True), 201 if new else 200)

    async def find(self, request: Request) -> Response:
        """The own submission with a tag."""
        user, query = self._service.user(_token(request)), request.query_params
        found = self._service.find(
            user, request.path_params["problem"], query.get("device", ""), query.get("tag", ""), _mode(query.get("mode", ""))
        )  # fmt: skip
        return _json(as_json(found, own=True))

    async def own(self, request: Request) -> Response:
        """The own submissions, the newest first."""
        user = self._service.user(_token(request))
        limit = _count(request.query_params, "limit", 50)
        return _json([as_json(each, own=True) for each in self._service.store.of_user(user.name, limit)])

    async def submission(self, request: Request) -> Response:
        """Where a submission stands."""
        found, own = self._service.look(request.path_params["submission"], self._maybe_user(request))
        return _json(as_json(found, own=own))

    async def source(self, request: Request) -> Response:
        """The text of a submission that one may read."""
        user = self._service.user(_token(request))
        draft = self._service.source(request.path_params["submission"], user).draft
        return _json({"source": draft.source, "configuration": draft.configuration, "file": draft.file})

    async def ranks(self, request: Request) -> Response:
        """The table: ``limit`` rows, ``entries=all`` for every submission."""
        query, user = request.query_params, self._maybe_user(request)
        every, limit = wants_every(query), _count(query, "limit", 200)
        entries = self._service.entries(request.path_params["problem"], query.get("device", ""), every=every)
        return _json([_row(n, entry, user) for n, entry in enumerate(entries[:limit], start=1)])

    async def history(self, request: Request) -> Response:
        """Changes of rank of those who lead now."""
        query = request.query_params
        top = _count(query, "top", HISTORY_TOP, MOST_TOP)
        steps = self._service.history(request.path_params["problem"], query.get("device", ""), top)
        return _json([asdict(step) for step in steps])

    def _pairs(self) -> list[tuple[str, str]]:
        return [
            (problem, device) for problem in self._service.listings for device in self._service.evaluators
        ]

    def _info(self, problem: str, device: str) -> dict[str, Any]:
        service = self._service
        listing, rules, facts = service.listings[problem], service.rules, service.evaluators[device].facts
        return {
            "name": problem,
            "title": listing.problem.spec.title,
            "device": device,
            "devices": list(service.evaluators),
            "facts": asdict(replace(facts, uuid="")) if facts else None,
            "ranking": listing.ranking.value,
            "slow_cases": listing.slow_cases,
            "cases": [dict(case.sizes) for case in listing.cases.values()],
            "deadline": service.store.deadline(problem),
            "limits": {
                "max_bytes": MAX_SOURCE_BYTES,
                "test_per_hour": rules.test_per_hour,
                "ranked_per_hour": rules.ranked_per_hour,
            },
            "waiting": service.store.queue_length(device),
        }

    def _maybe_user(self, request: Request) -> User | None:
        """Who asks; nobody without a token. A wrong token is refused, so that its owner learns of it."""
        token = _token(request)
        return self._service.user(token) if token else None


def as_json(submission: Submission, *, own: bool) -> dict[str, Any]:
    """A submission; what only its submitter may know is left out for others."""
    draft, verdict = submission.draft, submission.verdict
    shown = {
        "id": submission.id,
        "problem": draft.problem,
        "device": draft.device,
        "user": draft.user,
        "entry": draft.entry,
        "mode": draft.mode.value,
        "state": verdict.state.value,
        "score_s": verdict.score_s,
        "cases": [asdict(case) for case in verdict.cases],
        "submitted": submission.submitted,
    }
    private = {
        "tag": draft.tag,
        "file": draft.file,
        "configuration": draft.configuration,
        "reason": verdict.reason,
        "started": submission.started,
        "ended": submission.ended,
        "view": f"/submissions/{submission.id}?key={submission.view_key}",
    }
    return {**shown, **private} if own else shown


def _row(rank: int, entry: Entry, user: User | None) -> dict[str, Any]:
    return {
        "rank": rank,
        "user": entry.label,
        "score_s": entry.score_s,
        "submission": entry.submission,
        "submitted": entry.submitted,
        "mine": user is not None and entry.user == user.name,
    }


def _json(content: Any, status: int = 200) -> JSONResponse:
    return JSONResponse(content, status)


def _token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        raise Denied(422, f"mode: {', '.join(Mode)} is needed") from None


def _count(query: QueryParams, name: str, usual: int, most: int = MAX_ROWS) -> int:
    """A number of rows that may be asked for."""
    text = query.get(name, str(usual))
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) > most:
        raise Denied(422, f"{name}: a number from 0 to {most} is needed")
    return int(text)
