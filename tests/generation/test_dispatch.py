"""Putting specialists together into one template."""

import pytest

from kernelwright.core.candidate import Candidate, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.resolve import macros, resolve
from kernelwright.generation.dispatch import Part, compose, dispatch, divide
from kernelwright.problems.loader import load_problem

from .test_catalogue import H200

WORK = {"a": 1, "b": 10, "c": 100, "d": 1000}


def names(division: list[tuple[str, list[str]]]) -> list[tuple[str, str]]:
    return [(name, "".join(cases)) for name, cases in division]


def test_each_range_of_sizes_goes_to_the_fastest_there() -> None:
    times = {
        "small": {"a": 1.0, "b": 1.0, "c": 9.0, "d": 9.0},
        "large": {"a": 3.0, "b": 3.0, "c": 2.0, "d": 2.0},
    }
    assert names(divide(WORK, times)) == [("small", "ab"), ("large", "cd")]


def test_one_candidate_is_kept_whole_when_cutting_gains_next_to_nothing() -> None:
    times = {
        "one": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0},
        "two": {"a": 0.999, "b": 2.0, "c": 2.0, "d": 2.0},
    }
    assert names(divide(WORK, times)) == [("one", "abcd")]


def test_cases_of_equal_work_are_never_parted() -> None:
    times = {"x": {"a": 1.0, "b": 9.0}, "y": {"a": 9.0, "b": 1.0}}
    assert len(divide({"a": 5, "b": 5}, times)) == 1
    assert len(divide({"a": 5, "b": 6}, times)) == 2


def test_more_specialists_than_parts_keep_the_ones_that_pay_most() -> None:
    cases = "abcdefgh"
    work = {case: 2**i for i, case in enumerate(cases)}
    times = {case: {other: 1.0 if other == case else 1.0 + work[case] for other in cases} for case in cases}
    division = divide(work, times)
    assert len(division) == 4
    assert division[-1][1][-1] == "h"


def candidate(problem: str, template: str, index: int = 0) -> Candidate:
    source = dict(load_problem(problem).catalogue())[template]
    parsed = parse_template(source, template)
    return Candidate(parsed, parsed.plan.space(H200).configuration(index))


def test_a_composed_template_launches_each_part_in_its_range_with_its_own_numbers() -> None:
    problem = load_problem("gemm")
    parts = {name: candidate("gemm", name) for name in ("register_tile", "shared_tile")}
    cases = problem.cases(slow=False)
    expression, work = problem.size_of(cases)
    ordered = sorted(work, key=lambda case: work[case])
    proposal = dispatch(
        parts, work, expression, [("shared_tile", ordered[:3]), ("register_tile", ordered[3:])]
    )
    assert proposal is not None
    assert proposal.parents == (parts["shared_tile"].id, parts["register_tile"].id)
    whole = Candidate(proposal.template, Configuration())
    for case in cases:
        small = case.id in ordered[:3]
        name, prefix = ("shared_tile", "P0_") if small else ("register_tile", "P1_")
        alone = resolve(parts[name], case.sizes, H200, problem.signature)
        together = resolve(whole, case.sizes, H200, problem.signature)
        assert [launch.kernel for launch in together.launches] == [prefix + x.kernel for x in alone.launches]
        assert [launch.grid for launch in together.launches] == [x.grid for x in alone.launches]
        assert [launch.block for launch in together.launches] == [x.block for x in alone.launches]
    given = macros(whole, H200)
    for prefix, name in (("P0_", "shared_tile"), ("P1_", "register_tile")):
        own = {k: v for k, v in macros(parts[name], H200).items() if k not in H200.plan_values()}
        assert {prefix + k: v for k, v in own.items()}.items() <= given.items()


SIMPLE = """/* kernelwright
{extra}[[launch]]
kernel = "k"
grid = [1]
block = [32]
args = ["A"]
*/
{code}
extern "C" __global__ void k(float* A) {{}}
"""


def simple(code: str = "", extra: str = "", values: dict[str, bool | int] | None = None) -> Candidate:
    return Candidate(parse_template(SIMPLE.format(code=code, extra=extra)), Configuration(values or {}))


def test_includes_move_to_the_top_once() -> None:
    parts = [
        Part(simple("#include <mma.h>"), None, 5),
        Part(simple("# include <mma.h>\n#include <cuda_fp16.h>"), 5, None),
    ]
    template = compose(parts, "M")
    assert template is not None
    body = template.source.split("*/", 1)[1]
    assert body.count("include <mma.h>") == 2  # written in two ways, both before the first namespace
    assert body.index("cuda_fp16") < body.index("namespace part0")


def test_parts_that_cannot_share_a_file_are_not_joined() -> None:
    conditional = simple("#if 1\n#include <mma.h>\n#endif")
    assert compose([Part(simple(), None, 5), Part(conditional, 5, None)], "M") is None
    tune = "[tune.compiler]\nuse_fast_math = [false, true]\n"
    slow, fast = (simple(extra=tune, values={"compiler.use_fast_math": v}) for v in (False, True))
    assert compose([Part(slow, None, 5), Part(fast, 5, None)], "M") is None
    assert compose([Part(fast, None, 5), Part(fast, 5, None)], "M") is not None


def test_a_body_without_a_define_leak() -> None:
    parts = [Part(simple("#define WIDTH 4"), None, 5), Part(simple("#define WIDTH 8"), 5, None)]
    template = compose(parts, "M")
    assert template is not None
    assert template.source.count("#undef WIDTH") == 2


@pytest.mark.parametrize("problem", ["gemm", "softmax", "reduce_sum", "transpose"])
def test_every_catalogue_can_be_joined(problem: str) -> None:
    found = [name for name, _ in load_problem(problem).catalogue()]
    parts = [Part(candidate(problem, name), n or None, n + 1) for n, name in enumerate(found[:4])]
    assert compose(parts, "1") is not None
