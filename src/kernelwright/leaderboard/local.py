"""A board that ``kernelwright board serve`` serves, somewhere: docs/boards.md lists what it is asked.

Its answers are a stranger's: they are read into models, and anything odd is a BoardError of one line.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import (
    BoardError,
    BoardInfo,
    CaseTime,
    Limits,
    Mode,
    Place,
    Ranking,
    RateLimited,
    Refused,
    Result,
    Sent,
    State,
    Unauthorized,
    checked_tag,
)
from kernelwright.leaderboard.known import known_credentials
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.tokens import HOW_TO_GIVE_ONE, TOKEN_FILE, TOKEN_VARIABLE
from kernelwright.leaderboard.untrusted import line, read
from kernelwright.leaderboard.wire import Wire

SILENCE_S: Final = 30.0
CALL_S: Final = 120.0
QUESTION_S: Final = 30.0
"""Longest wait for an answer to what sends nothing, however slowly it drips."""
POLL_S: Final = 0.5
MAX_ANSWER_BYTES: Final = 8 * 2**20
FILES: Final = ("problem.toml", "reference.py", "baseline.cu")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")
_SERVER: Final = re.compile(r"(\[[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?\]|[A-Za-z0-9_.-]+)(:[0-9]{1,5})?")
"""A name, or IPv6 in brackets, and a port."""

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=4000)]


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Case(_Answer):
    case: dict[str, int]
    mean_s: Seconds
    std_s: float | None = Field(None, ge=0, allow_inf_nan=False)
    best_s: Seconds | None = None
    runs: int | None = Field(None, ge=0)


class _Submission(_Answer):
    id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    mode: Mode
    state: State
    reason: Text = ""
    score_s: Seconds | None = None
    cases: list[_Case] = Field(default_factory=list, max_length=1000)


class _Row(_Answer):
    rank: int = Field(ge=1)
    user: Text
    score_s: Seconds
    submission: Text = ""
    submitted: float | None = Field(None, allow_inf_nan=False)
    mine: bool = False


class _Limits(_Answer):
    max_bytes: int | None = None
    test_per_hour: int | None = None
    ranked_per_hour: int | None = None


class _Info(_Answer):
    name: Text
    device: Text
    devices: list[Text] = Field(default_factory=list, max_length=100)
    ranking: Ranking
    cases: list[dict[str, int]] = Field(max_length=1000)
    deadline: float | None = Field(None, allow_inf_nan=False)
    limits: _Limits = _Limits()
    facts: dict[str, Any] | None = None


class _Refusal(_Answer):
    error: str


class LocalBoard:
    """Implements :class:`~kernelwright.leaderboard.base.Board`. ``url`` is ``http://HOST:PORT/PROBLEM[@DEVICE]``.

    Raises UserError for a URL that names no board. Without a ``token`` one can look, not submit. ``call_s`` bounds
    one request, and :data:`QUESTION_S` one that sends nothing; ``client`` is httpx's, for tests.
    """

    idempotent = True
    """The board takes a tag once: a request that died may be sent again."""

    def __init__(
        self, url: str, token: str | None = None, *, client: Any = None, call_s: float = CALL_S
    ) -> None:
        self._base, self._problem, self._device = _parts(url)
        self.url = url
        self._token = Secret(token) if token else None
        hidden = known_credentials(self._token)
        self._call_s = call_s
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._wire = Wire(
            self._base,
            self._base,
            headers,
            hidden=hidden,
            connect_s=SILENCE_S,
            silence_s=SILENCE_S,
            client=client,
        )

    def __repr__(self) -> str:
        return f"LocalBoard({self.url!r})"

    @property
    def problem(self) -> str:
        """Name of the board's problem."""
        return self._problem

    # -- the protocol ---------------------------------------------------------------------------------

    async def info(self) -> BoardInfo:
        """The problem as the board has it."""
        info = await self._info()
        return BoardInfo(
            name=line(info.name),
            device=line(info.device),
            ranking=info.ranking,
            cases=tuple(info.cases),
            deadline=info.deadline,
            devices=tuple(line(device) for device in info.devices),
            limits=Limits(**info.limits.model_dump()),
        )

    async def authorize(self) -> None:
        """Raises Unauthorized for a token that the board refuses, and at once without one."""
        if self._token is None:
            raise Unauthorized(f"{self.url}: {HOW_TO_GIVE_ONE}")
        await self._ask("GET", "/api/submissions", query={"limit": "1"})

    async def submit(self, candidate: Candidate, mode: Mode, tag: str) -> Sent:
        """Send a candidate. The board knows a tag again and takes nothing twice."""
        return await self.send(candidate, mode, tag)

    async def send(self, candidate: Candidate, mode: Mode, tag: str, entry: str = "") -> Sent:
        """The same; ``entry`` names one of a seeder's entries."""
        body = {
            "source": candidate.template.source,
            "configuration": dict(candidate.configuration),
            "file": _file_name(candidate.template.name),
            "mode": mode.value,
            "tag": checked_tag(tag),
            "device": self._device,
            "entry": entry,
        }
        answer = await self._ask("POST", f"{self._path}/submissions", body)
        return Sent(read(_Submission, answer, self._base).id, mode, tag)

    async def find(self, tag: str, mode: Mode) -> Sent | None:
        """The own submission with this tag, or ``None``."""
        query = {"tag": checked_tag(tag), "mode": mode.value, "device": self._device}
        try:
            answer = await self._ask("GET", f"{self._path}/submissions", query=query)
        except _NotThere:
            await self.info()  # no such board is an error, no such submission is not
            return None
        return Sent(read(_Submission, answer, self._base).id, mode, tag)

    async def result(self, sent: Sent) -> Result:
        """Where it stands; times are medians."""
        answer = await self._ask("GET", f"/api/submissions/{quote(sent.submission, safe='')}")
        found = read(_Submission, answer, self._base)
        return Result(
            submission=found.id,
            mode=found.mode,
            state=found.state,
            reason=line(found.reason, 2000),
            score_s=found.score_s,
            cases=tuple(CaseTime(**case.model_dump()) for case in found.cases),
        )

    async def ranks(self, limit: int = 200) -> tuple[Place, ...]:
        """The rank table, the best first."""
        query = {"limit": str(limit), "device": self._device}
        answer = await self._ask("GET", f"{self._path}/ranks", query=query)
        rows = read(list[_Row], answer, self._base)
        return tuple(
            Place(
                row.rank,
                line(row.user),
                row.score_s,
                line(row.submission),
                row.submitted,
                row.mine,
            )
            for row in rows
        )

    async def close(self) -> None:
        """Give up connections."""
        await self._wire.close()

    # -- beyond it ------------------------------------------------------------------------------------

    async def ended(self, sent: Sent) -> Result:
        """Wait until nothing more will come."""
        while True:
            result = await self.result(sent)
            if result.state.ended:
                return result
            await asyncio.sleep(POLL_S)

    async def facts(self) -> DeviceFacts:
        """Facts of the board's device, for search spaces. Raises BoardError where it does not say them."""
        info = await self._info()
        try:
            return TypeAdapter(DeviceFacts).validate_python(info.facts)
        except ValidationError:
            raise BoardError(f"{self.url}: says no facts of its device") from None

    async def files(self) -> Mapping[str, str]:
        """Texts of the problem's files by name, as someone else wrote them."""
        answer = await self._ask("GET", f"{self._path}/problem")
        texts = read(dict[str, str], answer, self._base)
        if missing := [name for name in FILES if name not in texts]:
            raise BoardError(f"{self.url}: sends no {missing[0]}")
        return {name: texts[name] for name in FILES}

    # -- asking ---------------------------------------------------------------------------------------

    @property
    def _path(self) -> str:
        return f"/api/boards/{self._problem}"

    async def _info(self) -> _Info:
        return read(_Info, await self._ask("GET", self._path, query={"device": self._device}), self._base)

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> JsonValue:
        """One request, never repeated. Raises what the answer means."""

        async def use(answer: Any) -> tuple[int, str, bytes]:
            content = await self._wire.body(answer, MAX_ANSWER_BYTES)
            return answer.status_code, answer.headers.get("Retry-After", ""), content

        given = {name: value for name, value in (query or {}).items() if value}
        seconds = min(self._call_s, QUESTION_S) if method == "GET" else self._call_s
        status, retry, content = await self._wire.call(method, path, seconds, use, json=body, params=given)
        if status not in {200, 201}:
            raise self._refusal(status, content, retry)
        return self._wire.json(content)

    def _refusal(self, status: int, content: bytes, retry: str) -> BoardError:
        """What an answer that is no success means."""
        try:
            said = line(read(_Refusal, self._wire.json(content), self._base).error)
        except BoardError:
            said = ""
        said = said or "no reason that can be read"
        message = f"the board says {status}: {said}"
        if status == 401:
            return Unauthorized(f"{message} (from ${TOKEN_VARIABLE} or ~/{TOKEN_FILE})")
        if status == 429:
            seconds = float(retry) if retry.isascii() and retry.isdigit() and len(retry) < 8 else None
            return RateLimited(message, seconds)
        if status == 404:
            return _NotThere(message)
        return Refused(message) if status in {400, 403, 405, 409, 413, 422} else BoardError(message)


class _NotThere(Refused):
    """404."""


def _parts(url: str) -> tuple[str, str, str]:
    """Server, problem and device (empty: the server's first)."""
    wrong = UserError("a board of one's own is named by http://HOST:PORT/PROBLEM or .../PROBLEM@DEVICE")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or True)
    except ValueError:
        raise wrong from None
    if "@" in parts.netloc:
        raise UserError("a board's URL holds no password: put the token into a file, see docs/boards.md")
    folder, _, last = parts.path.rstrip("/").rpartition("/")
    problem, _, device = last.partition("@")
    plain = url.isascii() and url.isprintable() and not parts.query and not parts.fragment
    plain = plain and _SERVER.fullmatch(parts.netloc) is not None
    if not usable or not plain or not _NAME.fullmatch(problem):
        raise wrong
    return f"{parts.scheme}://{parts.netloc}{folder}", problem, device


def _file_name(name: str) -> str:
    """The template's name as the board takes it."""
    kept = re.sub(r"[^A-Za-z0-9._ -]", "-", name.rpartition("/")[2])[:80].lstrip("._ -")
    return kept or "candidate.cu"
