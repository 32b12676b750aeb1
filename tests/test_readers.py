"""Whoever reads what others write takes no pipe, no device and no file without end: one line, at once."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.certificate.verify import read_certificate
from kernelwright.cli.check import read_template
from kernelwright.core.errors import UserError
from kernelwright.devices.recorded import read_recorded
from kernelwright.generation.models.keys import find_key
from kernelwright.generation.models.mailbox import Mailbox
from kernelwright.generation.models.recorded import Recorded
from kernelwright.generation.reply import MAX_REPLY_BYTES
from kernelwright.harness.detached.folder import read_results
from kernelwright.harness.device_lock import device_lock, lock_path
from kernelwright.harness.sanitizer_job import PROGRESS_FILE, Progress, read_progress
from kernelwright.harness.watched import head
from kernelwright.leaderboard.board_file import BoardFile, Ranking, read_board_file, read_sources
from kernelwright.leaderboard.gpumode.files import read_task_folder, read_task_json
from kernelwright.leaderboard.gpumode.user_tables import read_user_tables
from kernelwright.leaderboard.kernelbot.credentials import find_credential
from kernelwright.leaderboard.tokens import TOKEN_FILE, find_token
from kernelwright.optimiser.kernel_tuner_io import read_t1, read_t4
from kernelwright.problems.loader import load_problem
from tests.problems.folders import write_problem

URL = "https://board.example"
BOARD = BoardFile("x", Ranking.LAST, (), sources={"eval.py": "a" * 64})


def problem(folder: Path) -> object:
    for name in ("problem.toml", "reference.py", "baseline.cu"):
        if not (folder / name).exists():
            write_problem(folder / "whole")
            (folder / name).write_bytes((folder / "whole" / name).read_bytes())
    return load_problem(folder).catalogue()


READERS: list[tuple[str, Callable[[Path], object]]] = [
    (str(TOKEN_FILE), lambda folder: find_token(f"{URL}/gemm", {}, folder)),
    ("keys.toml", lambda folder: find_key("openai", {"KERNELWRIGHT_KEYS": str(folder / "keys.toml")})),
    (".popcorn.yaml", lambda folder: find_credential(URL, {"POPCORN_API_URL": URL}, folder)),
    ("replies.jsonl", lambda folder: Recorded(folder / "replies.jsonl")),
    ("problem.toml", problem),
    ("reference.py", problem),
    ("baseline.cu", problem),
    ("library.py", problem),
    ("catalogue/a.cu", problem),
    ("board.toml", read_board_file),
    ("board/eval.py", lambda folder: read_sources(folder, BOARD)),
    ("task.yml", read_task_folder),
    ("task.json", lambda folder: read_task_json(folder / "task.json")),
    ("arguments.toml", lambda folder: read_user_tables(folder / "arguments.toml")),
    ("a.cu", lambda folder: read_template(folder / "a.cu")),
    ("c.json", lambda folder: read_certificate(folder / "c.json")),
    ("t1.json", lambda folder: read_t1(folder / "t1.json")),
    ("t4.json", lambda folder: read_t4(folder / "t4.json")),
    ("a.npz", lambda folder: read_recorded(folder / "a.npz")),
    ("results.jsonl", lambda folder: read_results(folder / "results.jsonl")),
]


@pytest.mark.parametrize(("name", "read"), READERS, ids=[name for name, _ in READERS])
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (os.mkfifo, "is no ordinary file"),
        (os.mkdir, "is no ordinary file"),
        (lambda at: at.touch() or os.truncate(at, 1 << 40), "is larger than"),
    ],
    ids=["pipe", "folder", "large"],
)
def test_a_reader_ends_in_one_line(
    name: str,
    read: Callable[[Path], object],
    make: Callable[[Path], None],
    told: str,
    tmp_path: Path,
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    path.chmod(0o700)
    with pytest.raises(UserError) as caught:
        read(tmp_path)
    assert f"{path}: {told}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_left_beside_a_candidate_may_be_anything(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / PROGRESS_FILE)
    assert read_progress(tmp_path) == Progress()
    assert head(tmp_path / PROGRESS_FILE, 100) == ""


async def test_a_pipe_in_the_place_of_a_devices_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(lock_path("GPU-1", tmp_path))
    async with device_lock("GPU-1", folder=tmp_path):
        pass


def test_a_reply_of_a_mailbox_is_read_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "0001.reply.md").touch()
    os.truncate(tmp_path / "0001.reply.md", 1 << 40)
    text = Mailbox(tmp_path)._read("0001.reply.md")
    assert text is not None
    assert len(text) == MAX_REPLY_BYTES + 1
