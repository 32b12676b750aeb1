"""The commands, against a server of the real cpu device."""

import errno
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright import board_server
from kernelwright.board_server.records import User
from kernelwright.board_server.store import Store
from kernelwright.cli.board_serve import token
from kernelwright.cli.main import main
from kernelwright.core.errors import UserError
from kernelwright.problems.loader import load_problem
from tests.problems.folders import write_problem

BASELINE = load_problem("vector_add").folder / "baseline.cu"


def run(*words: str | Path) -> object:
    with pytest.raises(SystemExit) as done:
        main([str(word) for word in words])
    return done.value.code


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("board") / "board.db"
    command = [
        "-m",
        "kernelwright",
        "board",
        "serve",
        "vector_add",
        "--device",
        "cpu",
        "--port",
        "0",
        "--data",
        data,
    ]
    with subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        url = server.stderr.readline().split()[1]
        yield f"{url}/vector_add {data}"
        server.terminate()
    assert server.returncode == 0


def test_a_board_from_the_first_token_to_the_table(
    board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, data = board.split(" ")

    def said() -> str:
        return capsys.readouterr().out

    assert run("board", "token", "crowd", "--seeder", "--data", data) == 0
    monkeypatch.setenv("KERNELWRIGHT_BOARD_TOKEN", said().strip())
    assert run("board", "seed", url, "--count", "2") == 0
    assert said().splitlines()[-1] == "2 entries"
    assert run("board", "token", "anna", "--data", data) == 0
    monkeypatch.setenv("KERNELWRIGHT_BOARD_TOKEN", said().strip())

    wrong = tmp_path / "wrong.cu"
    wrong.write_text(
        BASELINE.read_text(encoding="utf-8").replace("A[i] + B[i]", "A[i] - B[i]"), encoding="utf-8"
    )
    assert run("board", "submit", url, wrong, "--wait") == 1
    assert "failed: wrong: " in said()
    assert run("board", "submit", url, BASELINE, "--wait") == 0
    assert "passed" in said()
    assert run("board", "submit", url, BASELINE, "--mode", "ranked", "--wait") == 0
    submission, state = said().splitlines()
    assert re.fullmatch(r"passed, score [\d.]+ ms", state)
    assert run("board", "submit", url, BASELINE, "--mode", "ranked") == 0
    assert said().splitlines() == [submission, state]
    assert run("board", "status", url, submission) == 0
    assert said().strip() == state

    assert run("board", "rank", url, "--json") == 0
    rows = json.loads(said())
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert {"anna", "crowd/baseline"} < {row["user"] for row in rows}
    assert [row["mine"] for row in rows].count(True) == 1
    assert run("board", "rank", url) == 0
    assert "anna (you)" in said()

    assert run("board", "fetch", url, "-o", tmp_path / "problem") == 0
    assert load_problem(tmp_path / "problem").id == load_problem("vector_add").id
    assert run("board", "fetch", url, "-o", tmp_path / "problem") == 2
    assert list(tmp_path.glob(".problem*")) == []


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("serve", "no_such_problem", "--device", "cpu"), 2, "no_such_problem"),
        (("serve", "gemm", "--device", "cpu", "--deadline", "soon"), 2, "--deadline soon"),
        (("serve", "gemm", "--device", "detached:x"), 2, "auto, cpu or cuda:N"),
        (("serve", "gemm", "--device", "cpu", "--device", "cuda:0"), 2, "--slow-cases"),
        (("token", "two words"), 2, "two words"),
        (("rank", "gemm"), 2, "http://HOST:PORT/PROBLEM"),
        (("rank", "http://127.0.0.1:1/gemm"), 2, "cannot be asked"),
        (("list", "--server", "https://localhost:1"), 2, "https://localhost:1: GET /leaderboards: cannot be asked"),
        (("import", "kernelbot:x", "--server", "https://localhost:1"), 2, "is the server running"),
        (("status", "http://127.0.0.1:1/gemm", ""), 2, "a submission's id is needed"),
        (("status", "http://127.0.0.1:1/gemm", "../x"), 2, "a submission's id is needed"),
        (("submit", "http://127.0.0.1:1/gemm", "missing.cu"), 2, "no such file"),
        (("submit", "http://127.0.0.1:1/gemm", str(BASELINE)), 2, "a token is needed"),
        (("submit", "http://127.0.0.1:1/gemm", str(BASELINE), "--mode", "fast"), 2, "--mode fast"),
        (("submit", "http://127.0.0.1:1/gemm", str(BASELINE), "--configuration", "X"), 2, "--configuration X"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    words: tuple[str, ...], code: int, reason: str, empty_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("board", *words) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
    assert list(empty_home.iterdir()) == []


def test_a_new_file_is_told(empty_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("board", "token", "anna", "--data", "typo.db") == 0
    assert capsys.readouterr().err == "typo.db: a new board file\n"
    assert run("board", "token", "bert", "--data", "typo.db") == 0
    assert capsys.readouterr().err == ""


class Broken(io.StringIO):
    """An output that takes nothing more, as is found out when it is flushed."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("output", "fault"), [(Broken(), "No space left"), (None, "there is no output")])
def test_a_token_that_nobody_could_read_ends_no_older_one(
    output: io.StringIO | None, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "board.db"
    store = Store.open(data)
    older = store.new_token("anna")
    store.close()
    monkeypatch.setattr(sys, "stdout", output)
    with pytest.raises(UserError, match=f"cannot be written out .{fault}.*: an older one stays valid"):
        token("anna", data)
    monkeypatch.undo()
    store = Store.open(data)
    assert store.user_of(older) == User("anna", seeder=False)
    store.new_token("anna")
    assert store.user_of(older) is None
    store.close()


@pytest.mark.parametrize("package", ["uvicorn", "starlette.applications", "python_multipart"])
def test_a_missing_package_is_named_with_the_mend(
    package: str, empty_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in [name for name in sys.modules if name.startswith("kernelwright.board_server.")]:
        monkeypatch.delitem(sys.modules, module)
        monkeypatch.delattr(board_server, module.rpartition(".")[2], raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    assert run("board", "serve", "gemm", "--device", "cpu") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'kernelwright[board]'" in line
    assert package.partition(".")[0] in line


def test_a_token_needs_no_server(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in [name for name in sys.modules if name.startswith("kernelwright.board_server.")]:
        monkeypatch.delitem(sys.modules, module)
        monkeypatch.delattr(board_server, module.rpartition(".")[2], raising=False)
    for package in ("uvicorn", "starlette", "python_multipart", "httpx"):
        monkeypatch.setitem(sys.modules, package, None)
    assert run("board", "token", "anna") == 0
    assert capsys.readouterr().out.startswith("kwb_")


def test_a_missing_client_is_named_with_the_mend(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    assert run("board", "rank", "http://127.0.0.1:1/gemm") == 2
    assert "pip install 'kernelwright[board]'" in capsys.readouterr().err


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KERNELWRIGHT_BOARD_TOKEN", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "reason"),
    [("def reference(", "reference.py:1: not valid Python"), ("x = 1\n", "has no function 'reference'")],
)
def test_a_problem_that_cannot_be_used_is_not_served(
    reference: str, reason: str, empty_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_problem(empty_home / "scale", reference=reference)
    assert run("board", "serve", folder, "--device", "cpu", "--port", "0", "--data", "new/board.db") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
    assert not (empty_home / "new").exists()
