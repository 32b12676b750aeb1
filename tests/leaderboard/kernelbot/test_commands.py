"""``kernelwright board list`` and ``board show`` against a server of the tests."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from tests.leaderboard.kernelbot.recorded import SEED
from tests.leaderboard.kernelbot.stub import Stub, stubbed


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Stub]]:
    with stubbed() as started:
        yield started


@pytest.fixture
def url(server: tuple[str, Stub], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("POPCORN_API_URL", server[0])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("POPCORN_CLI_ID", raising=False)
    return server[0]


def kernelwright(*words: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as done:
        main(["board", *words])
    assert done.value.code == code


def test_open_boards_are_listed_with_deadline_and_gpus(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    kernelwright("list", "kernelbot:")
    shown = capsys.readouterr().out
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["vectoradd_v2", "2100-01-01", "00:00", "UTC", "A100,", "H100", "geom"]
    ]


def test_ended_ones_on_request_and_their_names_cannot_draw(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kernelwright("list", "--ended", "--json", "--server", url)
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == ["old [31m board", "vectoradd_v2"]
    assert rows[0] == {
        "name": "old [31m board",
        "deadline": "2020-01-01 00:00 UTC",
        "gpus": "T4",
        "ranking": "last",
    }


def test_one_board_with_its_cases_and_its_best(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernelwright("show", "kernelbot:vectoradd_v2@H100")
    shown = capsys.readouterr().out
    assert "vectoradd_v2 on H100: ranked by geomean, until 2100-01-01" in shown
    assert "size 4096, seed 93246" in shown
    assert "eve [2J" in shown
    assert "\x1b" not in shown
    monkeypatch.setenv("POPCORN_CLI_ID", "cli-alice")
    kernelwright("show", "kernelbot:vectoradd_v2@H100", "--json")
    told = json.loads(capsys.readouterr().out)
    assert [place["rank"] for place in told["ranks"]] == [1, 2]
    assert told["board"]["limits"]["max_bytes"] == 1_000_000
    assert str(SEED) not in json.dumps(told)


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["list", "local:"], "use kernelbot:NAME@GPU", 2),
        (["list", "kernelbot:x"], "takes kernelbot: alone", 2),
        (["list", "kernelbot:", "--server", "http://a.example"], "use https", 2),
        (["show", "kernelbot:vectoradd_v2"], "use kernelbot:NAME@GPU", 2),
        (["show", "kernelbot:nope@H100"], "there is no such leaderboard", 1),
        (["show", "kernelbot:vectoradd_v2@B200"], "it has A100, H100", 1),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], said: str, code: int, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kernelwright(*words, code=code)
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err
    assert len(told.err.splitlines()) == 1


def test_a_malformed_credential_is_not_shown(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPCORN_CLI_ID", "no such credential")
    kernelwright("list", code=2)
    assert "no such" not in capsys.readouterr().err
