import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelwright.leaderboard.base import Mode, Ranking, Result, State
from kernelwright.leaderboard.board_file import Arguments
from kernelwright.leaderboard.gpumode.answers import MAX_LINES, case_lines, read_result

CASES: tuple[Arguments, ...] = ({"size": 8, "seed": 1}, {"size": 16, "seed": 2})
TIMES = """benchmark-count: 2
benchmark.1.mean: 4000.0
benchmark.1.spec: seed: 2; size: 16
benchmark.0.spec: size: 8; seed: 99
benchmark.0.runs: 7
benchmark.0.mean: 1000
benchmark.0.std: 12.5
benchmark.0.best: 900.0
check: pass
"""


def read(
    text: str, mode: Mode = Mode.RANKED, ranking: Ranking = Ranking.GEOMEAN, code: int | None = 0
) -> Result:
    return read_result(text, mode, CASES, ranking, code)


def test_cases_are_lines_as_evaluators_read_them() -> None:
    case: Arguments = {"m": (96, 128), "mask": True, "kind": "normal", "p": 0.5}
    assert case_lines([case, {"n": 1}]) == "m: [96, 128]; mask: True; kind: normal; p: 0.5\nn: 1\n"


def test_nanoseconds_in_any_order() -> None:
    result = read(TIMES)
    assert result.state is State.PASSED, result.reason
    assert result.score_s == pytest.approx(2e-6)
    first, second = result.cases
    assert (first.case, first.mean_s, first.std_s, first.best_s, first.runs) == (
        CASES[0],
        1e-6,
        1.25e-8,
        9e-7,
        7,
    )
    assert (second.case, second.mean_s, second.runs) == (CASES[1], 4e-6, None)


def test_scores_follow_the_ranking() -> None:
    assert read(TIMES, ranking=Ranking.LAST).score_s == pytest.approx(4e-6)
    assert read(TIMES, ranking=Ranking.MEAN).score_s == pytest.approx(2.5e-6)
    assert read(TIMES, Mode.BENCHMARK).score_s is None


def test_a_test_passes_by_its_cases() -> None:
    text = "check: pass\ntest-count: 2\ntest.0.status: pass\ntest.1.status: pass\n"
    assert read(text, Mode.TEST).state is State.PASSED
    assert (
        read(text.replace("1.status: pass", "1.status: fail"), Mode.TEST).reason
        == "case 1 (size: 16; seed: 2) failed"
    )
    assert "1 of 2 cases" in read(text.replace("test.1.status: pass\n", ""), Mode.TEST).reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("check: pass", "check: fail"), "its check did not pass"),
        (("check: pass", ""), "said nothing of its check"),
        (("mean: 1000", "mean: nan"), "1 of 2 cases"),
        (("mean: 1000", "mean: -1"), "1 of 2 cases"),
        (("mean: 1000", "mean: 1e999"), "1 of 2 cases"),
        (("mean: 1000", "mean: fast"), "1 of 2 cases"),
        (("count: 2", "count: 3"), "counts 3 cases of 2"),
        (("size: 8", "size: 9"), "case 0 is answered for another"),
        (("check: pass", "check: pass\nbenchmark.0.error: illegal\taccess"), "failed: illegal access"),
        (("check: pass", "check: pass\nbenchmark.1.status: fail"), "case 1 (size: 16; seed: 2) failed"),
        (("check: pass", "check: pass\nbenchmark.0.mean: 1"), "'benchmark.0.mean' twice"),
        (("check: pass", "check: pass\n" + "\n" * MAX_LINES), "more than"),
    ],
)
def test_whatever_is_odd_is_no_pass(change: tuple[str, str], said: str) -> None:
    text = TIMES.replace(*change)
    assert text != TIMES
    result = read(text)
    assert (result.state, result.score_s) == (State.FAILED, None)
    assert said in result.reason


@pytest.mark.parametrize("end", range(0, len(TIMES) - 13, 7))
def test_a_truncated_answer_never_passes(end: int) -> None:
    assert read(TIMES[:end]).state is State.FAILED


def test_messages_of_several_lines_change_nothing() -> None:
    text = TIMES.replace("check:", "ERROR AT (0,): 1.0 2.0\nERROR AT (0,): 3.0 4.0\nno key\ncheck:")
    assert read(text) == read(TIMES)


def test_how_it_ended_counts() -> None:
    assert read(TIMES, code=None).state is State.TIMED_OUT
    assert read(TIMES, code=112).reason == "it ended with code 112: a result is wrong"
    assert read("", code=1).reason == "it ended with code 1"


KEYS = st.sampled_from(
    ["check", "benchmark-count", "benchmark.0.mean", "benchmark.1.mean", "benchmark.0.runs", ""]
)


@given(st.lists(st.tuples(KEYS, st.text(max_size=20))), st.sampled_from(Mode), st.sampled_from(Ranking))
@example(
    [("benchmark.0.mean", "0"), ("benchmark.1.mean", "0"), ("check", "pass")], Mode.RANKED, Ranking.GEOMEAN
)
def test_no_answer_crashes(lines: list[tuple[str, str]], mode: Mode, ranking: Ranking) -> None:
    result = read_result("\n".join(f"{key}: {value}" for key, value in lines), mode, CASES, ranking)
    assert len(result.reason.splitlines()) <= 1
    assert (result.state is State.PASSED) == (result.reason == "")
