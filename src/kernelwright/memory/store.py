"""The memory: one SQLite file. Experiments are added, never changed.

One transaction per experiment: a process killed at any instant loses at most the experiment in flight.
"""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from itertools import groupby
from pathlib import Path
from sqlite3 import Row
from types import TracebackType
from typing import Final, Self

from kernelwright.core.errors import MemoryFileError
from kernelwright.core.outcome import Status
from kernelwright.memory.claims import Claims, Standing
from kernelwright.memory.database import Database, Value, damaged
from kernelwright.memory.opening import discard_unused, open_for_reading, open_for_writing
from kernelwright.memory.records import (
    CampaignRecord,
    CertificateRecord,
    Duel,
    Experiment,
    Milestone,
    PlaceRecord,
    ProblemRecord,
    ProfileRecord,
    RequestRecord,
    SubmissionRecord,
    TemplateRecord,
)
from kernelwright.memory.rows import (
    campaign_row,
    check_campaign,
    duel_row,
    experiment_row,
    measurement_row,
    proposal_row,
    read_note,
    template_row,
    to_campaign,
    to_duel,
    to_experiment,
    to_milestone,
    to_template,
)

_RUNNING: Final = "running"
_RUNNER: Final = "runner"
"""Note: the process that ran the campaign last."""
_NOTE: Final = "INSERT INTO environment VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_EXPERIMENTS = """
SELECT e.*, m.case_id, m.method, m.samples_ms, m.max_error, m.conditions, m.discarded, t.id NOTNULL AS has_template
FROM experiments e LEFT JOIN measurements m ON m.experiment = e.number
LEFT JOIN proposals p ON p.campaign = e.campaign AND p.template = e.template LEFT JOIN templates t ON t.id = p.template
WHERE {} ORDER BY e.number, m.position
"""
_TEMPLATES = """
SELECT t.id, t.name, t.source, p.proposer, p.direction, p.rationale, p.predicted, p.parents
FROM proposals p JOIN templates t ON t.id = p.template
JOIN (SELECT template, min(number) AS first FROM experiments WHERE campaign = ? GROUP BY template) e
ON e.template = t.id WHERE p.campaign = ? ORDER BY e.first
"""


class Memory:
    """Typed access to the file. Every method raises MemoryFileError, one line, when the file cannot be used."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._claims = Claims(Path(f"{database.path}.lock"))
        self.path = database.path

    @classmethod
    def open(cls, path: Path, *, create: bool = True, read_only: bool = False) -> Self:
        """Open the file; make it and its folder when ``create``. Older formats are brought up to date."""
        if read_only:
            return cls(open_for_reading(path))
        return cls(open_for_writing(path, create=create))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let go of what is claimed; a new one that no campaign came into goes again."""
        self._claims.release()
        if self._database.made:
            discard_unused(self._database)
        self._database.close()

    # -- writing --------------------------------------------------------------------------------------

    def start_campaign(
        self, campaign: CampaignRecord, problem: ProblemRecord, notes: Mapping[str, str] | None = None
    ) -> None:
        """A new campaign on a problem, with what is known of its environment: all or nothing, whatever ends in between."""
        with self._database.transaction():
            self._database.insert("problems", asdict(problem), unless_known=True)
            self._database.insert("campaigns", campaign_row(campaign))
            for key, value in (notes or {}).items():
                self._database.execute(_NOTE, campaign.id, key, value)

    def record(self, experiment: Experiment, template: TemplateRecord) -> int:
        """Add an experiment with its raw samples, all or nothing; its number. Refuses a candidate twice in a campaign."""
        database = self._database
        with database.transaction():
            database.insert("templates", template_row(template), unless_known=True)
            database.insert("proposals", proposal_row(template, experiment.campaign), unless_known=True)
            number = database.insert("experiments", experiment_row(experiment, time.time()))
            for position, timing in enumerate(experiment.outcome.cases):
                database.insert("measurements", measurement_row(number, position, timing))
        return number

    def milestone(self, milestone: Milestone) -> None:
        """A new incumbent, an experiment that is in the memory already."""
        with self._database.transaction():
            self._database.insert("milestones", asdict(milestone))

    def duel(self, duel: Duel) -> int:
        """Add a duel with its raw samples, all or nothing; its number."""
        with self._database.transaction():
            return self._database.insert("duels", duel_row(duel, time.time()))

    def certify(self, campaign: str, candidate: str, document: str) -> int:
        """Add a certificate; its number."""
        row: dict[str, Value] = {"campaign": campaign, "candidate": candidate, "document": document}
        row["recorded"] = time.time()
        with self._database.transaction():
            return self._database.insert("certificates", row)

    def profile(self, profile: ProfileRecord) -> int:
        """Add a profile; its number."""
        row: dict[str, Value] = {**asdict(profile), "recorded": time.time()}
        del row["number"]
        with self._database.transaction():
            return self._database.insert("profiles", row)

    def request(self, request: RequestRecord) -> None:
        """Keep a request to a model; its answer replaces what was kept when it was made."""
        self._keep("requests", asdict(request))

    def submission(self, submission: SubmissionRecord) -> None:
        """Keep a submission; what becomes known of it replaces what was kept before."""
        self._keep("submissions", asdict(submission))

    def _keep(self, table: str, values: dict[str, Value]) -> None:
        row: dict[str, Value] = {**values, "recorded": time.time()}
        columns = ", ".join(row)
        marks = ", ".join("?" for _ in row)
        with self._database.transaction():
            self._database.execute(
                f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})",  # noqa: S608 - our own columns
                *row.values(),
            )

    def place(self, place: PlaceRecord) -> None:
        """Add what a rank table said."""
        with self._database.transaction():
            self._database.insert("places", {**asdict(place), "recorded": time.time()})

    def claim(self, campaign: str) -> None:
        """Keep every other process from running the campaign until this memory is closed or the process ends."""
        for row in self._database.rows("SELECT rowid FROM campaigns WHERE id = ?", campaign):
            if not self._claims.claim(row[0]):
                raise MemoryFileError(
                    f"{self.path}: the campaign {campaign} is being run by another process: "
                    "wait for its end, or stop it first"
                )
            self.note(campaign, _RUNNER, self._claims.holder())

    def progress(self, campaign: str, state: str, seconds: float) -> None:
        """State and used time of a campaign."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE campaigns SET state = ?, seconds = ? WHERE id = ?", state, seconds, campaign
            )

    def note(self, campaign: str, key: str, value: str) -> None:
        """Keep a fact of the campaign's environment; the newest value counts."""
        with self._database.transaction():
            self._database.execute(_NOTE, campaign, key, value)

    # -- reading --------------------------------------------------------------------------------------

    def standing(self, campaign: str) -> Standing | None:
        """What can be told of the process of a campaign that stands as running; ``None`` of others. Nothing is written.

        ``None`` also where nobody noted who runs it, as older versions did not.
        """
        query = "SELECT c.rowid, e.value FROM campaigns c JOIN environment e ON e.campaign = c.id WHERE c.id = ? AND e.key = ?"
        for row, note in self._database.rows(query, campaign, _RUNNER):
            found = self._claims.standing(row, note)
            # One that has come to its end noted so before it let go: asked in this order, an end is never missed.
            if self._database.rows("SELECT 1 FROM campaigns WHERE id = ? AND state = ?", campaign, _RUNNING):
                return found
        return None

    def campaigns(self) -> list[CampaignRecord]:
        """All campaigns, oldest first."""
        return [
            to_campaign(row) for row in self._database.rows("SELECT * FROM campaigns ORDER BY started, rowid")
        ]

    def campaign(self, name: str) -> CampaignRecord:
        """A campaign by its id, an unambiguous start of it, or ``last``."""
        known = self.campaigns()
        found = [c for c in known if c.id == name] or [c for c in known if c.id.startswith(name)]
        found = known[-1:] if name == "last" else found
        if len(found) == 1:
            with self._readable(f"the campaign {found[0].id!r}"):
                check_campaign(found[0])
            return found[0]
        if not known and name == "last":
            raise MemoryFileError(
                f"{self.path}: no campaign is recorded here: begin one with 'kernelwright run PROBLEM'; one that was killed or "
                "ended before its record was written begins anew with the same command, what a detached device was asked is kept"
            )
        some = ", ".join(c.id for c in (found or known)[-5:]) or "none yet"
        what = "is ambiguous" if found else "is not in the memory"
        raise MemoryFileError(f"{self.path}: the campaign {name!r} {what} (there are: {some})")

    def problem(self, problem_id: str) -> ProblemRecord:
        """A problem as it was recorded."""
        for row in self._database.rows("SELECT * FROM problems WHERE id = ?", problem_id):
            return ProblemRecord(**dict(row))
        raise MemoryFileError(f"{self.path}: the problem {problem_id!r} is not in the memory")

    def templates(self, campaign: str) -> dict[str, TemplateRecord]:
        """Templates of a campaign's experiments by id, in the order of the first experiment of each."""
        rows = self._database.rows(_TEMPLATES, campaign, campaign)
        with self._readable(f"a template of {campaign}"):
            return {row["id"]: to_template(row) for row in rows}

    def experiments(self, campaign: str) -> Iterator[Experiment]:
        """Experiments of a campaign in the order in which they ended."""
        return self._experiments("e.campaign = ?", campaign)

    def experiment(self, campaign: str, name: str) -> Experiment:
        """One experiment by its number, its candidate's id, or an unambiguous start of that."""
        if name.isascii() and name.isdecimal():
            found = list(self._experiments("e.campaign = ? AND e.number = ?", campaign, int(name)))
        else:
            matches = "e.campaign = ? AND substr(e.candidate, 1, length(?)) = ?"
            found = list(self._experiments(matches, campaign, name, name))
        if len(found) == 1:
            return found[0]
        what = f"begins {len(found)} candidates" if found else "is no experiment"
        raise MemoryFileError(
            f"{self.path}: {name!r} {what} of {campaign}: see 'kernelwright show {campaign} --experiments'"
        )

    def find_experiment(self, campaign: str, candidate: str) -> Experiment | None:
        """The experiment of a candidate's whole id; ``None`` where it was not tried, never for a damaged record."""
        return next(self._experiments("e.campaign = ? AND e.candidate = ?", campaign, candidate), None)

    def find_measured(self, digest: str, problem_id: str, device_model: str) -> list[Experiment]:
        """Measured experiments of all campaigns with an equal binary, oldest first.

        Equal binaries are one kernel only when they are also launched alike: compare the plans and the cases.
        """
        return list(
            self._experiments(
                "e.digest = ? AND e.status = ? AND e.campaign IN "
                "(SELECT id FROM campaigns WHERE problem = ? AND json_extract(device, '$.model') = ?)",
                *(digest, Status.MEASURED, problem_id, device_model),
            )
        )

    def counts(self, campaign: str) -> dict[Status, int]:
        """How many experiments ended in which way, the most frequent first."""
        query = (
            "SELECT status, count(*) AS n FROM experiments WHERE campaign = ? "
            "GROUP BY status ORDER BY n DESC, status"
        )
        rows = self._database.rows(query, campaign)
        with self._readable(f"an experiment of {campaign}"):
            return {Status(status): n for status, n in rows}

    def milestones(self, campaign: str) -> list[Milestone]:
        """Incumbents in the order in which they took the lead; one can lead twice."""
        columns = "campaign, experiment, seconds, strategy, ratio, rank"
        query = f"SELECT {columns} FROM milestones WHERE campaign = ? ORDER BY number"  # noqa: S608 - our own columns
        rows = self._database.rows(query, campaign)
        with self._readable(f"a milestone of {campaign}"):
            return [to_milestone(row) for row in rows]

    def duels(self, campaign: str) -> list[Duel]:
        """Duels of a campaign in the order in which they ended."""
        rows = self._database.rows("SELECT * FROM duels WHERE campaign = ? ORDER BY number", campaign)
        with self._readable(f"a duel of {campaign}"):
            return [to_duel(row) for row in rows]

    def certificates(self, campaign: str) -> list[CertificateRecord]:
        """Certificates of a campaign, oldest first."""
        rows = self._database.rows("SELECT * FROM certificates WHERE campaign = ? ORDER BY number", campaign)
        return [CertificateRecord(**dict(row)) for row in rows]

    def profiles(self, campaign: str) -> list[ProfileRecord]:
        """Profiles of a campaign, oldest first."""
        rows = self._database.rows("SELECT * FROM profiles WHERE campaign = ? ORDER BY number", campaign)
        return [ProfileRecord(**dict(row)) for row in rows]

    def requests(self, campaign: str) -> list[RequestRecord]:
        """Requests to models in the order in which they were made."""
        columns = ", ".join(each.name for each in fields(RequestRecord))
        query = f"SELECT {columns} FROM requests WHERE campaign = ? ORDER BY id"  # noqa: S608 - our own columns
        return [RequestRecord(**dict(row)) for row in self._database.rows(query, campaign)]

    def submissions(self, campaign: str) -> list[SubmissionRecord]:
        """Submissions in the order in which they were intended."""
        columns = ", ".join(each.name for each in fields(SubmissionRecord))
        query = f"SELECT {columns} FROM submissions WHERE campaign = ? ORDER BY intended, tag"  # noqa: S608 - our own columns
        records = [SubmissionRecord(**dict(row)) for row in self._database.rows(query, campaign)]
        with self._readable(f"a submission of {campaign}"):
            for record in records:
                if not isinstance(json.loads(record.cases), list):
                    raise ValueError("its cases are no list")  # noqa: TRY004 - the record is at fault
        return records

    def places(self, campaign: str) -> list[PlaceRecord]:
        """The own places in the rank table, oldest first."""
        columns = ", ".join(each.name for each in fields(PlaceRecord))
        query = f"SELECT {columns} FROM places WHERE campaign = ? ORDER BY number"  # noqa: S608 - our own columns
        return [PlaceRecord(**dict(row)) for row in self._database.rows(query, campaign)]

    def notes(self, campaign: str) -> dict[str, str]:
        """Facts of the campaign's environment."""
        rows = self._database.rows("SELECT key, value FROM environment WHERE campaign = ?", campaign)
        with self._readable(f"a note of {campaign}"):
            return {key: read_note(key, value) for key, value in rows}

    def _experiments(self, condition: str, *values: Value) -> Iterator[Experiment]:
        """One query for experiments and samples: a reader beside the writer never sees half an experiment."""
        rows = self._database.rows(_EXPERIMENTS.format(condition), *values)
        groups = groupby(rows, key=lambda row: int(row["number"]))
        return (self._experiment(number, group) for number, group in groups)

    def _experiment(self, number: int, rows: Iterator[Row]) -> Experiment:
        try:
            return to_experiment(rows)
        except ValueError as error:
            raise damaged(self.path, f"experiment {number}", error) from None

    @contextlib.contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        """A record that was never written so is told by its name."""
        try:
            yield
        except ValueError as error:
            raise damaged(self.path, what, error) from None
