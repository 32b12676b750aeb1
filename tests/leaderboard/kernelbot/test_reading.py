"""The traps in what the server says: results, cases, addresses, credentials, events."""

import copy
import itertools
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import (
    BoardError,
    Mode,
    RateLimited,
    Refused,
    Result,
    Sent,
    State,
    Unauthorized,
)
from kernelwright.leaderboard.kernelbot.address import base_url, parse_name
from kernelwright.leaderboard.kernelbot.answers import Leaderboard, Streamed, Submission
from kernelwright.leaderboard.kernelbot.credentials import find_credential
from kernelwright.leaderboard.kernelbot.refusals import refusal
from kernelwright.leaderboard.kernelbot.results import case_times, result_of
from kernelwright.leaderboard.kernelbot.sse import Event, Events
from kernelwright.leaderboard.secret import Secret
from kernelwright.leaderboard.untrusted import line, parse_json, read
from kernelwright.leaderboard.wire import Unavailable

CLI_ID = "0e4a7f0c-58c7-4f6e-9d2d-3f5d8a1b2c3d"
FINE = {"mode": "test", "passed": True, "result": {}}
RANKED = {"mode": "leaderboard", "passed": True, "score": "0.000002"}


def result(
    mode: Mode, *runs: dict[str, Any], done: bool = True, job: Any = "succeeded", error: str = ""
) -> Result:
    status = {"status": job, "error": error or None} if job != "none" else None
    answer = {"id": 1, "user_id": "9", "done": done, "runs": list(runs), "job": status}
    return result_of(Sent("1", mode, "t"), read(Submission, answer, "here"), ())


@pytest.mark.parametrize(
    ("done", "job", "state"),
    [
        (False, "initial", State.WAITING),
        (False, "pending", State.WAITING),
        (False, "running", State.RUNNING),
        (True, "running", State.RUNNING),
        (False, "succeeded", State.RUNNING),
        (False, None, State.RUNNING),
        (True, "succeeded", State.PASSED),
        (True, None, State.PASSED),
        (True, "none", State.PASSED),
        (False, "failed", State.FAILED),
        (True, "failed", State.FAILED),
        (True, "timed_out", State.TIMED_OUT),
        (False, "hacked", State.REJECTED),
    ],
)
def test_it_has_ended_when_it_is_done_and_its_job_has(done: bool, job: str | None, state: State) -> None:
    assert result(Mode.TEST, FINE, done=done, job=job).state is state


def test_succeeded_without_a_run_or_with_a_failed_one_is_a_failure() -> None:
    assert result(Mode.TEST).state is State.FAILED
    assert "without a run" in result(Mode.TEST).reason
    failed = result(
        Mode.TEST, FINE, {"mode": "benchmark", "passed": False, "result": {"benchmark.0.error": "boom"}}
    )
    assert (failed.state, failed.reason) == (State.FAILED, "benchmark: boom")


def test_a_ranked_success_needs_every_secret_run_and_a_public_score() -> None:
    secret = RANKED | {"secret": True}
    assert result(Mode.RANKED, FINE, RANKED, secret).score_s == 2e-6
    assert result(Mode.RANKED, FINE, RANKED, secret | {"passed": False}).state is State.FAILED
    assert result(Mode.RANKED, FINE, secret).state is State.FAILED
    assert result(Mode.RANKED, FINE, RANKED | {"score": None}, secret).state is State.FAILED
    assert result(Mode.RANKED, FINE).reason == "the board shows no leaderboard run"
    # The secret run's time is no score, even when it is the better one.
    assert result(Mode.RANKED, FINE, RANKED, secret | {"score": "0.000001"}).score_s == 2e-6


def test_times_of_hidden_cases_are_not_taken() -> None:
    bench = {"mode": "benchmark", "passed": True, "result": timed("n: 1")}
    got = result(Mode.BENCHMARK, bench, bench | {"secret": True, "result": timed("n: 2")})
    assert [time.case for time in got.cases] == [{"n": 1}]
    with pytest.raises(BoardError, match="no times"):
        result(Mode.BENCHMARK, bench | {"result": {}})


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "soon", 5, ""])
def test_a_deadline_outside_the_calendar_is_an_error(moment: Any) -> None:
    with pytest.raises(BoardError, match="deadline"):
        read(Leaderboard, {"name": "a", "deadline": moment}, "here")


def test_a_deadline_without_a_zone_is_utc() -> None:
    assert read(Leaderboard, {"name": "a", "deadline": "1970-01-02T00:00:00"}, "here").deadline == 86400


def test_reasons_of_the_board_are_kept_as_one_line() -> None:
    said = "secret validation failed on A100; submission will not appear on the leaderboard"
    failed = result(Mode.RANKED, RANKED, job="failed", error=said)
    assert (failed.state, failed.reason, failed.score_s) == (State.FAILED, said, None)
    hacked = result(
        Mode.TEST, job="hacked", error="Submission rejected\nMatched rules:\x1b[2J A, B. " + "x" * 9999
    )
    assert hacked.state is State.REJECTED
    assert hacked.reason.startswith("Submission rejected Matched rules: [2J A, B.")
    assert len(hacked.reason) <= 500


@pytest.mark.parametrize("score", ["nan", "-1", "0", "1e999", "soon", [], True])
def test_a_score_that_is_no_time_is_an_error(score: Any) -> None:
    if score is True:  # a number for JSON's readers, and one second
        score = {}
    with pytest.raises(BoardError, match="score"):
        result(Mode.RANKED, RANKED | {"score": score})


def timed(*specs: str, **extra: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"benchmark-count": str(len(specs))}
    for i, spec in enumerate(specs):
        values |= {f"benchmark.{i}.spec": spec, f"benchmark.{i}.mean": f"{1000 * (i + 1)}.5"}
    return values | extra


def test_cases_are_matched_by_content_and_not_by_the_text() -> None:
    known = [{"size": 128, "seed": 1}, {"size": 256, "seed": 1, "case": "dense", "on": True, "dims": [1, 2]}]
    values = timed(
        "seed: 1; case: dense; dims: [1, 2]; on: True; size: 256", "seed: 1; size: 128", "size: 7; x: a:b"
    )
    cases = [time.case for time in case_times(values, known)]
    assert cases[0] is known[1]
    assert cases[1] is known[0]
    assert cases[2] == {"size": 7, "x": "a:b"}


def test_equal_cases_are_two_cases() -> None:
    known = [{"size": 1}, {"size": 1}]
    cases = [time.case for time in case_times(timed("size: 1", "size: 1"), known)]
    assert [id(case) for case in cases] == [id(case) for case in known]


def test_times_are_nanoseconds() -> None:
    (time,) = case_times(
        timed("n: 1", **{"benchmark.0.std": "20", "benchmark.0.best": 900, "benchmark.0.runs": "7"}), []
    )
    assert time.mean_s == pytest.approx(1.0005e-6)
    assert (time.std_s, time.best_s, time.runs) == (pytest.approx(2e-8), pytest.approx(9e-7), 7)


@pytest.mark.parametrize("mean", ["nan", "inf", "-3", "0", "", [], {}, "1" * 5000])
def test_a_mean_that_is_no_time_is_an_error(mean: Any) -> None:
    with pytest.raises(BoardError, match=r"benchmark\.0\.mean is no time"):
        list(case_times(timed("n: 1", **{"benchmark.0.mean": mean}), []))


@pytest.mark.parametrize("count", ["-1", "x", "1001", "9" * 400, "٣", {}])
def test_a_senseless_number_of_cases_is_an_error(count: Any) -> None:
    with pytest.raises(BoardError, match="benchmark-count"):
        list(case_times({"benchmark-count": count or ["no"]}, []))


def test_a_case_that_failed_has_no_time_and_hides_no_other() -> None:
    values = timed("n: 1", "n: 2", **{"benchmark.0.mean": None, "benchmark.0.status": "fail"})
    assert [time.case for time in case_times(values, [])] == [{"n": 2}]


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (429, "Rate limit exceeded: 6/2 test submissions per hour. Try again in 3576s.", RateLimited),
        (400, "failed to prepare submission request: 500: Internal server error: no database", Unavailable),
        (400, "failed to prepare submission request: 500: Leaderboard `x` does not exist.", Refused),
        (400, "The deadline of this leaderboard has passed", Refused),
        (500, "Error fetching GPU data", Unavailable),
        (503, "KernelGuard is down", Unavailable),
        (408, "", Unavailable),
        (403, "no", Refused),
        (401, "", Unauthorized),
    ],
)
def test_a_refusal_is_told_from_a_failure(status: int, text: str, kind: type[BoardError]) -> None:
    error = refusal(status, text)
    assert type(error) is kind
    if isinstance(error, RateLimited):
        assert error.retry_s == 3576


def test_a_stream_passed_only_when_all_of_it_passed() -> None:
    fine = {"success": True, "runs": {"test": {"run": {"success": True, "passed": True}}}}
    bad = {"success": True, "runs": {"test": {"run": {"success": True, "passed": False}}}}
    died = {"success": True, "runs": {"test": {"compilation": {"success": False}, "run": None}}}
    for results, passed in (([fine], True), ([], False), ([fine, bad], False), ([died], False)):
        assert read(Streamed, {"results": results}, "here").passed is passed


def test_the_hidden_seed_is_dropped_wherever_it_stands() -> None:
    got = parse_json(
        b'[{"name": "a", "secret_seed": 77123, "task": {"secret_seed": 77123, "x": 1}}]', (), "here"
    )
    assert got == [{"name": "a", "task": {"x": 1}}]
    assert "secret_seed" not in Leaderboard.model_fields


def test_an_echo_is_hidden_in_keys_and_values() -> None:
    echo = f'{{"a{CLI_ID}": ["{CLI_ID.upper()}!"]}}'.encode()
    assert parse_json(echo, [Secret(CLI_ID)], "here") == {"a[hidden]": ["[hidden]!"]}


# --- the credential ---------------------------------------------------------------------------------------------


URL = "https://gpu.example"
HERE = {"POPCORN_API_URL": f"{URL}/"}


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    assert find_credential(URL, HERE, tmp_path) is None
    (tmp_path / ".popcorn.yaml").write_text(f"cli_id: {CLI_ID}\n", encoding="utf-8")
    found = find_credential(URL, HERE, tmp_path)
    assert found is not None
    assert found.reveal() == CLI_ID
    given = find_credential("http://127.0.0.1:1", {**HERE, "POPCORN_CLI_ID": " other-one\n"}, tmp_path)
    assert given is not None
    assert given.reveal() == "other-one"


@pytest.mark.parametrize("server", ["https://evil.example", "https://gpu.example:444", "http://gpu.example"])
def test_the_files_credential_goes_to_the_users_own_server_only(server: str, tmp_path: Path) -> None:
    (tmp_path / ".popcorn.yaml").write_text(f"cli_id: {CLI_ID}\n", encoding="utf-8")
    assert find_credential("https://GPU.example:443/api/", HERE, tmp_path) is not None
    assert find_credential(server, HERE, tmp_path) is None
    assert find_credential(URL, {}, tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[1]", b"cli_id:", b"cli_id: [a]", b"cli_id: true", b"\xff\x00", b"cli_id: 'topsecretvalue", b"a: &a [*a",
        b"cli_id: topsecretvalue with blanks", b"cli_id: short", b'cli_id: "topsecret\\r\\nvalue"', b"[" * 1500,
        b"cli_id: 0x" + b"f" * 5000,
    ],
)  # fmt: skip
def test_a_malformed_file_is_one_line_that_quotes_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".popcorn.yaml").write_bytes(content)
    with pytest.raises(Unauthorized, match="popcorn register") as caught:
        find_credential(URL, HERE, tmp_path)
    assert "topsecret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_in_its_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / ".popcorn.yaml").mkdir()
    with pytest.raises(Unauthorized, match="no ordinary file"):
        find_credential(URL, HERE, tmp_path)


def test_a_secret_is_shown_by_nothing() -> None:
    secret = Secret(CLI_ID)
    for text in (
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret!r:>50}",
        repr([secret]),
        repr({"a": secret}),
    ):
        assert CLI_ID not in text
    for keep in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not kept"):
            keep(secret)
    assert not hasattr(secret, "__dict__")
    assert secret.hide(f"x{CLI_ID.upper()}y {CLI_ID}") == "x[hidden]y [hidden]"


# --- addresses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["https://a.example/", "http://localhost:8000", "http://[::1]:80/x/", "http://127.0.0.1"]
)
def test_an_address_loses_its_last_slash_and_nothing_else(text: str) -> None:
    assert base_url(text, {}) == text.rstrip("/")
    assert base_url(None, {"POPCORN_API_URL": text}) == text.rstrip("/")


@pytest.mark.parametrize(
    "text",
    [
        "http://a.example", "http://localhost.example", "https://u:pw@a.example", "https://u@a.example", "ftp://a", "a",
        "https://", "https://a?x=1", "https://a#x", "https://a b", "https://a:99999", "https://[x", "https://ä.example",
        "https://a\x1b", "http://127.0.0.1@a.example", "https://:pw@a",
    ],
)  # fmt: skip
def test_an_address_that_could_give_the_credential_away_is_refused(text: str) -> None:
    with pytest.raises(UserError) as caught:
        base_url(text, {})
    assert "pw" not in str(caught.value)


def test_without_an_address_it_is_said_where_it_comes_from() -> None:
    with pytest.raises(UserError, match="POPCORN_API_URL"):
        base_url(None, {})


def test_names_of_boards() -> None:
    assert parse_name("kernelbot:vectoradd_v2@H100") == ("vectoradd_v2", "H100")
    assert parse_name("kernelbot:") == ("", "")
    assert parse_name("kernelbot:x") == ("x", "")
    for text in ("x", "kernelbot:@H100", "kernelbot:a@", "kernelbot:a/b", "kernelbot:a@../x", "http://a"):
        with pytest.raises(UserError):
            parse_name(text)


# --- texts and events -----------------------------------------------------------------------------------------------


@given(st.text(), st.integers(1, 50))
def test_a_line_is_one_short_printable_line(text: str, limit: int) -> None:
    got = line(text, limit)
    assert got.isprintable()
    assert len(got) <= limit


STREAM = (
    b'event: status\ndata: {"elapsed_time": 0.0}\n\n: a comment\n\nevent: result\r\ndata: {"a":\r\ndata: "\xc3\xa9"}\r\n\r\n'
    b"data:x\rid: 7\rretry: 5\r\revent: lonely\n\ndata\n\nevent: cut\ndata: off"
)
EVENTS = [
    Event("status", b'{"elapsed_time": 0.0}'),
    Event("result", b'{"a":\n"\xc3\xa9"}'),
    Event("message", b"x"),
    Event("message", b""),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=len(STREAM)))
def test_events_are_the_same_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    reader = Events()
    found = [event for a, b in itertools.pairwise(places) for event in reader.feed(STREAM[a:b])]
    assert found == EVENTS


def test_events_come_byte_by_byte() -> None:
    reader = Events()
    assert [event for i in range(len(STREAM)) for event in reader.feed(STREAM[i : i + 1])] == EVENTS
