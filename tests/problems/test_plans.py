"""A plan that holds for some cases only is told with the case; a fault that all have alike is the plan's own."""

import pytest

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import PlanError
from kernelwright.problems.case import Case
from kernelwright.problems.plans import plans_for, tried_plans
from tests.core.test_plan import FACTS, SIGNATURE, source

CASES = (Case("small", {"M": 32}), Case("odd", {"M": 33}), Case("M=4096", {"M": 4096}))


def made(**changes: str) -> Candidate:
    """A candidate of one launch, whose entries may be others."""
    entries = {"kernel": '"k"', "grid": '["M"]', "block": "[32]", "args": '["A"]'} | changes
    lines = "\n".join(f"{key} = {value}" for key, value in entries.items())
    return Candidate(parse_template(source(f"[[launch]]\n{lines}\n"), "own/mine.cu"), Configuration())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"when": '"M > 32"'}, "own/mine.cu:7: launch.when: no launch is left: every 'when' is false (case small)"),
        ({"grid": '["M / 32"]'}, "'M / 32' (case odd)"),
        ({"grid": '["1", "M * 16"]'}, "k: grid.y is 65536, the limit is 65535 (case M=4096)"),
        ({"block": '["M - 32"]'}, "block 'M - 32' is 0, at least 1 is needed (case small)"),
        ({"dynamic_shared_bytes": '"100 * M"'}, "409600 bytes of dynamic shared memory, the limit is 232448 (case M=4096)"),
        ({"cluster": "[2]"}, "k: the grid (33, 1, 1) cannot be cut into clusters of (2, 1, 1) (case odd)"),
        ({"args": '["A", "M * 1000000"]'}, "which is no 32-bit integer (case M=4096)"),
        # Each has it in other words: it depends on the case.
        ({"block": '["M * 33"]'}, "k: block.x is 1056, the limit is 1024 (case small)"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_case_names_it(changes: dict[str, str], told: str) -> None:
    with pytest.raises(PlanError) as caught:
        plans_for(made(**changes), CASES, FACTS, SIGNATURE)
    assert str(caught.value).endswith(told)
    assert (caught.value.line > 0, caught.value.key.startswith("launch[0].")) == (True, True)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"args": '["tmpp"]'}, "k: argument unknown name 'tmpp'"),
        ({"block": "[2048]"}, "k: block.x is 2048, the limit is 1024"),
        ({"when": '"M < 0"'}, "no launch is left: every 'when' is false"),
    ],
)
def test_what_is_wrong_in_all_cases_alike_names_none(changes: dict[str, str], told: str) -> None:
    with pytest.raises(PlanError) as caught:
        plans_for(made(**changes), CASES, FACTS, SIGNATURE)
    assert told in str(caught.value)
    assert "(case" not in str(caught.value)


def test_an_only_case_is_named() -> None:
    with pytest.raises(PlanError, match=r"every 'when' is false \(case odd\)$"):
        plans_for(made(when='"M < 0"'), CASES[1:2], FACTS, SIGNATURE)


def test_cases_that_can_be_run_have_their_plan() -> None:
    plans, faults = tried_plans(made(when='"M < 40"'), CASES, FACTS, SIGNATURE)
    assert {case: plan.launches[0].grid for case, plan in plans.items()} == {"small": (32, 1, 1), "odd": (33, 1, 1)}  # fmt: skip
    assert list(faults) == ["M=4096"]
