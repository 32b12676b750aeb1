"""A board that ``kernelwright board serve`` serves, somewhere: docs/boards.md lists what it is asked.

Its answers are a stranger's: they are read into models, and anything odd is a BoardError of one line.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError

from kernelwright.core.candidate import Candidate
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import MissingError, UserError
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
)

if TYPE_CHECKING:
    import httpx

TOKEN_VARIABLE: Final = "KERNELWRIGHT_BOARD_TOKEN"  # noqa: S105 - a variable's name
TOKEN_FILE: Final = Path(".config/kernelwright/board-token")
INSTALL: Final = "pip install 'kernelwright[board]'"
TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.5
MAX_ANSWER_BYTES: Final = 8 * 2**20
FILES: Final = ("problem.toml", "reference.py", "baseline.cu")
_TOKEN: Final = re.compile(r"[\x21-\x7e]{8,200}")
_TAG: Final = re.compile(r"[A-Za-z0-9-]{1,40}")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")

T = TypeVar("T")
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

    Raises UserError for a URL that names no board. Without a ``token`` one can look, not submit.
    """

    idempotent = True
    """The board takes a tag once: a request that died may be sent again."""

    def __init__(
        self, url: str, token: str | None = None, *, client: "httpx.AsyncClient | None" = None
    ) -> None:
        self._base, self._problem, self._device = _parts(url)
        self.url = url
        self._token = SecretStr(token) if token else None
        self._client = client
        self._closed = False

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
            name=self._line(info.name),
            device=self._line(info.device),
            ranking=info.ranking,
            cases=tuple(info.cases),
            deadline=info.deadline,
            devices=tuple(self._line(device) for device in info.devices),
            limits=Limits(**info.limits.model_dump()),
        )

    async def submit(self, candidate: Candidate, mode: Mode, tag: str) -> Sent:
        """Send a candidate. The board knows a tag again and takes nothing twice."""
        return await self.send(candidate, mode, tag)

    async def send(self, candidate: Candidate, mode: Mode, tag: str, entry: str = "") -> Sent:
        """The same; ``entry`` names one of a seeder's entries."""
        _check_tag(tag)
        body = {
            "source": candidate.template.source,
            "configuration": dict(candidate.configuration),
            "file": _file_name(candidate.template.name),
            "mode": mode.value,
            "tag": tag,
            "device": self._device,
            "entry": entry,
        }
        answer = await self._ask("POST", f"{self._path}/submissions", body)
        return Sent(_read(_Submission, answer).id, mode, tag)

    async def find(self, tag: str, mode: Mode) -> Sent | None:
        """The own submission with this tag, or ``None``."""
        _check_tag(tag)
        query = {"tag": tag, "mode": mode.value, "device": self._device}
        try:
            answer = await self._ask("GET", f"{self._path}/submissions", query=query)
        except _NotThere:
            await self.info()  # no such board is an error, no such submission is not
            return None
        return Sent(_read(_Submission, answer).id, mode, tag)

    async def result(self, sent: Sent) -> Result:
        """Where it stands; times are medians."""
        answer = await self._ask("GET", f"/api/submissions/{quote(sent.submission, safe='')}")
        found = _read(_Submission, answer)
        return Result(
            submission=found.id,
            mode=found.mode,
            state=found.state,
            reason=self._line(found.reason, 2000),
            score_s=found.score_s,
            cases=tuple(CaseTime(**case.model_dump()) for case in found.cases),
        )

    async def ranks(self, limit: int = 200) -> tuple[Place, ...]:
        """The rank table, the best first."""
        query = {"limit": str(limit), "device": self._device}
        answer = await self._ask("GET", f"{self._path}/ranks", query=query)
        rows = _adapted(TypeAdapter(list[_Row]), answer)
        return tuple(
            Place(
                row.rank,
                self._line(row.user),
                row.score_s,
                self._line(row.submission),
                row.submitted,
                row.mine,
            )
            for row in rows
        )

    async def close(self) -> None:
        """Give up connections."""
        self._closed = True
        if self._client is not None:
            await self._client.aclose()

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
        texts = _adapted(TypeAdapter(dict[str, str]), answer)
        if missing := [name for name in FILES if name not in texts]:
            raise BoardError(f"{self.url}: sends no {missing[0]}")
        return {name: texts[name] for name in FILES}

    # -- asking ---------------------------------------------------------------------------------------

    @property
    def _path(self) -> str:
        return f"/api/boards/{self._problem}"

    async def _info(self) -> _Info:
        return _read(_Info, await self._ask("GET", self._path, query={"device": self._device}))

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        """One request, never repeated. Raises what the answer means."""
        if self._closed:
            raise BoardError(f"{self.url}: the connection was given up: open the board again")
        httpx = _httpx()
        client = self._client = self._client or httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False)
        headers = {"Authorization": f"Bearer {self._token.get_secret_value()}"} if self._token else {}
        given = {name: value for name, value in (query or {}).items() if value}
        try:
            async with client.stream(
                method, self._base + path, json=body, params=given, headers=headers
            ) as response:
                content = await _bounded(response)
        except httpx.HTTPError as error:
            raise BoardError(
                f"{self._base}: cannot be asked: {self._line(str(error)) or type(error).__name__}"
            ) from None
        except httpx.InvalidURL:
            raise BoardError(f"{self._base}: is no address that can be asked") from None
        if response.status_code not in {200, 201}:
            raise self._refusal(response.status_code, content, response.headers.get("Retry-After", ""))
        return content

    def _line(self, text: str, limit: int = 200) -> str:
        """A stranger's text on one line; the token, should it be echoed, is not in it."""
        shown = text.replace(self._token.get_secret_value(), "[hidden]") if self._token else text
        return _line(shown, limit)

    def _refusal(self, status: int, content: bytes, retry: str) -> BoardError:
        """What an answer that is no success means."""
        try:
            said = self._line(_Refusal.model_validate_json(content).error)
        except ValidationError:
            said = "no reason that can be read"
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


def find_token(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> str | None:
    """From ``$KERNELWRIGHT_BOARD_TOKEN``, else ``~/.config/kernelwright/board-token``; ``None`` without either.

    Raises UserError; its message never holds the token.
    """
    path = (home or Path.home()) / TOKEN_FILE
    where, token = f"${TOKEN_VARIABLE}", environment.get(TOKEN_VARIABLE, "").strip()
    if not token:
        try:
            where, token = str(path), path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            raise UserError(f"{path}: cannot be read as text: put the board's token there") from None
    if not _TOKEN.fullmatch(token):
        raise UserError(f"{where}: is no token: 'kernelwright board token NAME' makes one")
    return token


def _parts(url: str) -> tuple[str, str, str]:
    """Server, problem and device (empty: the server's first)."""
    wrong = UserError("a board of one's own is named by http://HOST:PORT/PROBLEM or .../PROBLEM@DEVICE")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or True)
    except ValueError:
        raise wrong from None
    if parts.username or parts.password:
        raise UserError("a board's URL holds no password: put the token into a file, see docs/boards.md")
    folder, _, last = parts.path.rstrip("/").rpartition("/")
    problem, _, device = last.partition("@")
    plain = url.isascii() and url.isprintable() and not parts.query and not parts.fragment
    if not usable or not plain or not _NAME.fullmatch(problem):
        raise wrong
    return f"{parts.scheme}://{parts.netloc}{folder}", problem, device


def _check_tag(tag: str) -> None:
    """Raises Refused."""
    if not _TAG.fullmatch(tag):
        raise Refused("a tag has up to 40 letters, digits and hyphens")


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise MissingError(f"boards need httpx: {INSTALL}") from None
    return httpx


async def _bounded(response: "httpx.Response") -> bytes:
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > MAX_ANSWER_BYTES:
            raise BoardError(f"the board's answer has more than {MAX_ANSWER_BYTES} bytes")
    return bytes(content)


def _read(model: type[T], content: bytes) -> T:
    return _adapted(TypeAdapter(model), content)


def _adapted(adapter: TypeAdapter[T], content: bytes) -> T:
    try:
        return adapter.validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BoardError(f"the board's answer makes no sense: {_line(where + ': ' + first['msg'])}") from None


def _file_name(name: str) -> str:
    """The template's name as the board takes it."""
    kept = re.sub(r"[^A-Za-z0-9._ -]", "-", name)[:80].lstrip("._ -")
    return kept or "candidate.cu"


def _line(text: str, limit: int = 200) -> str:
    """A stranger's text on one line, without control characters."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(text[: 4 * limit].split()))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
