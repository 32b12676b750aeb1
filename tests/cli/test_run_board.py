"""What ``run`` and ``resume`` say of goals and boards before anything begins."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from kernelwright.cli.main import main
from kernelwright.cli.run import board_line


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == code
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1, told
    return told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--goal", "rank<15"), "'rank<15' is no goal"),
        (("--goal", "rank<=15"), "a rank needs a leaderboard: give --board URL"),
        (("--goal", "time<=5"), "wrong unit"),
        (("--submit",), "--submit: there is no leaderboard to send to"),
        (("--max-submissions", "20"), "--max-submissions: there is no leaderboard to send to"),
        (("--uncalibrated",), "--uncalibrated: there is no leaderboard to send to"),
        (
            ("--board", "http://h/gemm", "--max-submissions", "20"),
            "--max-submissions: nothing is sent without --submit",
        ),
        (("--board", "http://h/gemm", "--uncalibrated"), "--uncalibrated: nothing is sent without --submit"),
        (("--board", "gemm"), "http://HOST:PORT/PROBLEM"),
        (("--board", "kernelbot:gemm"), "kernelbot:NAME@GPU"),
        (("--board", "http://us:secret@h/gemm"), "holds no password"),
    ],
)
def test_bad_input_is_one_line(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = said(capsys, "run", "vector_add", "--device", "cpu", "--dir", f"{tmp_path / 'd'}", *words)
    assert told in line
    assert "secret" not in line
    assert not (tmp_path / "d").exists()


def test_no_device_is_asked_for_before_the_command_line_is_right(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelwright.cli.run.pick_device", pytest.fail)
    assert "http://HOST:PORT/PROBLEM" in said(capsys, "run", "gemm", "--board", "ftp://x")


def test_a_board_that_nobody_serves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/vector_add"
    words = ("run", "vector_add", "--device", "cpu", "--dir", f"{tmp_path / 'd'}", "--board", url)
    line = said(capsys, *words)
    assert f"--board {url}: http://127.0.0.1:{port}: GET /api/boards/vector_add: cannot be asked" in line
    assert not (tmp_path / "d").exists()


@contextlib.contextmanager
def answering(status: int) -> Iterator[str]:
    """A board that gives everybody this status."""

    class No(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"error": "no such thing"}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), No) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/vector_add"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "code"), [(404, 1), (403, 1), (429, 1), (401, 2), (500, 2)])
def test_a_boards_no_is_an_answer_in_every_command(
    status: int,
    code: int,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    campaign = ("vector_add", "--device", "cpu", "--dir", f"{tmp_path / 'd'}")
    with answering(status) as url:
        line = said(capsys, "run", *campaign, "--board", url, code=code)
        assert f"--board {url}: the board says {status}: no such thing" in line
        for words in (("rank", url), ("status", url, "s1"), ("fetch", url, "-o", f"{tmp_path / 'p'}")):
            assert f"the board says {status}: no such thing" in said(capsys, "board", *words, code=code)
    assert not (tmp_path / "d").exists()


def test_the_place_in_one_line() -> None:
    board = {
        "url": "http://h/gemm", "rank": 3, "entries": 57,
        "submissions": [{"mode": "ranked", "state": "passed"}, {"mode": "test", "state": "passed"}],
    }  # fmt: skip
    assert board_line(board) == "board http://h/gemm: rank 3 of 57; 1 ranked submissions, 1 passed"
    assert board_line(json.loads(json.dumps({**board, "rank": None}))).startswith(
        "board http://h/gemm: no rank;"
    )
