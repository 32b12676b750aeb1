from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.core.errors import UserError
from kernelwright.leaderboard.abi import Abi, Axis
from kernelwright.leaderboard.base import Limits, Ranking
from kernelwright.leaderboard.board_file import (
    BoardCase,
    BoardFile,
    format_board_file,
    read_board_file,
    read_sources,
)
from tests.leaderboard.gpumode.support import numpy_board

WHOLE = BoardFile(
    leaderboard="vectoradd_v2",
    ranking=Ranking.GEOMEAN,
    cases=(BoardCase({"size": 1024, "seed": 3, "m": (1, 2), "mask": True, "p": 0.5}, "size=1024"),),
    gpus=("H100", "A100"),
    tests=({"size": 3, "kind": 'quote " and \\ and \n'},),
    abi=Abi(("A", "B", "C"), "C", sizes={"size": Axis("A", 0)}),
    limits=Limits(max_bytes=1_000_000, ranked_timeout_s=420.0),
    benchmark_timeout_s=180.0,
    sources={"eval.py": "a" * 64},
)
LEAST = 'leaderboard = "x"\nranking = "last"\n[[cases]]\narguments = { size = 1 }\n'


def written(folder: Path, text: str) -> Path:
    (folder / "board.toml").write_text(text, encoding="utf-8")
    return folder


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_board_file(written(tmp_path, format_board_file(WHOLE))) == WHOLE


def test_the_least_that_a_board_file_says(tmp_path: Path) -> None:
    board = read_board_file(written(tmp_path, LEAST))
    assert (board.leaderboard, board.abi, board.sources) == ("x", None, {})
    assert board.cases == (BoardCase({"size": 1}),)


def test_of_last_one_case_is_scored() -> None:
    cases = (BoardCase({"size": 1}), BoardCase({"size": 2}))
    assert BoardFile("x", Ranking.LAST, cases).scored == cases[1:]
    assert BoardFile("x", Ranking.GEOMEAN, cases).scored == cases


@given(
    name=st.text(min_size=1).filter(lambda text: text.strip() and text.isprintable()),
    value=st.one_of(st.booleans(), st.integers(), st.text(), st.lists(st.integers()).map(tuple)),
)
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, name: str, value: object) -> None:
    folder = tmp_path_factory.mktemp("board")
    board = BoardFile(name, Ranking.MEAN, (BoardCase({"k": value}),), tests=({"k": value},))  # type: ignore[dict-item]
    assert read_board_file(written(folder, format_board_file(board))) == board


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("leaderboard =", "leaderbord ="), "leaderbord: is an unknown key"),
        (('ranking = "last"', 'ranking = "best"'), "ranking: "),
        (("[[cases]]", "[[kases]]"), "kases: is an unknown key"),
        (("size = 1", "size = {}"), "cases[0].arguments.size: must be true or false or a number"),
        (("arguments =", "argument ="), "cases[0].argument: is an unknown key"),
        (('"last"', '"last'), "not valid TOML"),
        (('"x"', '" "'), "leaderboard: is empty"),
        (('"x"', r'"a\u001b[2J"'), "leaderboard: is empty, or cannot be seen"),
        (("\n[[", '\nmulti_gpu = "yes"\n[['), "multi_gpu: must be true or false, not 'yes'"),
        (("\n[[", '\ngpus = "B200, H100"\n[['), 'gpus: must be a list such as ["B200", "H100"]'),
        (("\n[[", '\nbenchmark_timeout_s = "3"\n[['), "benchmark_timeout_s: must be a number, not '3'"),
        (("\n[[", "\nbenchmark_timeout_s = nan\n[["), "benchmark_timeout_s: must be a time above 0"),
        (
            ("\n[[", "\n[limits]\nmax_bytes = 2020-01-01\n[["),
            "limits.max_bytes: must be a whole number, not a date",
        ),
        (("\n[[", '\n[abi]\nitems = []\nreturns = "c"\n[['), "abi: needs items"),
        (("\n[[", '\n[abi]\nitem = ["a"]\n[['), "abi.item: is an unknown key"),
        (("\n[[", "\n[limits]\nmax_byte = 3\n[["), "limits.max_byte: is an unknown key"),
        (("\n[[", '\n[sources]\n"../eval.py" = "aa"\n[['), "sources.'../eval.py'"),
    ],
)
def test_one_line_says_where_a_fault_is(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    text = LEAST.replace(*change)
    assert text != LEAST
    with pytest.raises(UserError) as caught:
        read_board_file(written(tmp_path, text))
    assert str(caught.value).startswith(f"{tmp_path / 'board.toml'}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_of_no_board_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="of no board"):
        read_board_file(tmp_path)


def test_a_changed_source_of_the_board_is_noticed(tmp_path: Path) -> None:
    folder = numpy_board(tmp_path)
    board = read_board_file(folder)
    read_sources(folder, board)
    (folder / "board" / "eval.py").write_text("print()", encoding="utf-8")
    with pytest.raises(UserError, match=r"eval\.py: is not the file"):
        read_sources(folder, board)
    (folder / "board" / "eval.py").unlink()
    with pytest.raises(UserError, match=r"eval\.py: is missing"):
        read_sources(folder, board)
