"""The rank table of a board as a campaign sees it: where we stand, and how far the next places are."""

from math import isfinite
from typing import Final

from kernelwright.campaign.scene import Scene
from kernelwright.leaderboard.base import Board, Place
from kernelwright.memory.records import PlaceRecord

MOST: Final = 1000
"""Rows of the table that are read: whoever is below has no place that is known."""


class Places:
    """The newest table that was read. Names of other users go nowhere."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._table: tuple[Place, ...] = ()
        known = scene.memory.places(scene.campaign)
        self.now: PlaceRecord | None = known[-1] if known else None
        self._first: PlaceRecord | None = known[0] if known else None

    async def read(self, board: Board) -> PlaceRecord:
        """Read the table and keep our place. Raises BoardError."""
        rows = await board.ranks(MOST)
        table = [place for place in rows if isfinite(place.score_s) and place.score_s > 0]
        self._table = tuple(sorted(table, key=lambda place: place.rank))
        mine = next((place for place in self._table if place.mine), None)
        ahead = None if mine is None else self._score_of(mine.rank - 1)
        before = self.now
        self.now = PlaceRecord(
            campaign=self._scene.campaign,
            seconds=self._scene.budget.used,
            rank=mine.rank if mine else None,
            entries=len(self._table),
            score_s=mine.score_s if mine else None,
            ahead_s=ahead,
        )
        self._first = self._first or self.now
        self._scene.memory.place(self.now)
        if before is None or before.rank != self.now.rank:
            self._scene.listener.note(f"the board: {self.text}")
        return self.now

    @property
    def rank(self) -> int | None:
        """Our place, if we have one."""
        return self.now.rank if self.now else None

    @property
    def won(self) -> int | None:
        """Our place, if it is not that of an entry from before the campaign: the table has the best of each user.

        It is read before the first submission.
        """
        return None if self._from_before else self.rank

    @property
    def _from_before(self) -> bool:
        first, now = self._first, self.now
        return (
            first is not None
            and now is not None
            and first.score_s is not None
            and first.score_s == now.score_s
        )

    def gap(self, rank: int) -> float | None:
        """Share of our score that has to go for a place; ``None`` where that is not known or reached."""
        score, wanted = self.now.score_s if self.now else None, self._score_of(rank)
        if wanted is None and self.now is not None and self.now.rank == rank + 1:
            wanted = self.now.ahead_s
        if score is None or wanted is None or wanted >= score:
            return None
        return 1 - wanted / score

    @property
    def text(self) -> str:
        """For people."""
        now = self.now
        if now is None:
            return "its ranks were not read yet"
        if now.rank is None or now.score_s is None:
            return f"no entry of ours among {now.entries}"
        gap = self.gap(now.rank - 1)
        told = f"; {100 * gap:.2g} % less takes rank {now.rank - 1}" if gap else ""
        whose = ", an entry from before this campaign" if self._from_before else ""
        return f"rank {now.rank} of {now.entries} with {1e3 * now.score_s:.4g} ms{whose}{told}"

    def _score_of(self, rank: int) -> float | None:
        return next((place.score_s for place in self._table if place.rank == rank), None)
