"""What an ``eval.py`` of GPU MODE is asked and what it says: a line for every case, ``key: value`` lines back.

Keys: ``check``, ``test-count``, ``test.N.spec|status|error|message``, ``benchmark-count``,
``benchmark.N.spec|runs|mean|std|err|best|worst|status|error``; times are nanoseconds. Lines come in any order and from
a process that ran a stranger's code: whatever is odd makes a failed result with a reason, never an exception.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, geometric_mean
from typing import Final

from kernelwright.leaderboard.base import CaseTime, Mode, Ranking, Result, State
from kernelwright.leaderboard.board_file import Arguments, Value
from kernelwright.leaderboard.untrusted import line

MAX_LINES: Final = 100_000
MAX_VALUE: Final = 10_000
MAX_SECONDS: Final = 1e6
SEED: Final = "seed"
_KEY: Final = re.compile(r"check|(test|benchmark)(-count|\.\d{1,4}\.\w{1,20})", re.ASCII)
EXITS: Final = {
    110: "CUDA failed", 111: "it got no pipe", 112: "a result is wrong", 113: "it cannot read the cases",
    114: "it took too long",
}  # fmt: skip
"""Exit codes of GPU MODE's evaluators that say more than that something failed."""


def case_lines(cases: Sequence[Arguments]) -> str:
    """The file of cases: ``size: 1024; seed: 1`` a line."""
    return "".join("; ".join(f"{name}: {_written(v)}" for name, v in case.items()) + "\n" for case in cases)


def _written(value: Value) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


def read_spec(text: str) -> dict[str, str]:
    """A case as an evaluator repeats it; boards reorder the keys."""
    pairs = (part.partition(":") for part in text.split(";"))
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def read_lines(text: str) -> tuple[dict[str, str], str]:
    """``key: value`` lines, and what is wrong with them (empty: nothing). A key said twice must say the same."""
    said: dict[str, str] = {}
    for number, said_line in enumerate(text.splitlines()):
        if number >= MAX_LINES:
            return said, f"it says more than {MAX_LINES} lines"
        key, _, value = said_line.partition(":")
        name, content = key.strip(), value.strip()[:MAX_VALUE]
        if not _KEY.fullmatch(name):
            continue  # a message of several lines goes on
        if said.setdefault(name, content) != content:
            return said, f"it says {line(name)!r} twice and differently"
    return said, ""


def read_result(
    text: str, mode: Mode, cases: Sequence[Arguments], ranking: Ranking, code: int | None = 0
) -> Result:
    """The result of a run that was asked for ``cases`` and ended with exit ``code`` (``None``: it was ended).

    ``passed`` only where the code is 0, ``check`` is ``pass`` and every case has what the mode promises. Its id is empty.
    """
    said, fault = read_lines(text)
    kind = "test" if mode is Mode.TEST else "benchmark"
    times: tuple[CaseTime, ...] = ()
    if not fault and mode is not Mode.TEST:
        times = tuple(_times(said, cases))
    if code is None:
        return Result("", mode, State.TIMED_OUT, "it did not end in time", cases=times)
    fault = fault or _fault(said, kind, cases, times, code)
    if fault:
        return Result("", mode, State.FAILED, fault, cases=times)
    score = _score([time.mean_s for time in times], ranking) if mode is Mode.RANKED else None
    return Result("", mode, State.PASSED, score_s=score, cases=times)


def _fault(
    said: Mapping[str, str], kind: str, cases: Sequence[Arguments], times: Sequence[CaseTime], code: int
) -> str:
    """Why it is no success; empty when it is one. What a case says goes before how the process ended."""
    for index, case in enumerate(cases):
        place = f"{kind}.{index}"
        told = line(said.get(f"{place}.error") or said.get(f"{place}.message", ""))
        if said.get(f"{place}.status", "pass") != "pass" or f"{place}.error" in said:
            return f"case {index} ({line(case_lines([case]))}) failed{f': {told}' if told else ''}"
        if f"{place}.spec" in said and not _same(read_spec(said[f"{place}.spec"]), case):
            return f"case {index} is answered for another: {line(said[f'{place}.spec'])}"
    if code:
        return f"it ended with code {code}{f': {EXITS[code]}' if code in EXITS else ''}"
    if said.get("check") != "pass":
        return "its check did not pass" if "check" in said else "it said nothing of its check"
    if said.get(f"{kind}-count") not in {None, str(len(cases))}:
        return f"it counts {line(said[f'{kind}-count'])} cases of {len(cases)}"
    answered = (
        len(times) if kind == "benchmark" else sum(f"test.{i}.status" in said for i in range(len(cases)))
    )
    return "" if answered == len(cases) else f"it answered {answered} of {len(cases)} cases"


def _times(said: Mapping[str, str], cases: Sequence[Arguments]) -> Iterator[CaseTime]:
    for index, case in enumerate(cases):
        place = f"benchmark.{index}"
        mean = _seconds(said.get(f"{place}.mean", ""))
        if mean:
            runs = said.get(f"{place}.runs", "")
            yield CaseTime(
                case=case,
                mean_s=mean,
                std_s=_seconds(said.get(f"{place}.std", "")),
                best_s=_seconds(said.get(f"{place}.best", "")),
                runs=int(runs) if runs.isascii() and runs.isdecimal() and len(runs) < 10 else None,
            )


def _seconds(text: str) -> float | None:
    """Nanoseconds as seconds; ``None`` for what is no time."""
    try:
        seconds = float(text) / 1e9
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= MAX_SECONDS else None


def _score(times: Sequence[float], ranking: Ranking) -> float:
    """Seconds; lower is better."""
    if ranking is Ranking.GEOMEAN:
        return geometric_mean(times)
    return times[-1] if ranking is Ranking.LAST else fmean(times)


def _same(spec: Mapping[str, str], case: Arguments) -> bool:
    """Equal but for the seed, which a secret one may have changed."""
    wanted = read_spec(case_lines([case]))
    return {**spec, SEED: ""} == {**wanted, SEED: ""}
