"""The board's SQLite file: problems with their seeds, users, submissions. For one thread."""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from sqlite3 import Row
from typing import Final, Self

from kernelwright.board_server.opening import open_database
from kernelwright.board_server.records import Draft, Entry, Listing, Submission, User, Verdict
from kernelwright.board_server.text import local_time
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import CaseTime, Mode, State
from kernelwright.memory.database import Database

TOKEN_PREFIX: Final = "kwb"  # noqa: S105 - what tokens begin with
_PASSED: Final = "problem = ? AND device = ? AND mode = 'ranked' AND state = 'passed'"


class Store:
    """Everything that the board keeps. Nothing is in memory only: a kill loses no accepted submission."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._db = database
        self._clock = clock

    @classmethod
    def open(cls, path: Path, *, create: bool = True, clock: Callable[[], float] = time.time) -> Self:
        """The store in a file. Raises UserError."""
        return cls(open_database(path, create=create), clock)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # -- problems and devices -------------------------------------------------------------------------

    def adopt(self, listing: Listing) -> int:
        """The secret seed of a problem's inputs. Raises UserError where the name stood for other measurements."""
        name, protocol = listing.problem.name, json.dumps(listing.protocol, sort_keys=True)
        with self._db.transaction():
            row = {"name": name, "id": listing.problem.id, "protocol": protocol}
            secret = {"seed": secrets.randbits(62), "added": self._clock()}
            self._db.insert("problems", {**row, **secret}, unless_known=True)
            kept = self._db.rows("SELECT * FROM problems WHERE name = ?", name)[0]
        if (kept["id"], kept["protocol"]) != (listing.problem.id, protocol):
            raise UserError(
                f"{self._db.path}: {name} was measured there as another problem or by other rules "
                f"({kept['protocol']}): times would not compare, choose another --data"
            )
        return int(kept["seed"])

    def deadline(self, problem: str) -> float | None:
        """Unix time; ``None`` where there is none."""
        rows = self._db.rows("SELECT deadline FROM problems WHERE name = ?", problem)
        return rows[0]["deadline"] if rows else None

    def agreed_deadline(self, problem: str, asked: float | None) -> float | None:
        """The deadline that is to hold: the one asked for, else the one that is kept. Raises UserError.

        One that has passed stays: whoever had a token could read what others had sent.
        """
        kept, now = self.deadline(problem), self._clock()
        if asked is None or asked == kept:
            return kept
        if kept is not None and kept <= now:
            raise UserError(
                f"--deadline: that of {problem} passed at {local_time(kept)}, and sources are open since then: "
                "leave the option out, or begin a new board with another --data"
            )
        if asked <= now:
            raise UserError(f"--deadline {local_time(asked)}: has passed already: give a time to come")
        return asked

    def keep_deadlines(self, deadlines: Mapping[str, float | None]) -> None:
        """All of them, or none."""
        with self._db.transaction():
            for problem, deadline in deadlines.items():
                self._db.execute("UPDATE problems SET deadline = ? WHERE name = ?", deadline, problem)

    def adopt_device(self, name: str, model: str) -> None:
        """Raises UserError where the name stood for another device: their times would not compare."""
        with self._db.transaction():
            self._db.insert("devices", {"name": name, "model": model}, unless_known=True)
        kept = self._db.rows("SELECT model FROM devices WHERE name = ?", name)[0]["model"]
        if kept != model:
            raise UserError(
                f"{self._db.path}: {name} was {kept} there and is {model} here: choose another --data"
            )

    # -- users ----------------------------------------------------------------------------------------

    def new_token(
        self, name: str, *, seeder: bool = False, told: Callable[[str], None] = lambda _: None
    ) -> str:
        """A user's only token: an older one ends. Kept is its hash alone, so nobody can show it again.

        ``told`` gets it before the older one ends; where it raises, nothing has changed.
        """
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(24)
        token = f"{TOKEN_PREFIX}_{token_id}_{secret}"
        row = (name, token_id, _hash(token), int(seeder), self._clock())
        with self._db.transaction():
            self._db.execute(
                "INSERT INTO users (name, token_id, token_hash, seeder, made) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET token_id = excluded.token_id, token_hash = excluded.token_hash, "
                "seeder = excluded.seeder, made = excluded.made",
                *row,
            )
            told(token)
        return token

    def user_of(self, token: str) -> User | None:
        """Whose token it is. The public part finds the row; the whole is compared in constant time."""
        parts = token.split("_", 2)
        rows = self._db.rows("SELECT * FROM users WHERE token_id = ?", parts[1]) if len(parts) == 3 else []
        known = rows[0]["token_hash"] if rows else _hash("nobody")
        right = hmac.compare_digest(_hash(token), known)
        return User(rows[0]["name"], bool(rows[0]["seeder"])) if rows and right else None

    # -- submissions ----------------------------------------------------------------------------------

    def add(self, draft: Draft) -> Submission:
        """Keep a new submission; when this returns it is on the disk."""
        row = {
            **asdict(draft),
            "mode": draft.mode.value,
            "id": f"s{secrets.token_hex(8)}",
            "view_key": secrets.token_urlsafe(18),
            "submitted": self._clock(),
            "state": State.WAITING.value,
            "reason": "",
            "attempts": 0,
            "cases": "[]",
        }
        with self._db.transaction():
            number = self._db.insert("submissions", row)
        return _submission(self._db.rows("SELECT * FROM submissions WHERE number = ?", number)[0])

    def by_tag(self, draft: Draft) -> Submission | None:
        """What the draft's user sent under the same tag before."""
        return self._first(
            "user = ? AND problem = ? AND device = ? AND tag = ? AND mode = ?",
            draft.user, draft.problem, draft.device, draft.tag, draft.mode.value,
        )  # fmt: skip

    def by_id(self, submission: str) -> Submission | None:
        """The submission with a public id."""
        return self._first("id = ?", submission)

    def of_user(self, user: str, limit: int) -> list[Submission]:
        """A user's submissions, the newest first."""
        query = "SELECT * FROM submissions WHERE user = ? ORDER BY number DESC LIMIT ?"
        return [_submission(row) for row in self._db.rows(query, user, limit)]

    def sent_since(self, user: str, mode: Mode, since: float) -> list[float]:
        """When a user's submissions of a mode came, the oldest first."""
        query = "SELECT submitted FROM submissions WHERE user = ? AND mode = ? AND submitted > ? ORDER BY submitted"
        return [row["submitted"] for row in self._db.rows(query, user, mode.value, since)]

    def waiting(self, device: str, problems: Sequence[str], limit: int) -> list[Submission]:
        """The next ones of a device for problems that are served, in the order of arrival."""
        marks = ", ".join("?" * len(problems))
        query = (
            "SELECT * FROM submissions WHERE device = ? AND state = 'waiting' "  # noqa: S608 - question marks
            f"AND problem IN ({marks}) ORDER BY number LIMIT ?"
        )
        return [_submission(row) for row in self._db.rows(query, device, *problems, limit)]

    def begin(self, submission: Submission) -> None:
        """Its evaluation begins."""
        self._change(submission, "state = 'running', attempts = attempts + 1, started = ?", self._clock())

    def again(self, submission: Submission, *, counted: bool = True) -> None:
        """It waits once more; ``counted`` says whether the try was its own."""
        self._change(submission, "state = 'waiting', attempts = attempts - ?", 0 if counted else 1)

    def resume(self) -> None:
        """What a former server had begun waits once more."""
        with self._db.transaction():
            self._db.execute("UPDATE submissions SET state = 'waiting' WHERE state = 'running'")

    def end(self, submission: Submission, verdict: Verdict) -> None:
        """Its evaluation is over."""
        cases = json.dumps([asdict(case) for case in verdict.cases])
        self._change(
            submission, "state = ?, reason = ?, score_s = ?, cases = ?, ended = ?",
            verdict.state.value, verdict.reason, verdict.score_s, cases, self._clock(),
        )  # fmt: skip

    # -- standings ------------------------------------------------------------------------------------

    def entries(self, problem: str, device: str, *, every: bool = False) -> list[Entry]:
        """The rank table: the best of each user and entry's name, or ``every`` one; ties by time of arrival."""
        query = (
            "SELECT * FROM (SELECT number, id, user, entry, score_s, submitted, ROW_NUMBER() OVER "  # noqa: S608 - constants
            f"(PARTITION BY user, entry ORDER BY score_s, number) AS place FROM submissions WHERE {_PASSED}) "
            f"{'' if every else 'WHERE place = 1'} ORDER BY score_s, number"
        )
        return [_entry(row) for row in self._db.rows(query, problem, device)]

    def in_order(self, problem: str, device: str) -> list[Entry]:
        """All ranked ones that passed, in the order of arrival."""
        query = f"SELECT number, id, user, entry, score_s, submitted FROM submissions WHERE {_PASSED} ORDER BY number"  # noqa: S608 - constants
        return [_entry(row) for row in self._db.rows(query, problem, device)]

    def queue_length(self, device: str) -> int:
        """How many wait or run."""
        query = "SELECT COUNT(*) AS n FROM submissions WHERE device = ? AND state IN ('waiting', 'running')"
        return int(self._db.rows(query, device)[0]["n"])

    # -- the rest -------------------------------------------------------------------------------------

    def _first(self, condition: str, *values: str) -> Submission | None:
        rows = self._db.rows(f"SELECT * FROM submissions WHERE {condition}", *values)  # noqa: S608 - our own conditions
        return _submission(rows[0]) if rows else None

    def _change(self, submission: Submission, assignments: str, *values: str | float | None) -> None:
        with self._db.transaction():
            self._db.execute(
                f"UPDATE submissions SET {assignments} WHERE number = ?",  # noqa: S608 - our own assignments
                *values,
                submission.number,
            )


def _hash(token: str) -> str:
    """A token has 192 random bits: a plain hash of it cannot be turned round."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _entry(row: Row) -> Entry:
    return Entry(row["number"], row["id"], row["user"], row["entry"], row["score_s"], row["submitted"])


def _submission(row: Row) -> Submission:
    cases = tuple(CaseTime(**case) for case in json.loads(row["cases"]))
    texts = ("user", "problem", "device", "tag", "source", "configuration", "file", "entry")
    return Submission(
        draft=Draft(mode=Mode(row["mode"]), **{name: row[name] for name in texts}),
        number=row["number"],
        id=row["id"],
        view_key=row["view_key"],
        submitted=row["submitted"],
        verdict=Verdict(State(row["state"]), row["reason"], row["score_s"], cases),
        attempts=row["attempts"],
        started=row["started"],
        ended=row["ended"],
    )
