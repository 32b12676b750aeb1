"""Sends candidates to a board so that nothing is sent twice, whatever ends in between.

What is about to be sent is in the memory before it is sent. A record that a kill left there as ``intended`` is looked
for on the board by its tag: found, it is taken over; not found, it is sent again only to a board that takes a tag
once (``Board.idempotent``), since elsewhere a request that died may still arrive.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, Final

from kernelwright.campaign.scene import Scene
from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import KernelwrightError
from kernelwright.core.identity import content_id
from kernelwright.leaderboard.base import Board, BoardError, Mode, RateLimited, Refused, Result, Sent, State
from kernelwright.memory.records import SubmissionRecord

INTENDED: Final = "intended"
POSTPONED: Final = "postponed"
REFUSED: Final = "refused"
UNCLEAR: Final = "unclear"
UNDER_WAY: Final = frozenset({State.WAITING.value, State.RUNNING.value})
OPEN: Final = frozenset({INTENDED, POSTPONED, *UNDER_WAY})
"""States after which something has still to be done."""
NOT_TAKEN: Final = frozenset({POSTPONED, REFUSED})
"""States of what no board has counted."""
TRIES: Final = 4
FIRST_WAIT_S: Final = 1.0
MOST_WAIT_S: Final = 15.0
MAX_REASON: Final = 400


def tag_of(candidate: Candidate, mode: Mode, board: str) -> str:
    """Equal content and mode have one tag on a board (its URL names the device too), in every campaign."""
    return f"kw-{content_id('submission', board, candidate.id, mode.value)}"


class Outbox:
    """One campaign's submissions to one board. Raises BoardError where a board does not answer for long."""

    def __init__(
        self,
        board: Board,
        scene: Scene,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._board = board
        self._scene = scene
        self.sleep = sleep
        self._clock = clock
        self.records = {record.tag: record for record in scene.memory.submissions(scene.campaign)}

    def find(self, candidate: Candidate, mode: Mode) -> SubmissionRecord | None:
        """What is known of a candidate."""
        return self.records.get(tag_of(candidate, mode, self._board.url))

    async def deliver(self, candidate: Candidate, mode: Mode) -> SubmissionRecord:
        """Send it unless that was done, and wait for its end. Raises RateLimited: then it was surely not taken."""
        record = self.find(candidate, mode)
        if record is None or record.state in {INTENDED, POSTPONED}:
            record = await self._send(candidate, mode, record)
        while record.state in UNDER_WAY:
            record = await self._follow(record)
        return record

    def as_json(self) -> list[dict[str, Any]]:
        """For scripts, in the order in which they were sent."""
        shown = ("candidate", "mode", "state", "score_s", "rank")
        records = sorted(self.records.values(), key=lambda record: record.intended)
        return [{name: getattr(record, name) for name in shown} for record in records]

    def under_way(self) -> list[str]:
        """What was sent, or may have been, and has not ended as far as is known: for people."""
        return [
            f"{record.mode} submission of {self._scene.candidates.get(record.candidate, record.candidate)}"
            for record in self.records.values()
            if record.state in OPEN - NOT_TAKEN
        ]

    def ranked(self, submission: SubmissionRecord, rank: int | None) -> None:
        """Keep the place after a submission."""
        self._keep(replace(submission, rank=rank))

    async def _send(
        self, candidate: Candidate, mode: Mode, known: SubmissionRecord | None
    ) -> SubmissionRecord:
        """Take over what the board has, else send; a request that died is looked for before anything else."""
        record = known or self._new(candidate, mode)
        tag = record.tag
        may_be_there = known is not None and known.state == INTENDED
        for attempt in range(TRIES):
            found = await self._look(tag, mode)
            if found is not None:
                return self._keep(self._accepted(record, found))
            if may_be_there and not self._board.idempotent:
                await self.sleep(FIRST_WAIT_S * 2**attempt)
                continue
            record = self._keep(replace(record, state=INTENDED, intended=self._clock()))
            try:
                sent = await self._board.submit(candidate, mode, record.tag)
            except RateLimited as error:
                self._keep(replace(record, state=POSTPONED, reason=_short(error)))
                raise
            except Refused as error:
                return self._keep(replace(record, state=REFUSED, reason=_short(error)))
            except BoardError as error:
                may_be_there, record = True, replace(record, reason=_short(error))
                await self.sleep(FIRST_WAIT_S * 2**attempt)
            except (
                KernelwrightError
            ) as error:  # what writes or looks through the file said no: nothing was sent
                return self._keep(replace(record, state=REFUSED, reason=_short(error)))
            else:
                return self._keep(self._accepted(record, sent))
        lost = "it may have been sent, the board does not know it: it is not sent again"
        return self._keep(replace(record, state=UNCLEAR, reason=f"{lost} {record.reason}".strip()))

    async def _look(self, tag: str, mode: Mode) -> Sent | None:
        """Asked again where it is not answered. Raises BoardError when it never is."""
        for attempt in range(TRIES - 1):
            try:
                return await self._board.find(tag, mode)
            except RateLimited as error:
                await self.sleep(error.retry_s or MOST_WAIT_S)
            except Refused:
                raise
            except BoardError:
                await self.sleep(FIRST_WAIT_S * 2**attempt)
        return await self._board.find(tag, mode)

    async def _follow(self, record: SubmissionRecord) -> SubmissionRecord:
        """Ask until it has ended, ever more rarely."""
        sent = Sent(record.submission, Mode(record.mode), record.tag)
        wait, silent = FIRST_WAIT_S, 0
        while True:
            try:
                result = await self._board.result(sent)
            except RateLimited as error:
                wait = max(wait, error.retry_s or MOST_WAIT_S)
            except Refused as error:
                return self._keep(replace(record, state=UNCLEAR, reason=_short(error)))
            except BoardError:
                silent += 1
                if silent > TRIES:
                    raise
            else:
                silent = 0
                if result.state.value != record.state:
                    record = self._keep(_with(record, result))
                if result.state.ended:
                    return record
            await self.sleep(wait)
            wait = min(1.5 * wait, MOST_WAIT_S)

    def _new(self, candidate: Candidate, mode: Mode) -> SubmissionRecord:
        return SubmissionRecord(
            campaign=self._scene.campaign,
            tag=tag_of(candidate, mode, self._board.url),
            candidate=candidate.id,
            mode=mode.value,
            state=INTENDED,
            seconds=self._scene.budget.used,
            intended=self._clock(),
        )

    def _accepted(self, record: SubmissionRecord, sent: Sent) -> SubmissionRecord:
        return replace(
            record, state=State.WAITING.value, submission=sent.submission, sent=self._clock(), reason=""
        )

    def _keep(self, record: SubmissionRecord) -> SubmissionRecord:
        self._scene.memory.submission(record)
        self.records[record.tag] = record
        return record


def _with(record: SubmissionRecord, result: Result) -> SubmissionRecord:
    cases = [{**asdict(each), "case": dict(each.case)} for each in result.cases]
    return replace(
        record,
        state=result.state.value,
        reason=result.reason[:MAX_REASON],
        score_s=result.score_s,
        cases=json.dumps(cases, default=str),
    )


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:MAX_REASON]
