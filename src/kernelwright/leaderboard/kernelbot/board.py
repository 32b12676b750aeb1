"""One leaderboard of GPU MODE on one GPU, as a :class:`~kernelwright.leaderboard.base.Board`."""

from collections.abc import Callable
from typing import Final

from kernelwright.core.candidate import Candidate
from kernelwright.leaderboard.base import (
    BoardInfo,
    Limits,
    Mode,
    Place,
    Refused,
    Result,
    Sent,
    checked_tag,
)
from kernelwright.leaderboard.kernelbot.address import SCHEME, check_name
from kernelwright.leaderboard.kernelbot.answers import Leaderboard, Task
from kernelwright.leaderboard.kernelbot.client import Client
from kernelwright.leaderboard.kernelbot.credentials import HOW_TO_GET_ONE, NoCredential
from kernelwright.leaderboard.kernelbot.facts import BANNED, MAX_BYTES, RANKINGS, STAGES
from kernelwright.leaderboard.kernelbot.results import Case, result_of
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.untrusted import line

PAGE: Final = 100
MAX_PAGES: Final = 100


class KernelbotBoard:
    """``write`` makes the submission's text of a candidate. Without a credential only public things can be read.

    A submission is found again by its file's name, ``<tag>.py``. Raises UserError for malformed names.
    """

    idempotent = False
    """The server takes the same file again and again."""

    def __init__(
        self,
        base_url: str,
        leaderboard: str,
        gpu: str,
        credential: Secret | None,
        write: Callable[[Candidate], str],
        *,
        client: Client | None = None,
    ) -> None:
        self._leaderboard = check_name("leaderboard", leaderboard)
        self._gpu = check_name("GPU", gpu)
        self._known_user = credential is not None
        self._write = write
        self._client = client or Client(base_url, credential)
        self._cases: tuple[Case, ...] | None = None
        self._user: str | None = None

    @property
    def url(self) -> str:
        """As in ``kernelbot:vectoradd_v2@H100``."""
        return f"{SCHEME}{self._leaderboard}@{self._gpu}"

    async def info(self) -> BoardInfo:
        """The problem, of a large answer that holds all leaderboards: ask rarely."""
        boards = {board.name: board for board in await self._client.leaderboards()}
        found = boards.get(self._leaderboard)
        if found is None:
            raise Refused(
                f"{self.url}: there is no such leaderboard; kernelwright board list {SCHEME} names all"
            )
        if self._gpu not in found.gpu_types:
            raise Refused(f"{self.url}: no such GPU there: it has {line(', '.join(found.gpu_types))}")
        task = found.read_task()
        self._cases = task.benchmarks
        return _info(found, task, self._gpu)

    async def authorize(self) -> None:
        """Raises Unauthorized for a credential that the server refuses, and at once without one."""
        self._need_user()
        await self._client.own(self._leaderboard, 1)

    async def submit(self, candidate: Candidate, mode: Mode, tag: str) -> Sent:
        """Queue a candidate, once. After a BoardError that is no Refused it may have been taken: see find."""
        self._need_user()
        name, code = self._file_name(tag), self._write(candidate).encode()
        if len(code) > MAX_BYTES:
            raise Refused(f"{self.url}: the submission has {len(code)} bytes, more than {MAX_BYTES}")
        taken = await self._client.submit(self._leaderboard, self._gpu, STAGES[mode], name, code)
        return Sent(str(taken.details.id), mode, tag)

    async def find(self, tag: str, mode: Mode) -> Sent | None:
        """The newest own submission with this tag. The list does not say the mode: the tag has to."""
        self._need_user()
        name = self._file_name(tag)
        for page in range(MAX_PAGES):
            rows = await self._client.own(self._leaderboard, PAGE, page * PAGE)
            for row in rows:
                gpus = {run.gpu_type for run in row.runs}
                here = row.leaderboard_name == self._leaderboard and (not gpus or self._gpu in gpus)
                if row.file_name == name and here:
                    return Sent(str(row.id), mode, tag)
            if len(rows) < PAGE:
                return None
        raise Refused(f"{self.url}: more than {MAX_PAGES * PAGE} own submissions: delete old ones")

    async def result(self, sent: Sent) -> Result:
        """Where it stands. The board's server gives up after half an hour; give up after an hour."""
        self._need_user()
        answer = await self._client.submission(sent.submission)
        self._user = str(answer.user_id)
        if self._cases is None and any(run.mode == "benchmark" for run in answer.runs):
            await self.info()
        return result_of(sent, answer, self._cases or ())

    async def ranks(self, limit: int = 200) -> tuple[Place, ...]:
        """The rank table. Rows are the user's own by the user's number, which is no part of the credential."""
        rows = await self._client.ranking(self._leaderboard, self._gpu, limit)
        mine = await self._own_number() if rows else None
        places = (
            Place(
                rank=row.rank,
                user=line(row.user_name or f"user {row.user_id}", 100),
                score_s=row.submission_score,
                submission=str(row.submission_id),
                submitted=row.submission_time,
                mine=str(row.user_id) == mine,
            )
            for row in rows[:limit]
        )
        return tuple(sorted(places, key=lambda place: place.rank))

    async def close(self) -> None:
        """Give up connections."""
        await self._client.close()

    async def _own_number(self) -> str | None:
        """The user's number, from any of the own submissions; ``None`` when there are none yet."""
        if self._user is None and self._known_user:
            for row in await self._client.own(self._leaderboard, 1):
                self._user = str((await self._client.submission(str(row.id))).user_id)
        return self._user

    def _need_user(self) -> None:
        if not self._known_user:
            raise NoCredential(f"{self.url}: no credential for GPU MODE: {HOW_TO_GET_ONE}")

    def _file_name(self, tag: str) -> str:
        return f"{checked_tag(tag)}.py"


def _info(board: Leaderboard, task: Task, gpu: str) -> BoardInfo:
    limits = Limits(
        max_bytes=MAX_BYTES, test_timeout_s=task.test_timeout, ranked_timeout_s=task.ranked_timeout
    )
    return BoardInfo(
        name=board.name,
        device=gpu,
        ranking=RANKINGS[task.ranking_by],
        cases=task.benchmarks,
        deadline=board.deadline,
        devices=tuple(line(name, 50) for name in board.gpu_types),
        limits=limits,
        rules={"banned_words": (BANNED,), "portable": True},
    )
