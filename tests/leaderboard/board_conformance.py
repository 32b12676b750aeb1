"""What every Board keeps, tested with one acceptable candidate.

Derive from BoardConformance and give it a fixture ``subject``. The board may have submissions of others, and it has to
accept a test, a benchmark and a ranked submission of one user. A fixture for every test gives a fresh board.
"""

import asyncio
import time
from dataclasses import dataclass

import pytest

from kernelwright.core.candidate import Candidate
from kernelwright.leaderboard.base import Board, BoardError, Mode, Refused, Result, Sent, State

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Subject:
    """A board, what it accepts, and how often to look at a result."""

    board: Board
    candidate: Candidate
    poll_s: float = 0.01

    async def ended(self, sent: Sent) -> Result:
        """The result once nothing more will come."""
        async with asyncio.timeout(PATIENCE_S):
            while not (result := await self.board.result(sent)).state.ended:
                assert result.score_s is None
                await asyncio.sleep(self.poll_s)
        return result


class BoardConformance:
    """The fixture ``subject`` gives a :class:`Subject`."""

    async def test_the_problem_is_told(self, subject: Subject) -> None:
        info = await subject.board.info()
        assert info.name
        assert info.name in subject.board.url
        assert info.device
        assert not info.devices or info.device in info.devices
        assert info.cases
        assert info.deadline is None or info.deadline > time.time()

    async def test_the_user_may_submit(self, subject: Subject) -> None:
        await subject.board.authorize()

    async def test_a_test_passes_without_a_score(self, subject: Subject) -> None:
        sent = await subject.board.submit(subject.candidate, Mode.TEST, "conform-test")
        assert sent == Sent(sent.submission, Mode.TEST, "conform-test")
        assert sent.submission
        result = await subject.ended(sent)
        assert (result.state, result.score_s) == (State.PASSED, None), result.reason
        assert (result.submission, result.mode) == (sent.submission, Mode.TEST)

    async def test_a_benchmark_gives_times_of_known_cases(self, subject: Subject) -> None:
        result = await subject.ended(
            await subject.board.submit(subject.candidate, Mode.BENCHMARK, "conform-bench")
        )
        assert (result.state, result.score_s) == (State.PASSED, None), result.reason
        known = [dict(case) for case in (await subject.board.info()).cases]
        assert result.cases
        for time_of in result.cases:
            assert dict(time_of.case) in known
            assert 0 < time_of.mean_s < 3600
            assert time_of.best_s is None or 0 < time_of.best_s <= time_of.mean_s

    async def test_a_ranked_submission_takes_its_place(self, subject: Subject) -> None:
        board = subject.board
        assert (await subject.ended(await board.submit(subject.candidate, Mode.TEST, "conform-a"))).state is (
            State.PASSED
        )
        result = await subject.ended(await board.submit(subject.candidate, Mode.RANKED, "conform-b"))
        assert result.state is State.PASSED, result.reason
        assert result.score_s is not None
        places = await board.ranks()
        assert [place.rank for place in places] == sorted(place.rank for place in places)
        assert places[0].rank == 1
        assert [place.score_s for place in places] == sorted(place.score_s for place in places)
        (mine,) = [place for place in places if place.mine]
        assert mine.score_s == pytest.approx(result.score_s, rel=1e-6)
        assert len({place.user for place in places}) == len(places)
        assert await board.ranks(limit=1) == places[:1]

    async def test_what_was_sent_is_found_again(self, subject: Subject) -> None:
        board = subject.board
        assert await board.find("conform-lost", Mode.TEST) is None
        sent = await board.submit(subject.candidate, Mode.TEST, "conform-lost")
        assert await board.find("conform-lost", Mode.TEST) == sent
        assert (await subject.ended(sent)).state is State.PASSED
        assert await board.find("conform-lost", Mode.TEST) == sent
        assert await board.find("conform", Mode.TEST) is None

    async def test_an_unknown_submission_is_refused(self, subject: Subject) -> None:
        with pytest.raises(Refused):
            await subject.board.result(Sent("99999999", Mode.TEST, "conform-none"))

    @pytest.mark.parametrize("tag", ["", "a/b", "../x", "a b", "a\n", "x" * 41, "ä"])
    async def test_a_malformed_tag_is_refused(self, subject: Subject, tag: str) -> None:
        with pytest.raises(Refused):
            await subject.board.submit(subject.candidate, Mode.TEST, tag)
        with pytest.raises(Refused):
            await subject.board.find(tag, Mode.TEST)

    async def test_a_closed_board_says_so(self, subject: Subject) -> None:
        await subject.board.close()
        await subject.board.close()
        with pytest.raises(BoardError):
            await subject.board.info()
