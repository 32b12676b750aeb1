"""The memory: one SQLite file in WAL mode. Experiments are added, never changed.

One transaction per experiment: a process killed at any instant loses at most the experiment in flight.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import TypeAdapter

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import MemoryFileError
from kernelwright.core.outcome import CaseTiming, Outcome, StaticMetrics, Status
from kernelwright.memory.records import CampaignRecord, Experiment, Milestone, ProblemRecord, TemplateRecord
from kernelwright.memory.schema import MIGRATIONS

BUSY_TIMEOUT_S = 30.0
_STATIC = TypeAdapter(StaticMetrics)


class Memory:
    """Typed access to the file. Raises MemoryFileError, one line, when the file cannot be used."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self.path = path

    @classmethod
    def open(cls, path: Path, *, create: bool = True, read_only: bool = False) -> Self:
        """Open the file; make it and its folder when ``create``. Older formats are brought up to date."""
        if not path.exists() and (read_only or not create):
            raise MemoryFileError(
                f"{path}: there is no memory here yet: begin with 'kernelwright run PROBLEM'"
            )
        with _readable(path):
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            mode = "ro" if read_only else "rwc"
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            db = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
            memory = cls(db, path)
            try:
                memory._prepare(read_only=read_only)
            except BaseException:
                db.close()
                raise
            return memory

    def _prepare(self, *, read_only: bool) -> None:
        version = self._version()
        if version > len(MIGRATIONS):
            raise MemoryFileError(
                f"{self.path}: written by a newer kernelwright (format {version}, this one knows "
                f"{len(MIGRATIONS)}): upgrade kernelwright"
            )
        self._db.execute("PRAGMA foreign_keys = ON")
        if read_only:
            if version < len(MIGRATIONS):
                raise MemoryFileError(f"{self.path}: an older format: run any command that writes once")
            return
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        if version < len(MIGRATIONS):
            with self._transaction():
                for migrate in MIGRATIONS[self._version() :]:
                    migrate(self._db)
                self._db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with _readable(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    # -- writing --------------------------------------------------------------------------------------

    def start_campaign(self, campaign: CampaignRecord, problem: ProblemRecord) -> None:
        """A new campaign on a problem."""
        with self._transaction():
            self._insert("problems", asdict(problem), or_ignore=True)
            row = asdict(campaign)
            row["problem"] = row.pop("problem_id")
            self._insert("campaigns", row)

    def record(self, experiment: Experiment, template: TemplateRecord) -> int:
        """Add an experiment with its raw samples; its number. Refuses a candidate twice in a campaign."""
        outcome = experiment.outcome
        row = {
            "campaign": experiment.campaign,
            "candidate": experiment.candidate,
            "template": experiment.template,
            "configuration": experiment.configuration.key,
            "status": outcome.status,
            "reason": outcome.reason,
            "cost_ms": experiment.cost_ms,
            "score": experiment.score,
            "eligible": int(experiment.eligible),
            "why": experiment.why,
            "digest": outcome.artifact_digest,
            "twin_of": experiment.twin_of,
            "static": None if outcome.static is None else _STATIC.dump_json(outcome.static).decode(),
            "cost_seconds": json.dumps(outcome.seconds),
            "findings": json.dumps(outcome.findings),
            "seconds": experiment.seconds,
        }
        with self._transaction():
            entry = asdict(template) | {"parents": json.dumps(template.parents)}
            self._insert("templates", entry, or_ignore=True)
            number = self._insert("experiments", row)
            for position, timing in enumerate(outcome.cases):
                values = (number, position, timing.case, timing.method, timing.median_ms)
                samples = json.dumps(timing.samples_ms)
                self._db.execute(
                    "INSERT INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*values, samples, timing.max_error),
                )
        return number

    def milestone(self, milestone: Milestone) -> None:
        """A new incumbent."""
        with self._transaction():
            self._insert("milestones", asdict(milestone))

    def progress(self, campaign: str, state: str, seconds: float) -> None:
        """State and used time of a campaign."""
        with self._transaction():
            self._db.execute(
                "UPDATE campaigns SET state = ?, seconds = ? WHERE id = ?", (state, seconds, campaign)
            )

    def note(self, campaign: str, key: str, value: str) -> None:
        """Keep a fact of the campaign's environment; the newest value counts."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO environment VALUES (?, ?, ?)", (campaign, key, value))

    def _insert(self, table: str, row: dict[str, Any], *, or_ignore: bool = False) -> int:
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        verb = "INSERT OR IGNORE" if or_ignore else "INSERT"
        cursor = self._db.execute(f"{verb} INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))
        return int(cursor.lastrowid or 0)

    # -- reading --------------------------------------------------------------------------------------

    def campaigns(self) -> list[CampaignRecord]:
        """All campaigns, oldest first."""
        return [_campaign(row) for row in self._rows("SELECT * FROM campaigns ORDER BY started, rowid")]

    def campaign(self, name: str) -> CampaignRecord:
        """A campaign by its id, an unambiguous start of it, or ``last``."""
        known = self.campaigns()
        if name == "last" and known:
            return known[-1]
        found = [c for c in known if c.id == name] or [c for c in known if c.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        some = ", ".join(c.id for c in (found or known)[-5:]) or "none yet"
        what = "is ambiguous" if found else "is not in the memory"
        raise MemoryFileError(f"{self.path}: the campaign {name!r} {what} (there are: {some})")

    def problem(self, problem_id: str) -> ProblemRecord:
        """A problem as it was recorded."""
        return ProblemRecord(*next(self._rows("SELECT * FROM problems WHERE id = ?", problem_id)))

    def templates(self, campaign: str) -> dict[str, TemplateRecord]:
        """Templates of a campaign's experiments, by id."""
        query = "SELECT * FROM templates WHERE id IN (SELECT template FROM experiments WHERE campaign = ?)"
        rows = [TemplateRecord(*row[:-1], tuple(json.loads(row[-1]))) for row in self._rows(query, campaign)]
        return {row.id: row for row in rows}

    def experiments(self, campaign: str) -> Iterator[Experiment]:
        """Experiments of a campaign in the order in which they ended."""
        timings: dict[int, list[CaseTiming]] = {}
        query = (
            "SELECT m.* FROM measurements m JOIN experiments e ON e.number = m.experiment "
            "WHERE e.campaign = ? ORDER BY m.experiment, m.position"
        )
        for number, _, case, method, _, samples, error in self._rows(query, campaign):
            timings.setdefault(number, []).append(CaseTiming(case, tuple(json.loads(samples)), method, error))
        for row in self._rows("SELECT * FROM experiments WHERE campaign = ? ORDER BY number", campaign):
            yield _experiment(row, tuple(timings.get(row["number"], ())))

    def milestones(self, campaign: str) -> list[Milestone]:
        """Incumbents in the order in which they took the lead."""
        query = "SELECT * FROM milestones WHERE campaign = ? ORDER BY experiment"
        return [Milestone(*row) for row in self._rows(query, campaign)]

    def notes(self, campaign: str) -> dict[str, str]:
        """Facts of the campaign's environment."""
        return dict(
            tuple(row)
            for row in self._rows("SELECT key, value FROM environment WHERE campaign = ?", campaign)
        )

    def _rows(self, query: str, *values: object) -> Iterator[sqlite3.Row]:
        with _readable(self.path):
            cursor = self._db.cursor()
            cursor.row_factory = sqlite3.Row
            yield from cursor.execute(query, values)


def _campaign(row: sqlite3.Row) -> CampaignRecord:
    return CampaignRecord(*row)


def _experiment(row: sqlite3.Row, timings: tuple[CaseTiming, ...]) -> Experiment:
    outcome = Outcome(
        status=Status(row["status"]),
        reason=row["reason"],
        static=None if row["static"] is None else _STATIC.validate_json(row["static"]),
        cases=timings,
        artifact_digest=row["digest"],
        seconds=json.loads(row["cost_seconds"]),
        findings=tuple(json.loads(row["findings"])),
    )
    return Experiment(
        campaign=row["campaign"],
        candidate=row["candidate"],
        template=row["template"],
        configuration=Configuration.from_key(row["configuration"]),
        outcome=outcome,
        why=row["why"],
        seconds=row["seconds"],
        cost_ms=row["cost_ms"],
        score=row["score"],
        eligible=bool(row["eligible"]),
        twin_of=row["twin_of"],
        number=row["number"],
    )


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What SQLite and the file system say, as one line with the mend."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise MemoryFileError(f"{path}: refused: {error}") from None
    except sqlite3.DatabaseError as error:
        raise MemoryFileError(f"{path}: {_meaning(str(error))}") from None
    except OSError as error:
        raise MemoryFileError(
            f"{path}: cannot be used ({error.strerror}): choose another place with --dir"
        ) from None


def _meaning(message: str) -> str:
    if "not a database" in message or "malformed" in message:
        return f"not a usable memory ({message}): move it away, or choose another place with --dir"
    if "readonly" in message or "unable to open" in message:
        return f"cannot be written ({message}): choose another place with --dir"
    if "locked" in message:
        return "another process has been writing for long: try again when it is done"
    if "full" in message:
        return "the disk is full: free some space, nothing recorded is lost"
    return message
