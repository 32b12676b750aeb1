"""A full disk is told with the place and the remedy, also by what keeps a board."""

import resource
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelwright.board_server.opening import open_database
from kernelwright.core.errors import UserError


@pytest.mark.parametrize(
    ("free", "told"),
    [(8192, "the disk is full: free some space on the disk of "), (1 << 40, "disk I/O error: the disk of ")],
)
def test_a_board_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, told: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    try:
        with pytest.raises(UserError) as caught:
            open_database(tmp_path / "board.db", create=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(caught.value).startswith(f"{tmp_path / 'board.db'}: {told}{tmp_path}")
