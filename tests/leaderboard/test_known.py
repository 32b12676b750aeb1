"""Credentials: cut out of what any server says, whether they were sent there or not, and of files that others can use."""

import asyncio
import json
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.kernelbot.client import HEADER, Client
from kernelwright.leaderboard.kernelbot.credentials import find_credential
from kernelwright.leaderboard.known import known_credentials
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.tokens import TOKEN_FILE, find_token
from tests.leaderboard.gpumode.support import repository

from .kernelbot.test_http import serving

OF_ENVIRONMENT, OF_FILE = "popcorn-id-of-environment", "popcorn-id-of-file"
TOKEN_OF_ENVIRONMENT, TOKEN_OF_FILE = "kwb_0_of-environment", "kwb_0_of-file"
ALL = (OF_ENVIRONMENT, OF_FILE, TOKEN_OF_ENVIRONMENT, TOKEN_OF_FILE)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with every kind of credential."""
    home = tmp_path / "home"
    (home / TOKEN_FILE).parent.mkdir(parents=True)
    for name, text in (
        (".popcorn.yaml", f"cli_id: {OF_FILE}\n"),
        (str(TOKEN_FILE), f"http://a {TOKEN_OF_FILE}\n"),
    ):
        (home / name).touch(0o600)
        (home / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("POPCORN_CLI_ID", OF_ENVIRONMENT)
    monkeypatch.setenv("KERNELWRIGHT_BOARD_TOKEN", TOKEN_OF_ENVIRONMENT)
    return home


@pytest.fixture
def echo(tmp_path: Path) -> str:
    """An item of /leaderboards whose description, files and cases hold all that the user has."""
    set_of = repository(tmp_path / "theirs")
    names = {"eval.py": set_of, "utils.py": set_of, "reference.py": set_of / "vectoradd_py"}
    said = " ".join(ALL)
    files = {
        name: f"{(folder / name).read_text(encoding='utf-8')}\n# {said}\n" for name, folder in names.items()
    }
    task = {
        "lang": "py",
        "files": files,
        "benchmarks": [{"size": 1024, "seed": 1}],
        "tests": [{"size": 128, "seed": 2}],
    }
    return json.dumps([{"name": "adds", "task": task, "gpu_types": ["H100"], "description": f"of {said}"}])


def run(*words: str) -> object:
    with pytest.raises(SystemExit) as done:
        main(["board", *words])
    return done.value.code


def written(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())


def answer(body: str) -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body.encode())}\r\n\r\n{body}".encode()
    )


async def test_an_import_keeps_no_credential_that_the_server_knows(
    user: Path, echo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(answer(echo)) as (url, asked):
        words = ("import", "kernelbot:adds", "--server", url, "-o", str(tmp_path / "out"))
        assert await asyncio.to_thread(run, *words) == 0
    text = written(tmp_path / "out") + "".join(capsys.readouterr())
    assert "[hidden] [hidden] [hidden] [hidden]" in text
    assert not [each for each in ALL if each in text]
    assert not [each for each in ALL if each.encode() in b"".join(asked)]


def test_a_saved_answer_keeps_none_either(user: Path, echo: str, tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text(echo, encoding="utf-8")
    assert run("import", str(tmp_path / "saved.json"), "-o", str(tmp_path / "out")) == 0
    assert not [each for each in ALL if each in written(tmp_path / "out")]


async def test_a_fetched_problem_keeps_none(
    user: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "problem.toml": "a = [",
        "reference.py": " ".join(ALL),
        "baseline.cu": "x",
        "error": " ".join(ALL),
    }
    refused = answer(json.dumps({"error": " ".join(ALL)})).replace(b"200 OK", b"404 No")
    async with serving(refused) as (url, _):
        assert await asyncio.to_thread(run, "fetch", f"{url}/gemm", "-o", str(tmp_path / "p")) == 1
    assert "[hidden] [hidden] [hidden] [hidden]" in capsys.readouterr().err
    async with serving(answer(json.dumps(files))) as (url, _):
        assert await asyncio.to_thread(run, "fetch", f"{url}/gemm", "-o", str(tmp_path / "p")) == 2
    assert not [each for each in ALL if each in capsys.readouterr().err]


async def test_public_questions_are_asked_without_a_credential(user: Path) -> None:
    async with serving(answer("[]")) as (url, asked):
        client = Client(url, Secret(OF_FILE))
        await client.leaderboards()
        await client.gpus("a")
        await client.ranking("a", "b")
        public = b"".join(asked)
        await client.own()
        await client.close()
    assert HEADER.lower().encode() not in public.lower()
    assert OF_FILE.encode() in asked[-1]


def test_short_words_and_files_that_cannot_be_read_hide_nothing(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPCORN_CLI_ID", "a")
    (user / ".popcorn.yaml").write_text("cli_id: [", encoding="utf-8")
    (user / TOKEN_FILE).write_text("what is this", encoding="utf-8")
    assert [secret.reveal() for secret in known_credentials(None)] == [TOKEN_OF_ENVIRONMENT]


# --- files that others can use ----------------------------------------------------------------------------------

HERE = {"POPCORN_API_URL": "https://gpu.example"}


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o660])
def test_tokens_that_others_can_read_are_refused(user: Path, mode: int) -> None:
    assert find_token("http://a/x", {}, user) == TOKEN_OF_FILE
    (user / TOKEN_FILE).chmod(mode)
    with pytest.raises(UserError, match=r"board-token: others can .*: chmod 600 ") as refused:
        find_token("http://a/x", {}, user)
    assert TOKEN_OF_FILE not in str(refused.value)
    assert find_token("http://a/x", {"KERNELWRIGHT_BOARD_TOKEN": TOKEN_OF_ENVIRONMENT}, user)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_credential_that_others_can_write_is_refused(user: Path, mode: int) -> None:
    (user / ".popcorn.yaml").chmod(mode)
    with pytest.raises(UserError, match=r"popcorn\.yaml: others can write it.*: chmod 600 "):
        find_credential("https://gpu.example", HERE, user)


def test_a_credential_that_others_can_read_is_told(user: Path) -> None:
    said: list[str] = []
    assert find_credential("https://gpu.example", HERE, user, said.append) is not None
    assert said == []
    (user / ".popcorn.yaml").chmod(0o644)
    found = find_credential("https://gpu.example", HERE, user, said.append)
    assert found is not None
    assert found.reveal() == OF_FILE
    assert len(said) == 1
    assert "others can read it" in said[0]
    assert OF_FILE not in said[0]


def test_show_and_list_tell_it(
    user: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("POPCORN_CLI_ID")
    monkeypatch.setenv("POPCORN_API_URL", "https://localhost:1")
    (user / ".popcorn.yaml").chmod(0o644)
    assert run("list") == 2
    told, failed = capsys.readouterr().err.splitlines()
    assert "others can read it" in told
    assert "cannot be asked" in failed
