"""Tables of a board's file. A later format is a new step at the end of :data:`STEPS`."""

from typing import Final

APPLICATION_ID: Final = 0x6B776264
"""SQLite's ``application_id`` of a board's file ("kwbd")."""

_FIRST: Final = """
CREATE TABLE problems (
    name TEXT PRIMARY KEY, id TEXT NOT NULL, protocol TEXT NOT NULL, seed INTEGER NOT NULL, added REAL NOT NULL
) STRICT;
CREATE TABLE devices (name TEXT PRIMARY KEY, model TEXT NOT NULL) STRICT;
CREATE TABLE users (
    name TEXT PRIMARY KEY, token_id TEXT NOT NULL UNIQUE, token_hash TEXT NOT NULL, seeder INTEGER NOT NULL,
    made REAL NOT NULL
) STRICT;
CREATE TABLE submissions (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, view_key TEXT NOT NULL,
    problem TEXT NOT NULL REFERENCES problems(name), device TEXT NOT NULL,
    user TEXT NOT NULL REFERENCES users(name), entry TEXT NOT NULL, tag TEXT NOT NULL, mode TEXT NOT NULL,
    file TEXT NOT NULL, source TEXT NOT NULL, configuration TEXT NOT NULL, submitted REAL NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL, started REAL, ended REAL, score_s REAL,
    cases TEXT NOT NULL, UNIQUE (user, problem, device, tag, mode)
) STRICT;
CREATE INDEX submissions_in_order ON submissions(device, state, number);
CREATE INDEX submissions_by_user ON submissions(user, submitted);
CREATE INDEX submissions_by_score ON submissions(problem, device, mode, state, score_s)
"""
_DEADLINES: Final = "ALTER TABLE problems ADD COLUMN deadline REAL"
STEPS: Final = (_FIRST, _DEADLINES)
