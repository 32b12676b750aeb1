"""Users without a home folder."""

from pathlib import Path

import pytest

from kernelwright.core.errors import UserError
from kernelwright.core.homes import NOWHERE, expanded, home
from kernelwright.generation.models.keys import keys_file
from kernelwright.harness.scratch import shared_cache
from kernelwright.leaderboard.kernelbot.credentials import find_credential
from kernelwright.leaderboard.tokens import find_token


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``docker run --user 54321`` without HOME."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.setattr(Path, "expanduser", lambda path: nowhere() if str(path).startswith("~") else path)


@pytest.mark.usefixtures("homeless")
def test_nothing_is_found_where_there_is_no_home_and_nothing_breaks(tmp_path: Path) -> None:
    assert home() == NOWHERE
    assert find_token("http://h/gemm", {}) is None
    assert find_credential("https://h", {"POPCORN_API_URL": "https://h"}) is None
    assert keys_file({}).parent.parent.parent == NOWHERE
    assert shared_cache(tmp_path).is_dir()
    assert expanded(tmp_path) == tmp_path
    with pytest.raises(UserError, match="set HOME"):
        expanded(Path("~/kernels"))


def test_with_one_it_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home() == tmp_path
    assert expanded(Path("~/a")) == tmp_path / "a"
