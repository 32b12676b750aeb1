"""Tables of the memory and the steps from one format to the next.

A new format is a new function at the end of :data:`MIGRATIONS`; a released one never changes. The format is the
number of steps taken, kept in SQLite's ``user_version``.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

APPLICATION_ID: Final = 0x6B77726D
"""SQLite's ``application_id`` of our files ("kwrm"): tells a memory from any other program's database."""


def m001_first(db: sqlite3.Connection) -> None:
    """Campaigns, problems, templates, experiments with raw samples, milestones, environment."""
    for statement in (*_FIRST.split(";"), *_append_only("experiments", "measurements", "milestones")):
        db.execute(statement)


def _append_only(*tables: str) -> list[str]:
    """Triggers that refuse to change history, whoever asks."""
    return [
        f"CREATE TRIGGER {table}_keep_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} are history: they are never changed'); END"
        for table in tables
        for verb in ("UPDATE", "DELETE")
    ]


# A template is its text, whoever wrote it; a proposal is how one campaign came to it.
_FIRST: Final = """
CREATE TABLE problems (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, spec TEXT NOT NULL, reference TEXT NOT NULL, baseline TEXT NOT NULL
) STRICT;
CREATE TABLE campaigns (
    id TEXT PRIMARY KEY, problem TEXT NOT NULL REFERENCES problems(id), settings TEXT NOT NULL,
    device TEXT NOT NULL, objective TEXT NOT NULL, started REAL NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'interrupted', 'finished', 'failed')), seconds REAL NOT NULL
) STRICT;
CREATE TABLE templates (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, source TEXT NOT NULL
) STRICT;
CREATE TABLE proposals (
    campaign TEXT NOT NULL REFERENCES campaigns(id), template TEXT NOT NULL REFERENCES templates(id),
    proposer TEXT NOT NULL, direction TEXT NOT NULL, rationale TEXT NOT NULL, predicted TEXT NOT NULL,
    parents TEXT NOT NULL, PRIMARY KEY (campaign, template)
) STRICT, WITHOUT ROWID;
CREATE TABLE experiments (
    number INTEGER PRIMARY KEY, campaign TEXT NOT NULL REFERENCES campaigns(id), candidate TEXT NOT NULL,
    template TEXT NOT NULL REFERENCES templates(id), configuration TEXT NOT NULL, status TEXT NOT NULL,
    reason TEXT NOT NULL, cost_ms REAL, score REAL, eligible INTEGER NOT NULL, why TEXT NOT NULL,
    digest TEXT NOT NULL, twin_of TEXT NOT NULL, static TEXT, spent TEXT NOT NULL, findings TEXT NOT NULL,
    seconds REAL NOT NULL, recorded REAL NOT NULL, UNIQUE (campaign, candidate)
) STRICT;
CREATE TABLE measurements (
    experiment INTEGER NOT NULL REFERENCES experiments(number), position INTEGER NOT NULL, case_id TEXT NOT NULL,
    method TEXT NOT NULL, median_ms REAL, samples_ms TEXT NOT NULL, max_error REAL,
    PRIMARY KEY (experiment, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE milestones (
    number INTEGER PRIMARY KEY, campaign TEXT NOT NULL REFERENCES campaigns(id),
    experiment INTEGER NOT NULL REFERENCES experiments(number), seconds REAL NOT NULL, strategy TEXT NOT NULL,
    ratio REAL NOT NULL, rank INTEGER
) STRICT;
CREATE TABLE environment (
    campaign TEXT NOT NULL REFERENCES campaigns(id), key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (campaign, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX experiments_by_candidate ON experiments(candidate);
CREATE INDEX experiments_by_digest ON experiments(digest)
"""


def m002_trust(db: sqlite3.Connection) -> None:
    """Which check refused an experiment; conditions of each measurement; duels; certificates."""
    for statement in (*_TRUST.split(";"), *_append_only("duels", "certificates")):
        db.execute(statement)


_TRUST: Final = """
ALTER TABLE experiments ADD COLUMN check_name TEXT NOT NULL DEFAULT '';
ALTER TABLE measurements ADD COLUMN conditions TEXT;
ALTER TABLE measurements ADD COLUMN discarded INTEGER NOT NULL DEFAULT 0;
CREATE TABLE duels (
    number INTEGER PRIMARY KEY, campaign TEXT NOT NULL REFERENCES campaigns(id),
    challenger TEXT NOT NULL, incumbent TEXT NOT NULL, promoted INTEGER NOT NULL, verdict TEXT NOT NULL,
    samples TEXT NOT NULL, seconds REAL NOT NULL, recorded REAL NOT NULL
) STRICT;
CREATE TABLE certificates (
    number INTEGER PRIMARY KEY, campaign TEXT NOT NULL REFERENCES campaigns(id), candidate TEXT NOT NULL,
    document TEXT NOT NULL, recorded REAL NOT NULL
) STRICT
"""


def m003_requests(db: sqlite3.Connection) -> None:
    """Requests to language models: prompt, reply, tokens, cost; what became of each."""
    for statement in _REQUESTS.split(";"):
        db.execute(statement)


# A request is written twice: when it is made, and when its answer is known.
_REQUESTS: Final = """
CREATE TABLE requests (
    campaign TEXT NOT NULL REFERENCES campaigns(id), id TEXT NOT NULL, model TEXT NOT NULL, purpose TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('asked', 'answered', 'failed')), instructions TEXT NOT NULL,
    prompt TEXT NOT NULL, reply TEXT, reason TEXT NOT NULL, input_tokens INTEGER, output_tokens INTEGER,
    cost_usd REAL, seconds REAL, recorded REAL NOT NULL, PRIMARY KEY (campaign, id)
) STRICT, WITHOUT ROWID
"""


def m004_profiles(db: sqlite3.Connection) -> None:
    """What a profiler said of candidates."""
    for statement in (_PROFILES, *_append_only("profiles")):
        db.execute(statement)


_PROFILES: Final = """
CREATE TABLE profiles (
    number INTEGER PRIMARY KEY, campaign TEXT NOT NULL REFERENCES campaigns(id), candidate TEXT NOT NULL,
    case_id TEXT NOT NULL, level INTEGER NOT NULL, bottleneck TEXT NOT NULL, digest TEXT NOT NULL,
    metrics TEXT NOT NULL, occasion TEXT NOT NULL, seconds REAL NOT NULL, recorded REAL NOT NULL
) STRICT
"""


def m005_submissions(db: sqlite3.Connection) -> None:
    """What was sent to a leaderboard, and the places that were read there."""
    for statement in (*_SUBMISSIONS.split(";"), *_append_only("places")):
        db.execute(statement)


# A submission is written before it is sent, and again with everything that becomes known of it.
_SUBMISSIONS: Final = """
CREATE TABLE submissions (
    campaign TEXT NOT NULL REFERENCES campaigns(id), tag TEXT NOT NULL, candidate TEXT NOT NULL, mode TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intended', 'postponed', 'waiting', 'running', 'passed', 'failed',
    'timed_out', 'rejected', 'refused', 'unclear')), seconds REAL NOT NULL, intended REAL NOT NULL, sent REAL,
    submission TEXT NOT NULL, score_s REAL, reason TEXT NOT NULL, cases TEXT NOT NULL, rank INTEGER,
    recorded REAL NOT NULL, PRIMARY KEY (campaign, tag)
) STRICT, WITHOUT ROWID;
CREATE TABLE places (
    number INTEGER PRIMARY KEY, campaign TEXT NOT NULL REFERENCES campaigns(id), seconds REAL NOT NULL,
    rank INTEGER, entries INTEGER NOT NULL, score_s REAL, ahead_s REAL, recorded REAL NOT NULL
) STRICT
"""


def m006_nothing_is_replaced(db: sqlite3.Connection) -> None:
    """INSERT OR REPLACE deletes what has the key, and SQLite fires no DELETE trigger for that."""
    for table, keys in _KEYS.items():
        db.execute(_no_second(table, keys, f"ABORT, '{table} are history: this one is recorded already'"))
    for statement in _append_only(*_KNOWN):
        db.execute(statement)
    for table, keys in _KNOWN.items():
        db.execute(_no_second(table, keys, "IGNORE"))


def _no_second(table: str, keys: Sequence[Sequence[str]], verdict: str) -> str:
    """A trigger on what is inserted under a key that is there. A number that is not given is NULL or -1 by then."""
    same = (" AND ".join(f"{column} = NEW.{column}" for column in key) for key in keys)
    there = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {each})" for each in same)  # noqa: S608 - our own names
    return f"CREATE TRIGGER {table}_keep_insert BEFORE INSERT ON {table} WHEN {there} BEGIN SELECT RAISE({verdict}); END"


_NUMBER: Final = (("number",),)
_KEYS: Final[dict[str, Sequence[Sequence[str]]]] = {
    "experiments": (("number",), ("campaign", "candidate")),
    "measurements": (("experiment", "position"),),
    **dict.fromkeys(("milestones", "duels", "certificates", "profiles", "places"), _NUMBER),
}
"""What is recorded once, by all of its keys."""
_KNOWN: Final[dict[str, Sequence[Sequence[str]]]] = {
    "problems": (("id",), ("rowid",)),
    "templates": (("id",), ("rowid",)),
    "proposals": (("campaign", "template"),),
}
"""What several experiments share: where it comes again, what was recorded first stays."""

ONLY_TRIGGERS: Final = frozenset({m006_nothing_is_replaced})
"""Steps after which a memory reads as before: one that cannot be written need not have taken them."""

MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (
    m001_first,
    m002_trust,
    m003_requests,
    m004_profiles,
    m005_submissions,
    m006_nothing_is_replaced,
)
