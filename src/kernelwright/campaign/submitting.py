"""Sends verified improvements to a board, beside the search: the device never waits for it.

First the baseline goes there, for calibration. Then an incumbent is sent when duels show that it is faster than what
was sent last, by more than their noise, and when it has stood every check; a ranked submission always follows a test
of the same candidate that passed. One ranked submission is kept for the campaign's winner. Whatever a board does wrong
is a note and ends no campaign.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kernelwright.campaign.attaching import Attached
from kernelwright.campaign.calibration import Calibration, by_our_cases, calibrate
from kernelwright.campaign.contact import LOST, Contact, unreached
from kernelwright.campaign.outbox import NOT_TAKEN, OPEN, REFUSED, UNCLEAR, Outbox
from kernelwright.campaign.places import Places
from kernelwright.campaign.quota import Quota
from kernelwright.campaign.scene import Scene
from kernelwright.campaign.standing import Entry
from kernelwright.campaign.succession import Succession
from kernelwright.core.candidate import Candidate
from kernelwright.core.errors import KernelwrightError, MemoryFileError
from kernelwright.core.statistics import RELEVANT_GAIN
from kernelwright.leaderboard.base import CaseTime, Mode, RateLimited, State
from kernelwright.memory.records import SubmissionRecord

RANKS_EVERY_S: Final = 120.0
PAUSE_S: Final = 30.0
"""After a board that did not answer."""
ENOUGH: Final = 1 - RELEVANT_GAIN
"""Time over that of the candidate sent last that an improvement surely stays below."""
FAILURES_TO_STOP: Final = 3
"""Submissions that did not pass, one after the other, after which nothing more is sent."""
CALIBRATION: Final = "calibration"
_TIMES: Final = TypeAdapter(tuple[CaseTime, ...])


class Submitter:
    """One campaign's board. ``wish`` is the candidate that the device lane is asked to check in full."""

    def __init__(
        self,
        scene: Scene,
        attached: Attached,
        places: Places,
        *,
        checks: Succession,
        heard: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._scene = scene
        self._attached = attached
        self._checks = checks
        self._heard = heard
        self._baseline = ""
        self._clock = clock
        self._quota = Quota(attached.info.limits)
        self._news = asyncio.Event()
        self._failures = 0
        self._read_at = 0.0
        self._begun = False
        self._cleared: dict[str, bool] = {}
        self._task: asyncio.Task[None] | None = None
        self.places = places
        self.contact = Contact(attached.board, clock)
        self.outbox = Outbox(self.contact, scene, sleep=sleep, clock=clock)
        self.wish = ""
        self.stopped = "" if attached.submit else "nothing is sent without --submit"
        self.calibration: Calibration | None = None

    # -- life -----------------------------------------------------------------------------------------

    def start(self, baseline: Entry, stop: asyncio.Event) -> None:
        """Begin beside the search."""
        self._baseline = baseline.candidate
        self._task = asyncio.create_task(self._run(baseline, stop))

    def news(self) -> None:
        """There is a new incumbent, or the campaign ends."""
        self._news.set()

    async def finish(self, *, winner: Entry | None) -> None:
        """Wait a bounded time for what is under way, send the winner, read the ranks; ``None`` sends nothing."""
        self.news()
        try:
            async with asyncio.timeout(self._attached.wait_s):
                if await self._ended() and winner is not None:
                    self._task = asyncio.create_task(self._last(winner))
                    await self._ended()
        except TimeoutError:
            self._note("what was sent is not waited for any longer: 'kernelwright resume' asks again")
        await self.close()

    async def close(self) -> None:
        """Give up what is in flight: what was sent, or may have been, is in the memory."""
        if self._task is not None:
            self._task.cancel()
            await self._ended()
        self._scene.memory.note(self._scene.campaign, LOST, self.lost())

    async def _ended(self) -> bool:
        """Wait for the task; whether it ended well. A fault of an adapter is told and ends no campaign."""
        task = self._task
        if task is None:
            return True
        await asyncio.wait({task})
        self._task = None
        if task.cancelled():
            return False
        if (error := task.exception()) is not None:
            self._note(f"nothing more is sent: {type(error).__name__}: {error}")
        return error is None

    # -- beside the search ----------------------------------------------------------------------------

    async def _run(self, baseline: Entry, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if not await self._carefully(self._turn(baseline, stop)):
                await self._rest(stop, PAUSE_S)

    async def _carefully(self, step: Awaitable[None]) -> bool:
        """Whether the step ended well; what a board or a file of it does wrong is told."""
        try:
            await step
        except KernelwrightError as error:
            self._note(f"{error}")
            return False
        return True

    async def _begin(self, baseline: Entry) -> None:
        """Again until it has worked once: nothing is sent before."""
        await self._read_ranks()
        await self._take_up()
        if not self.stopped:
            await self._calibrate(baseline)
        self._begun = True

    async def _take_up(self) -> None:
        """What an earlier sitting left unfinished; what was put off is decided anew."""
        for record in [each for each in self.outbox.records.values() if each.state in OPEN - NOT_TAKEN]:
            candidate = self._scene.candidates.get(record.candidate)
            if candidate is not None and not self.stopped:
                found = await self._deliver(candidate, Mode(record.mode))
                if found is not None and found.mode == Mode.RANKED:
                    await self._read_ranks(after=candidate)

    async def _turn(self, baseline: Entry, stop: asyncio.Event) -> None:
        self._news.clear()
        if not self._begun:
            await self._begin(baseline)
        if self._clock() - self._read_at > RANKS_EVERY_S:
            await self._read_ranks()
        leader = self._due(spare=1)
        if leader is None:
            await self._rest(stop, RANKS_EVERY_S)
            return
        wait = self._free_at() - self._clock()
        if wait > 0:
            await self._rest(stop, wait)
            return
        if leader.candidate not in self._cleared:
            self.wish = leader.candidate
            await self._rest(stop, RANKS_EVERY_S)
            return
        await self._submit(self._scene.candidates[leader.candidate])

    async def _rest(self, stop: asyncio.Event, seconds: float) -> None:
        """Until something is new or time has passed."""
        if not stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(max(seconds, 0.0)):
                    await self._news.wait()

    async def _last(self, winner: Entry) -> None:
        """After the search: the winner, and where that leads."""
        if self._begun and self._due(spare=0) is winner and await self._gains(winner):
            await self._carefully(self._when_free(self._scene.candidates[winner.candidate]))
        await self._carefully(self._read_ranks())

    async def _when_free(self, candidate: Candidate) -> None:
        """Send it as soon as the quota allows."""
        while not self._over() and not self._is_known(candidate.id):
            await self.outbox.sleep(max(0.0, self._free_at() - self._clock()))
            await self._submit(candidate)

    # -- what is sent ---------------------------------------------------------------------------------

    def _due(self, *, spare: int) -> Entry | None:
        """The incumbent, when it is to be sent; ``spare`` ranked submissions are kept."""
        leader = self._scene.standing.incumbent
        if self._over() or leader is None or self._left() <= spare:
            return None
        if self._cleared.get(leader.candidate) is False or self._is_known(leader.candidate):
            return None
        sure = self._sure_ratio(leader.candidate)
        return leader if sure is None or sure < ENOUGH else None

    def _over(self) -> bool:
        """Whether nothing is sent any more."""
        deadline = self._attached.info.deadline
        if not self.stopped and deadline is not None and self._clock() > deadline:
            self._stop("its deadline has passed")
        if not self.stopped and self._failures >= FAILURES_TO_STOP:
            self._stop(f"{self._failures} submissions did not pass, one after the other")
        return bool(self.stopped)

    def _left(self) -> int:
        """Ranked submissions that the campaign may still make."""
        made = [r for r in self.outbox.records.values() if r.mode == Mode.RANKED and r.state not in NOT_TAKEN]
        return self._attached.max_submissions - len(made)

    def _is_known(self, candidate: str) -> bool:
        """Whether it was sent, or will never be."""
        mine = [record for record in self.outbox.records.values() if record.candidate == candidate]
        return any(
            (record.mode == Mode.RANKED and record.state not in OPEN)
            or record.state in {REFUSED, UNCLEAR, State.FAILED, State.REJECTED, State.TIMED_OUT}
            for record in mine
        )

    def _sent_last(self) -> Entry:
        """What an improvement is measured by: the last sound candidate that the board has ranked, or the baseline."""
        standing = self._scene.standing
        for record in sorted(self.outbox.records.values(), key=lambda each: -each.intended):
            ranked = record.mode == Mode.RANKED and record.state == State.PASSED
            if ranked and record.candidate not in standing.disqualified:
                return standing.entry(record.candidate)
        return standing.entry(self._baseline)

    def _sure_ratio(self, candidate: str) -> float | None:
        """Time over that of the candidate sent last, at most: the upper ends of its duels' intervals multiplied.

        ``None`` when no row of duels that were won leads there.
        """
        won = {
            duel.challenger: duel
            for duel in self._scene.memory.duels(self._scene.campaign)
            if duel.promoted and duel.decision.high is not None
        }
        ratio, seen, target = 1.0, candidate, self._sent_last().candidate
        for _ in range(len(won) + 1):
            if seen == target:
                return ratio
            duel = won.get(seen)
            if duel is None:
                return None
            ratio *= duel.decision.high or 1.0
            seen = duel.incumbent
        return None

    def _free_at(self) -> float:
        now, records = self._clock(), self.outbox.records.values()
        return max(self._quota.free_at(mode, records, now) for mode in (Mode.TEST, Mode.RANKED))

    async def _submit(self, candidate: Candidate) -> None:
        """The test, and after it has passed the ranked one."""
        for mode in (Mode.TEST, Mode.RANKED):
            record = await self._deliver(candidate, mode)
            if record is None or record.state != State.PASSED:
                self._failures += record is not None
                return
        self._failures = 0
        self._note(f"{candidate} was sent")
        await self._read_ranks(after=candidate)

    async def _deliver(self, candidate: Candidate, mode: Mode) -> SubmissionRecord | None:
        """The submission when it has ended; ``None`` while the board's quota is used up."""
        try:
            record = await self.outbox.deliver(candidate, mode)
        except RateLimited as error:
            self._quota.limited(mode, error, self._clock())
            self._note(f"{mode} waits: {error}")
            return None
        if record.state != State.PASSED:
            self._note(f"{mode} of {candidate}: {record.state}: {record.reason or 'no reason given'}")
        return record

    async def _read_ranks(self, after: Candidate | None = None) -> None:
        """Our place; kept also with the ranked submission that it follows."""
        self._read_at = self._clock()
        await self.places.read(self.contact)
        if after is not None and (ranked := self.outbox.find(after, Mode.RANKED)) is not None:
            self.outbox.ranked(ranked, self.places.rank)
        self._heard()

    # -- calibration ----------------------------------------------------------------------------------

    async def _calibrate(self, baseline: Entry) -> None:
        """The baseline's times there and here. A board that tells no times of a ranked run is asked for a benchmark."""
        candidate = self._scene.candidates[baseline.candidate]
        modes = [Mode.TEST, Mode.RANKED] if self._attached.max_submissions > 1 else [Mode.TEST]
        official: tuple[CaseTime, ...] = ()
        for mode in (*modes, Mode.BENCHMARK):
            if mode is Mode.BENCHMARK and official:
                break
            record = await self._patient(candidate, mode)
            if record.state != State.PASSED:
                self._stop(f"the baseline did not pass there ({mode}: {record.state}: {record.reason})")
                return
            official = self._official(record) if mode is not Mode.TEST else ()
        self._compare(candidate, official)
        await self._read_ranks(after=candidate)

    def _official(self, record: SubmissionRecord) -> tuple[CaseTime, ...]:
        try:
            return tuple(_TIMES.validate_json(record.cases))
        except ValidationError:
            raise MemoryFileError(
                f"{self._scene.memory.path}: the times of submission {record.tag} are damaged or were tampered with: "
                "start a new campaign"
            ) from None

    async def _patient(self, candidate: Candidate, mode: Mode) -> SubmissionRecord:
        """Within the quota: calibration comes before anything else."""
        while True:
            wait = self._quota.free_at(mode, self.outbox.records.values(), self._clock()) - self._clock()
            known = self.outbox.find(candidate, mode)
            if wait <= 0 or (known is not None and known.state not in OPEN):
                record = await self._deliver(candidate, mode)
                if record is not None:
                    return record
                continue
            await self.outbox.sleep(wait)

    def _compare(self, candidate: Candidate, official: tuple[CaseTime, ...]) -> None:
        entry = self._scene.standing.entry(candidate.id)
        times = by_our_cases(official, self._attached.sizes, self._attached.known_cases)
        found = calibrate(entry.times, entry.errors, times)
        self.calibration = found
        self._note(f"calibration: {found.text}")
        told = {
            "agreement": found.agreement,
            "factor": found.factor,
            "ratios": found.ratios,
            "text": found.text,
        }
        self._scene.memory.note(self._scene.campaign, CALIBRATION, json.dumps(told))
        if not found.usable and not self._attached.uncalibrated:
            self._stop("times here do not tell what it will say (--uncalibrated sends nevertheless)")

    # -- what the device lane does for it -------------------------------------------------------------

    async def clear(self) -> None:
        """In the device lane: check the wished candidate in full, under the rules of problem and board."""
        leader, wish = self._scene.standing.incumbent, self.wish
        if not wish or leader is None:
            return
        self.wish = ""
        if leader.candidate == wish:
            self._cleared[wish] = await self._checks.clear(leader) and await self._gains(leader)
        self.news()

    async def _gains(self, entry: Entry) -> bool:
        """Whether it is faster than what was sent last; a duel of the two where no others tell."""
        sure = self._sure_ratio(entry.candidate)
        if sure is None:
            sure = await self._checks.against(entry, self._sent_last())
        return sure is not None and sure < ENOUGH

    # -- telling --------------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        now = self.places.now
        return {
            "url": self._attached.board.url,
            "rank": now.rank if now else None,
            "entries": now.entries if now else None,
            "score_s": now.score_s if now else None,
            "submissions": self.outbox.as_json(),
            "calibration": self.calibration.text if self.calibration else None,
            "stopped": self.stopped or None,
            "unreached": self.lost() or None,
        }

    def lost(self) -> str:
        """Of a board that has not answered to the end: since when, and what was not sent for that; else empty."""
        if self.contact.lost is None:
            return ""
        due = self._due(spare=0)
        unsent = self._scene.candidates[due.candidate] if due else None
        unknown = self.outbox.under_way()
        return unreached(self.contact.lost, sends=not self.stopped, unsent=unsent, unknown=unknown)

    def _stop(self, reason: str) -> None:
        self.stopped = reason
        self._note(f"nothing more is sent: {reason}")

    def _note(self, text: str) -> None:
        self._scene.listener.note(f"the board: {text}")
