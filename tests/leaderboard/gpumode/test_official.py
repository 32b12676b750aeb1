"""The evaluator of an imported problem, replayed: with right, wrong, endless and hostile code inside."""

import asyncio
import os
from pathlib import Path

import pytest

from kernelwright.core.errors import UserError
from kernelwright.harness import official
from kernelwright.harness.enclosure import Enclosure
from kernelwright.harness.official import Replayed, replay
from kernelwright.leaderboard.base import Mode, Result, State
from tests.leaderboard.gpumode.support import ADDS, NUMPY_REFERENCE, NUMPY_TASK, numpy_board


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return numpy_board(tmp_path_factory.mktemp("board"))


def run(folder: Path, submission: str, mode: Mode = Mode.TEST, seed: int | None = None) -> Result:
    replayed: Replayed = asyncio.run(replay(folder, submission, mode, seed=seed))
    return replayed.result


def test_every_mode_of_a_right_submission(board: Path) -> None:
    assert run(board, ADDS) == Result("", Mode.TEST, State.PASSED)
    result = run(board, ADDS, Mode.BENCHMARK)
    assert (result.state, result.score_s) == (State.PASSED, None)
    assert [dict(case.case) for case in result.cases] == [
        {"size": 1000, "seed": 3},
        {"size": 2000, "seed": 4},
    ]
    assert all(case.runs and 1e-8 < (case.best_s or 0) <= case.mean_s < 1 for case in result.cases)


def test_a_ranked_run_has_a_score_and_may_have_another_seed(board: Path) -> None:
    submission = ADDS.replace("return c", "return c if len(a) > 999 else None")
    result = run(board, submission, Mode.RANKED, seed=12345)
    assert result.state is State.PASSED, result.reason
    first, second = (case.mean_s for case in result.cases)
    assert result.score_s == pytest.approx((first * second) ** 0.5)


def test_the_second_seed_reaches_the_inputs(tmp_path: Path) -> None:
    folder = numpy_board(tmp_path, NUMPY_REFERENCE.replace("rng =", "assert seed < 10\n    rng ="))
    assert run(folder, ADDS).state is State.PASSED
    assert "AssertionError" in run(folder, ADDS, seed=99).reason


def test_a_wrong_submission_is_told_apart(board: Path) -> None:
    result = run(board, ADDS.replace("a + b", "a - b"))
    assert (result.state, result.reason) == (
        State.FAILED,
        "case 0 (size: 64; seed: 1) failed: 64 elements are wrong",
    )
    assert run(board, "import nowhere").reason.startswith("submission.py does not load: ModuleNotFoundError")


def test_an_endless_submission_is_ended(tmp_path: Path) -> None:
    folder = numpy_board(tmp_path, task=NUMPY_TASK.replace("test_timeout: 60", "test_timeout: 1.5"))
    result = run(folder, "def custom_kernel(data):\n    while True:\n        pass\n")
    assert result.state is State.TIMED_OUT


def test_more_than_anybody_reads_ends_it(board: Path) -> None:
    chatty = "import os\nwhile True:\n    os.write(int(os.environ['POPCORN_FD']), b'check: pass\\n' * 5000)\n"
    result = run(board, chatty)
    assert (result.state, result.reason) == (State.FAILED, "submission.py was ended: it said more than 4 MiB")


def test_a_full_disk_is_not_waited_for(board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.harness.enclosure.DISK_BYTES", 1 << 20)
    greedy = "import time\nopen('large', 'wb').write(bytes(4 << 20))\ntime.sleep(60)\n"
    result = run(board, greedy)
    assert result.state is State.FAILED
    assert "it wrote 4 MiB, 1 are allowed" in result.reason


def test_nothing_outside_is_reached(board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    monkeypatch.setenv("POPCORN_CLI_ID", "credential")
    hostile = (
        "import os, socket, pathlib\nfound = []\n"
        "if 'POPCORN_CLI_ID' in os.environ: found.append('environment')\n"
        f"for name, attack in (('file', lambda: open({str(secret)!r})), "
        "('socket', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect(('127.0.0.1', 9))), "
        f"('write', lambda: pathlib.Path({str(tmp_path)!r}, 'mine').touch())):\n"
        "    try: attack()\n"
        "    except PermissionError: continue\n"
        "    except FileNotFoundError: continue\n"
        "    except OSError as error: found.append(f'{name} {error}')\n"
        "    else: found.append(name)\n"
        "assert not found, found\n"
    )
    result = run(board, hostile + ADDS)
    assert result.state is State.PASSED, result.reason
    assert not (tmp_path / "mine").exists()


def test_without_walls_it_still_works_and_says_so(board: Path) -> None:
    async def ran() -> tuple[str, tuple[str, ...]]:
        text = "import multiprocessing, os\nmultiprocessing.Lock()\nos.write(int(os.environ['POPCORN_FD']), b'ok')\n"
        with Enclosure({"a.py": text}) as enclosure:
            enclosure._walls = False
            done = await enclosure.run(("a.py",), 30)
            assert (done.code, done.printed) == (0, "")
        assert not enclosure.folder.exists()
        return done.said, done.missing

    said, missing = asyncio.run(ran())
    assert said == "ok"
    assert missing[0] == "bubblewrap"
    assert "seccomp" not in missing


def test_where_it_cannot_be_replayed_it_says_why(tmp_path: Path) -> None:
    folder = numpy_board(tmp_path, task=NUMPY_TASK + "multi_gpu: true\n")
    with pytest.raises(UserError, match=r"board\.toml: official timing is for Python on one GPU"):
        run(folder, ADDS)
    os.truncate(folder / "board" / "utils.py", 0)
    with pytest.raises(UserError, match=r"utils\.py: is not the file that was imported"):
        run(folder, ADDS)


def test_limits_are_the_boards(board: Path) -> None:
    read = official.read_board_file(board)
    assert [official.timeout_s(read, mode) for mode in Mode] == [60, 60, 60]
    assert len(official.asked_cases(read, Mode.RANKED)) == 2
