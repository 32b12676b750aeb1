"""From the server's runs to where a submission stands.

A success is: done, and the job succeeded, and there are runs, and all of them passed. The server says ``succeeded``
also for runs that failed and for runners that died without a run.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from kernelwright.leaderboard.base import BoardError, CaseTime, Mode, Result, Sent, State
from kernelwright.leaderboard.kernelbot.address import WHERE
from kernelwright.leaderboard.kernelbot.answers import MAX_CASES, Run, Submission
from kernelwright.leaderboard.kernelbot.facts import STAGES
from kernelwright.leaderboard.untrusted import line

MAX_REASON: Final = 500
_FAILURES: Final = {"failed": State.FAILED, "timed_out": State.TIMED_OUT, "hacked": State.REJECTED}
_NANO: Final = 1e-9

Case = Mapping[str, object]


def result_of(sent: Sent, answer: Submission, known: Sequence[Case]) -> Result:
    """Where ``sent`` stands. ``known`` are the board's own cases. Raises BoardError for nonsense."""
    state, reason = _state(sent.mode, answer)
    if not state.ended:
        return Result(sent.submission, sent.mode, state)
    passed = state is State.PASSED
    public = [run for run in answer.runs if not run.secret]
    cases = [time for run in public if run.mode == "benchmark" for time in case_times(run.result, known)]
    if passed and sent.mode is Mode.BENCHMARK and not cases:
        raise BoardError(f"{WHERE}: submission {sent.submission}: passed, and the board gives no times")
    score = _score(public) if passed and sent.mode is Mode.RANKED else None
    return Result(sent.submission, sent.mode, state, line(reason, MAX_REASON), score, tuple(cases))


def _state(mode: Mode, answer: Submission) -> tuple[State, str]:
    """A job that failed has ended, done or not; one that succeeded has ended only when it is done too."""
    status = answer.job.status if answer.job else None
    error = (answer.job.error if answer.job else None) or ""
    if status in _FAILURES:
        return _FAILURES[status], "; ".join(filter(None, [error or status, failure(answer.runs)]))
    if not answer.done or status in {"initial", "pending", "running"}:
        return (State.WAITING if status in {"initial", "pending"} else State.RUNNING), ""
    if not answer.runs:
        return State.FAILED, error or "the board's runner ended without a run"
    if not all(run.passed for run in answer.runs):
        return State.FAILED, failure(answer.runs) or error or "a run did not pass"
    deciding = [run for run in answer.runs if run.mode == STAGES[mode] and not run.secret]
    if not deciding:
        return State.FAILED, f"the board shows no {STAGES[mode]} run"
    if mode is Mode.RANKED and all(run.score is None for run in deciding):
        return State.FAILED, "the board gives no score"
    return State.PASSED, ""


def _score(public: Iterable[Run]) -> float:
    return min(run.score for run in public if run.mode == STAGES[Mode.RANKED] and run.score is not None)


def failure(runs: Iterable[Run]) -> str:
    """Why runs failed, as far as they say it."""
    for run in runs:
        if not run.passed:
            said = next(_errors(run.result), "")
            return f"{run.mode}{' (hidden cases)' if run.secret else ''}: {said or 'did not pass'}"
    return ""


def _errors(values: Mapping[str, JsonValue]) -> Iterator[str]:
    for key, value in values.items():
        if key.endswith(".error") and isinstance(value, str):
            spec = values.get(f"{key.removesuffix('.error')}.spec")
            yield f"{line(spec, 100)}: {value}" if isinstance(spec, str) else value


def case_times(values: Mapping[str, JsonValue], known: Sequence[Case]) -> Iterator[CaseTime]:
    """The times of one run's ``result``, matched with the board's cases. Raises BoardError."""
    left = [({line(key, 100): line(str(value)) for key, value in case.items()}, case) for case in known]
    for number in range(_count(values)):
        base = f"benchmark.{number}"
        spec, mean = values.get(f"{base}.spec"), values.get(f"{base}.mean")
        if mean is None:  # this case failed; the run says so
            continue
        runs = values.get(f"{base}.runs")
        yield CaseTime(
            case=_match(spec if isinstance(spec, str) else "", left),
            mean_s=_seconds(mean, f"{base}.mean"),
            std_s=_optional(values, f"{base}.std"),
            best_s=_optional(values, f"{base}.best"),
            runs=int(runs) if isinstance(runs, str) and runs.isdecimal() and len(runs) < 10 else None,
        )


def _count(values: Mapping[str, JsonValue]) -> int:
    text = str(values.get("benchmark-count") or "0")[:10]
    if not (text.isascii() and text.isdecimal()) or int(text) > MAX_CASES:
        raise BoardError(f"{WHERE}: benchmark-count is no sensible number")
    return int(text)


def _optional(values: Mapping[str, JsonValue], key: str) -> float | None:
    value = values.get(key)
    return None if value is None else _seconds(value, key, least=0.0)


def _seconds(value: JsonValue, key: str, least: float = math.ulp(0.0)) -> float:
    """Nanoseconds of the server, as a text or a number, in seconds."""
    try:
        seconds = float(value) * _NANO if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        seconds = math.nan
    if not least <= seconds < math.inf:
        raise BoardError(f"{WHERE}: {line(key)} is no time")
    return seconds


def parse_spec(text: str) -> dict[str, str]:
    """``seed: 1001; size: 128`` as a dictionary of texts; what has no colon is passed over."""
    pairs = (pair.partition(":") for pair in text[:4000].split(";"))
    return {line(key, 100): line(value) for key, colon, value in pairs if colon and key.strip()}


def _match(spec: str, left: list[tuple[dict[str, str], Case]]) -> Case:
    """The board's own case with these values, whatever the order of its keys; else what the text says.

    A case is taken away once matched: two equal cases are two cases.
    """
    wanted = parse_spec(spec)
    for place, (texts, case) in enumerate(left):
        if texts == wanted:
            del left[place]
            return case
    return {key: _value(text) for key, text in wanted.items()}


def _value(text: str) -> object:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20:
        return int(text)
    return {"True": True, "False": False}.get(text, text)
