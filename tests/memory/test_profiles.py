"""Profiles are kept, with the counters, and never changed."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.memory.records import ProfileRecord
from kernelwright.memory.store import Memory

from .samples import PROBLEM, campaign


def test_profiles_come_back_exactly_and_are_never_changed(memory_file: Path) -> None:
    kept = ProfileRecord(
        "c1", "candidate", "N=1", 1, "L2-bound", "text", '{"k": {"a": 1.5}}', "asked for", 2.5
    )
    with Memory.open(memory_file) as memory:
        memory.start_campaign(campaign("c1"), PROBLEM)
        memory.profile(kept)
        memory.profile(replace(kept, bottleneck="latency-bound"))
        first, second = memory.profiles("c1")
        assert memory.profiles("c2") == []
    assert replace(first, number=0, recorded=0.0) == kept
    assert (first.number, second.number, second.bottleneck) == (1, 2, "latency-bound")
    assert first.recorded > 0
    with sqlite3.connect(memory_file) as db, pytest.raises(sqlite3.IntegrityError, match="never changed"):
        db.execute("UPDATE profiles SET digest = 'better'")
    db.close()
