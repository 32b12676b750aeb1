"""A small server of the same protocol that keeps what it is sent: for tests that need a board which changes.

It reorders the keys of specs, gives scores as texts, writes ``done`` before the job's last status, and moves a job on
by one step whenever it is looked at.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kernelwright.leaderboard.kernelbot.client import HEADER
from tests.leaderboard.kernelbot.recorded import SEED, serve

USERS = {"cli-alice": ("999", "alice"), "cli-robert": ("998", "robert")}
NAME, GPUS = "vectoradd_v2", ["A100", "H100"]
TESTS = [{"size": 128, "seed": 1}]
BENCHMARKS = [{"size": 1024, "seed": 54352}, {"size": 4096, "seed": 93246}]
MEAN_NS = {1024: 2500.0, 4096: 7500.0}
STEPS = (("pending", False), ("running", False), ("running", True), ("succeeded", True))


@dataclass
class Entry:
    """A submission and how often it was looked at."""

    number: int
    user: str
    name: str
    gpu: str
    mode: str
    looked: int = 0

    @property
    def ended(self) -> bool:
        return self.looked >= len(STEPS)

    def runs(self) -> list[dict[str, Any]]:
        """Public runs with results, then the secret ones of a ranked submission without."""
        modes = ["test", "benchmark", "leaderboard"] if self.mode == "leaderboard" else [self.mode]
        rows = []
        for secret in (False, True) if self.mode == "leaderboard" else (False,):
            for mode in modes:
                score = "0.00000433012701892" if mode == "leaderboard" else None
                row = {"mode": mode, "secret": secret, "runner": self.gpu, "score": score, "passed": True}
                shown = {"result": _result(mode)} if not secret and mode != "leaderboard" else {}
                rows.append(row | shown)
        return rows


def _result(mode: str) -> dict[str, str]:
    if mode == "test":
        return {
            "check": "pass",
            "test-count": "1",
            "test.0.spec": "seed: 1; size: 128",
            "test.0.status": "pass",
        }
    found = {"check": "pass", "benchmark-count": str(len(BENCHMARKS))}
    for i, case in enumerate(BENCHMARKS):
        mean = MEAN_NS[case["size"]]
        values = {
            "spec": f"seed: {case['seed']}; size: {case['size']}",
            "runs": "100",
            "mean": mean,
            "std": 1.5,
        }
        values |= {"err": 0.15, "best": mean - 2, "worst": mean + 9}
        found |= {f"benchmark.{i}.{key}": str(value) for key, value in values.items()}
    return found


@dataclass
class Stub:
    """The server's state."""

    entries: list[Entry] = field(default_factory=list)
    codes: list[bytes] = field(default_factory=list)

    async def leaderboards(self, request: Request) -> Response:
        task = {"lang": "py", "files": {"eval.py": ""}, "tests": TESTS, "benchmarks": BENCHMARKS}
        task |= {"test_timeout": 180, "ranked_timeout": 420, "ranking_by": "geom", "multi_gpu": False}
        row = {
            "id": 1,
            "name": NAME,
            "deadline": "2100-01-01T00:00:00+00:00",
            "task": task,
            "gpu_types": GPUS,
        }
        old = {"name": "old\x1b[31m\u202eboard", "deadline": "2020-01-01T00:00:00+00:00", "gpu_types": ["T4"]}
        return JSONResponse([row | {"secret_seed": SEED}, old, {"name": 5}])

    async def ranking(self, request: Request) -> Response:
        rows = [e for e in self.entries if e.mode == "leaderboard" and e.ended]
        best = {e.user: e for e in reversed(rows) if e.gpu == request.path_params["gpu"]}
        scores = [(4.33012701892e-6, user, str(e.number)) for user, e in best.items()]
        scores += [(3e-6, "17", "70"), (9e-6, "18", "80")]
        names = dict(USERS.values()) | {"17": "eve\x1b[2J"}
        table = [
            {
                "submission_id": int(number),
                "rank": i,
                "submission_name": "x.py",
                "submission_time": "2026-11-29T12:06:19.699822Z",
                "submission_score": score,
                "user_id": int(user),
                "user_name": names.get(user),
                "gpu_type": request.path_params["gpu"],
            }
            for i, (score, user, number) in enumerate(sorted(scores), start=1)
        ]
        return JSONResponse(table[: int(request.query_params.get("limit", 1000))])

    async def submit(self, request: Request) -> Response:
        user = USERS.get(request.headers.get(HEADER, ""))
        name, gpu, mode = (request.path_params[key] for key in ("name", "gpu", "mode"))
        if user is None:
            return refused(401, "Invalid or unauthorized auth header")
        form = await request.form()
        part = form["file"]
        assert isinstance(part, UploadFile)
        if name != NAME or gpu not in GPUS:
            return refused(
                400, f"failed to prepare submission request: 500: Leaderboard `{name}` does not exist."
            )
        self.codes.append(await part.read())
        self.entries.append(Entry(len(self.entries) + 1, user[0], part.filename or "", gpu, mode))
        await form.close()
        details = {"id": len(self.entries), "job_status_id": 4 * len(self.entries)}
        return JSONResponse({"details": details, "status": "accepted"}, 202)

    async def own(self, request: Request) -> Response:
        if request.headers.get(HEADER, "") not in USERS:
            return refused(401, "Invalid or unauthorized auth header")
        user = USERS[request.headers[HEADER]][0]
        limit, offset = (
            int(request.query_params.get(key, base)) for key, base in (("limit", 50), ("offset", 0))
        )
        if not 1 <= limit <= 100:
            return refused(400, "limit must be between 1 and 100")
        mine = [e for e in reversed(self.entries) if e.user == user][offset : offset + limit]
        return JSONResponse(
            [
                {
                    "id": e.number,
                    "leaderboard_name": NAME,
                    "file_name": e.name,
                    "done": e.ended,
                    "runs": [{"gpu_type": e.gpu, "score": "0.1"}]
                    if e.ended and e.mode == "leaderboard"
                    else [],
                }
                for e in mine
            ]
        )

    async def submission(self, request: Request) -> Response:
        number = int(request.path_params["number"])
        if not 1 <= number <= len(self.entries):
            return refused(404, "Submission not found")
        entry = self.entries[number - 1]
        if entry.user != USERS[request.headers[HEADER]][0]:
            return refused(403, "Not authorized to view this submission")
        status, done = STEPS[min(entry.looked, len(STEPS) - 1)]
        entry.looked += 1
        job = {"status": status, "error": None}
        runs = entry.runs() if done else []
        return JSONResponse({"id": number, "user_id": entry.user, "done": done, "runs": runs, "job": job})

    def app(self) -> Starlette:
        """The routes that the adapter uses."""
        return Starlette(
            routes=[
                Route("/leaderboards", self.leaderboards),
                Route("/submissions/{name}/{gpu}", self.ranking),
                Route("/submission/{name}/{gpu}/{mode}", self.submit, methods=["POST"]),
                Route("/user/submissions", self.own),
                Route("/user/submissions/{number}", self.submission),
            ]
        )


def refused(status: int, detail: str) -> Response:
    """As the server says no."""
    return JSONResponse({"detail": detail}, status)


@contextmanager
def stubbed() -> Iterator[tuple[str, Stub]]:
    """Base URL of a running stub, and its state."""
    stub = Stub()
    with serve(stub.app()) as url:
        yield url, stub
