"""The self-test as its callers have it: the reference in a sandboxed child, the baseline on the cpu device."""

import json
import re
from pathlib import Path

import pytest

from kernelwright.core.errors import ProblemError
from kernelwright.harness.child import Child, ChildDied
from kernelwright.harness.problem_test import cheap_cases, quick_selftest, self_test
from kernelwright.harness.self_test import Verdict
from kernelwright.harness.wire import Reply, Request
from kernelwright.problems.loader import Problem, load_problem
from tests.problems.folders import BASELINE, GOOD, REFERENCE, write_problem

START = "import os, time\n\n\ndef reference(xp, sizes, X, factor):\n"


def problem(
    tmp_path: Path, reference: str = REFERENCE, toml: str = GOOD, baseline: str = BASELINE
) -> Problem:
    folder = write_problem(tmp_path / "p", toml, reference)
    (folder / "baseline.cu").write_text(baseline)
    return load_problem(folder)


async def test_a_quick_test_looks_at_the_smallest_case(tmp_path: Path) -> None:
    result = await quick_selftest(problem(tmp_path))
    assert result.passed
    assert not result.warnings
    assert {row.case for row in result.rows} == {"N=10", ""}


async def test_a_quick_test_tells_what_is_wrong(tmp_path: Path) -> None:
    result = await quick_selftest(problem(tmp_path, toml=GOOD.replace("rtol = 1e-6", "atol = 100.0")))
    assert not result.passed
    assert any(line.startswith("zeros on N=10: passes for Y") for line in result.warnings)


async def test_a_reference_that_ends_its_process_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ProblemError, match=r"reference\.py:5: reference\.py ended the process \(exit code 3\): .*os\._exit"
    ):
        await quick_selftest(problem(tmp_path, START + "    os._exit(3)\n"))
    with pytest.raises(
        ProblemError, match=r"reference\.py: the process ended with code 3 on the case N=10: .*os\._exit"
    ):
        await quick_selftest(problem(tmp_path, START + "    __import__('ctypes').CDLL(None)._exit(3)\n"))


async def test_a_process_that_is_killed_once_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths: list[int] = [9]
    ask = Child.ask

    async def killed(child: Child, request: Request, timeout_s: float) -> Reply:
        if deaths:
            raise ChildDied("the reference worker ended", deaths.pop())
        return await ask(child, request, timeout_s)

    monkeypatch.setattr(Child, "ask", killed)
    found = problem(tmp_path, REFERENCE)
    assert (await quick_selftest(found)).warnings == ()
    deaths += [9, 15]
    with pytest.raises(ProblemError, match="leave the process alone"):
        await quick_selftest(found)
    deaths[:] = [11]
    with pytest.raises(ProblemError, match="leave the process alone"):
        await quick_selftest(found)


async def test_a_reference_that_never_ends_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"reference\.py: did not answer for the case N=10 within 3 s"):
        await quick_selftest(problem(tmp_path, START + "    while True: pass\n"), timeout_s=3.0)


async def test_a_reference_that_raises_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"reference\.py:5: reference\.py raised KeyError"):
        await quick_selftest(problem(tmp_path, START + "    return {'Y': X * sizes['M']}\n"))


async def test_sizes_that_make_no_sense_are_found_before_a_campaign(tmp_path: Path) -> None:
    even = problem(tmp_path, START + "    return {'Y': xp.reshape(xp.reshape(factor * X, (2, -1)), (-1,))}\n")
    with pytest.raises(ProblemError, match=r"raised ValueError: .* \(the trial 'size N=1'\): .*other_sizes"):
        await quick_selftest(even)


async def test_a_problem_of_large_cases_is_looked_at_off_its_list(tmp_path: Path) -> None:
    large = (
        GOOD.replace("N = 100 ", "N = 100000000 ")
        .replace("N = 1000 ", "N = 200000000 ")
        .replace("slow_cases = [{ sizes = { N = 10 } }]", "")
    )
    result = await quick_selftest(problem(tmp_path, toml=large))
    assert result.passed
    assert {row.case.split("=")[0] for row in result.rows if row.case} == {"size N"}
    only = large.replace("work =", "trials = { other_sizes = false }\nwork =")
    assert any(
        "too large to look at" in line
        for line in (await quick_selftest(problem(tmp_path, toml=only))).warnings
    )


async def test_a_reference_cannot_write_beside_its_problem(tmp_path: Path) -> None:
    """It runs in the sandbox: its own folder is readable, nothing of the user's is writable."""
    place = tmp_path / "written"
    body = f"    with open({json.dumps(str(place))}, 'w'):\n        pass\n    return {{'Y': factor * X}}\n"
    with pytest.raises(ProblemError, match=r"raised (PermissionError|FileNotFoundError|OSError)"):
        await quick_selftest(problem(tmp_path, START + body))
    assert not place.exists()


async def test_the_whole_test_runs_the_baseline(tmp_path: Path) -> None:
    result = await self_test(problem(tmp_path), "cpu", slow=True)
    assert result.passed
    rows = {row.name: row for row in result.rows}
    assert rows["baseline on cpu"].verdict is Verdict.OK
    assert rows["trials"].detail.endswith("trials")
    assert rows["tolerance"].verdict is Verdict.OK  # one rounding: 6e-8 of 1e-6


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        (
            ["cstdint", "nobody_has.h", "not/it.h"],
            "can include nobody_has.h, not/it.h (the header <nobody_has.h> does not",
        ),
        (["cub/cub.cuh", "nobody_has.h"], "can include nobody_has.h (the header"),  # cub: elsewhere
        (["iostream"], "can include iostream (includes the host header <iostream>"),
        (["cstdint", "cub/cub.cuh"], ""),
    ],
)
async def test_a_header_that_the_rules_allow_and_nobody_has_is_told_once(
    tmp_path: Path, headers: list[str], told: str
) -> None:
    toml = GOOD.replace("work =", f"rules = {{ allowed_headers = {json.dumps(headers)} }}\nwork =")
    result = await self_test(problem(tmp_path, toml=toml), "cpu", slow=True)
    assert result.passed
    rows = [row for row in result.rows if row.name == "allowed headers"]
    assert [row.verdict for row in rows] == ([Verdict.WARNING] if told else [])
    assert all(f"no candidate on cpu {told}" in row.detail for row in rows)
    assert all("rules.allowed_headers of problem.toml" in row.mend for row in rows)


async def test_a_tolerance_that_is_tight_on_a_trial_only_is_told(tmp_path: Path) -> None:
    """Honest candidates would be refused there."""
    narrow = BASELINE.replace("factor * X[i]", "N == 10 ? factor * X[i] : factor * X[i] * 1.0000008f")
    result = await self_test(problem(tmp_path, baseline=narrow), "cpu", slow=True)
    row = next(row for row in result.rows if row.name == "tolerance")
    assert row.verdict is Verdict.WARNING
    assert re.search(r"honest candidates may be refused \((stress|size) .*\)", row.detail), row.detail


async def test_a_wrong_baseline_fails_the_problem(tmp_path: Path) -> None:
    wrong = problem(tmp_path, baseline=BASELINE.replace("factor * X[i]", "X[i]"))
    result = await self_test(wrong, "cpu", slow=True)
    assert not result.passed
    row = next(row for row in result.rows if row.name == "baseline on cpu")
    assert row.verdict is Verdict.FAILED
    assert "wrong" in row.detail


async def test_a_baseline_that_holds_for_its_cases_only_fails_a_trial(tmp_path: Path) -> None:
    special = BASELINE.replace("factor * X[i]", "N == 10 ? factor * X[i] : 0.0f")
    result = await self_test(problem(tmp_path, baseline=special), "cpu", slow=True)
    row = next(row for row in result.rows if row.name == "baseline on cpu")
    assert row.verdict is Verdict.FAILED
    assert "[trials]" in row.mend
    allowed = GOOD.replace("work =", "trials = { other_sizes = false }\nwork =")
    result = await self_test(problem(tmp_path, toml=allowed, baseline=special), "cpu", slow=True)
    assert result.passed
    assert any("specialised" in row.detail for row in result.rows)


def test_only_cheap_cases_are_answered_many_times() -> None:
    for name, expected in (
        ("gemm", ["M=128,N=128,K=128", "M=256,N=256,K=256", "M=511,N=509,K=515"]),
        ("nbody", ["N=1024"]),
    ):
        loaded = load_problem(name)
        assert [case.id for case in cheap_cases(loaded, loaded.cases(slow=False))] == expected
