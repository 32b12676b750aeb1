"""The board's part of a report: what was sent, and the own place over time."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.campaign.contact import LOST
from kernelwright.leaderboard.base import Mode, State
from kernelwright.memory.records import SubmissionRecord
from kernelwright.report.records import Records


@dataclass(frozen=True)
class SubmissionRow:
    """A submission; ``score_ms`` and ``rank`` are the board's, of ranked ones that passed."""

    seconds: float
    candidate: str
    name: str
    mode: str
    state: str
    score_ms: float | None
    rank: int | None
    reason: str


@dataclass(frozen=True)
class PlaceRow:
    """The own place at a moment; ``gap`` is the share of the score that has to go for the next one."""

    seconds: float
    rank: int | None
    entries: int
    score_ms: float | None
    gap: float | None


@dataclass(frozen=True)
class BoardPart:
    """A campaign's board. ``places`` are those where something changed; ``summary`` is a sentence or two."""

    url: str
    goal: str
    summary: str
    calibration: str
    submissions: tuple[SubmissionRow, ...]
    places: tuple[PlaceRow, ...]


def board(records: Records) -> BoardPart | None:
    """``None`` for a campaign without a board."""
    url = records.notes.get("board_url") or records.settings.get("board")
    if not url:
        return None
    places = _changes(records)
    return BoardPart(
        url=f"{url}",
        goal=records.notes.get("goal") or f"{records.settings.get('goal') or ''}",
        summary=" ".join(filter(None, (_summary(places), _lost(records)))),
        calibration=f"{records.note('calibration').get('text', 'not done')}",
        submissions=tuple(_row(records, each) for each in records.submissions),
        places=places,
    )


def ranks_by_candidate(records: Records) -> Mapping[str, int | None]:
    """The place after each ranked submission that passed."""
    return {
        each.candidate: each.rank
        for each in records.submissions
        if each.mode == Mode.RANKED and each.state == State.PASSED
    }


def _row(records: Records, record: SubmissionRecord) -> SubmissionRow:
    found = (e for e in records.experiments if e.candidate == record.candidate)
    name = next((records.name(experiment) for experiment in found), record.candidate)
    return SubmissionRow(
        seconds=record.seconds,
        candidate=record.candidate,
        name=name,
        mode=record.mode,
        state=record.state,
        score_ms=_ms(record.score_s),
        rank=record.rank,
        reason=record.reason,
    )


def _changes(records: Records) -> tuple[PlaceRow, ...]:
    rows: list[PlaceRow] = []
    for place in records.places:
        gap = 1 - place.ahead_s / place.score_s if place.ahead_s and place.score_s else None
        row = PlaceRow(place.seconds, place.rank, place.entries, _ms(place.score_s), gap)
        if not rows or (rows[-1].rank, rows[-1].entries, rows[-1].score_ms) != (
            row.rank,
            row.entries,
            row.score_ms,
        ):
            rows.append(row)
    return tuple(rows)


def _summary(places: tuple[PlaceRow, ...]) -> str:
    held = [place for place in places if place.rank is not None]
    if not held:
        return "Nothing of this campaign is ranked."
    first, last = held[0], held[-1]
    gap = f" The next place takes {100 * last.gap:.2g} % less time." if last.gap and last.gap > 0 else ""
    way = "" if first.rank == last.rank else f", up from {first.rank}"
    way = way if not (first.rank and last.rank and last.rank > first.rank) else f", down from {first.rank}"
    return f"Rank {last.rank} of {last.entries}{way}.{gap}"


def _lost(records: Records) -> str:
    """That the board was gone when the campaign ended, as a sentence."""
    told = records.notes.get(LOST, "")
    return f"{told[:1].upper()}{told[1:]}." if told else ""


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds
