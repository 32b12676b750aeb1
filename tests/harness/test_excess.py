"""What a child takes, summed by the parent."""

import os
from dataclasses import replace
from pathlib import Path

from kernelwright.harness.excess import Bounds, excess, killed_for_memory

ENOUGH = Bounds(memory_bytes=1 << 40, disk_bytes=1 << 20)


def test_within_its_bounds(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1000)
    assert excess(os.getpid(), tmp_path, ENOUGH) == ""


def test_each_bound(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_bytes(b"x" * (3 << 20))
    (tmp_path / "link").symlink_to("/usr")
    me = os.getpid()
    assert excess(me, tmp_path, ENOUGH) == "it wrote 3 MiB, 1 are allowed"
    assert "files" in excess(me, tmp_path, replace(ENOUGH, files=2))
    assert "MiB of memory, 1 are allowed" in excess(me, tmp_path, replace(ENOUGH, memory_bytes=1 << 20))
    assert "processes" in excess(me, tmp_path, replace(ENOUGH, processes=0))


def test_what_is_gone_takes_nothing(tmp_path: Path) -> None:
    assert excess(1 << 30, tmp_path / "nowhere", ENOUGH) == ""


def test_at_most_half_of_the_free_disk(tmp_path: Path) -> None:
    assert Bounds.on(tmp_path, 1, 1 << 60).disk_bytes < 1 << 59
    assert Bounds.on(tmp_path, 1, 1).disk_bytes == 1


def test_what_linux_ended_for_lack_of_memory(tmp_path: Path) -> None:
    counters = tmp_path / "vmstat"
    assert killed_for_memory(counters) is None
    counters.write_text("pgfault 7\n")
    assert killed_for_memory(counters) is None
    counters.write_text("pgfault 7\noom_kill 12\npgscan 0\n")
    assert killed_for_memory(counters) == 12
