"""Plans: parse, format, and errors that name their place."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.core.candidate import Candidate, format_template, parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.device import DeviceFacts
from kernelwright.core.errors import ExpressionError, PlanError
from kernelwright.core.plan import parse_plan
from kernelwright.core.resolve import Signature, compiler_options, macros, resolve

FACTS = DeviceFacts(
    name="cuda:0", kind="cuda", model="test", arch="sm_90a", uuid="u", num_sms=132, warp_size=32,
    max_threads_per_block=1024, max_shared_bytes=232448, l2_bytes=60 << 20, memory_bytes=1 << 37,
    registers_per_sm=65536, shared_bytes_per_sm=233472, max_threads_per_sm=2048, max_blocks_per_sm=32, toolchain="t",
)  # fmt: skip
SIGNATURE = Signature({"A": "float32", "C": "float32"}, {"alpha": ("float32", 0.5)})
GEMM = """/* kernelwright
[tune]
BM = [32, 64]
VEC = [1, 2]
[tune.compiler]
use_fast_math = [false, true]
[constraints]
even = "BM % VEC == 0"
[let]
TPB = "BM / VEC"
rows = "cdiv(M, BM)"
[scratch]
partial = { dtype = "float32", shape = ["rows", 2] }
[[launch]]
kernel = "main_kernel"
grid = ["rows", "num_sms"]
block = ["TPB"]
dynamic_shared_bytes = "4 * BM"
args = ["A", "C", "partial", "M", "alpha", "rows + 1"]
[[launch]]
kernel = "small_kernel"
grid = [1]
block = [32]
args = ["C"]
when = "M <= 100"
*/
extern "C" __global__ void main_kernel() {}
"""


def launch(text: str = "") -> str:
    return f'[[launch]]\nkernel = "k"\ngrid = [1]\nblock = [32]\nargs = ["A"]\n{text}'


def source(plan: str) -> str:
    return f'/* kernelwright\n{plan}\n*/\nextern "C" __global__ void k(float* A) {{}}\n'


def test_a_candidate_resolves_to_plain_numbers() -> None:
    template = parse_template(GEMM, "gemm.cu")
    candidate = Candidate(template, Configuration({"BM": 64, "VEC": 2, "compiler.use_fast_math": True}))
    plan = resolve(candidate, {"M": 1000}, FACTS, SIGNATURE)
    assert [spec.kernel for spec in plan.launches] == ["main_kernel"]
    spec = plan.launches[0]
    assert (spec.grid, spec.block, spec.dynamic_shared_bytes) == ((16, 132, 1), (32, 1, 1), 256)
    assert [(a.name, a.dtype, a.value) for a in spec.arguments] == [
        ("A", "float32", None), ("C", "float32", None), ("partial", "float32", None),
        ("M", "int32", 1000), ("alpha", "float32", 0.5), ("rows + 1", "int32", 17),
    ]  # fmt: skip
    assert plan.scratch[0].elements == 32
    assert macros(candidate, FACTS) == {
        "BM": 64, "VEC": 2, "TPB": 32, "num_sms": 132, "max_shared_bytes": 232448, "warp_size": 32
    }  # fmt: skip
    assert compiler_options(candidate) == {"use_fast_math": True}


def test_a_launch_is_left_out_where_its_when_is_false() -> None:
    template = parse_template(GEMM, "gemm.cu")
    candidate = Candidate(template, Configuration({"BM": 32, "VEC": 1, "compiler.use_fast_math": False}))
    both = resolve(candidate, {"M": 100}, FACTS, SIGNATURE)
    assert [spec.kernel for spec in both.launches] == ["main_kernel", "small_kernel"]


def test_a_plan_whose_every_launch_is_left_out_is_refused() -> None:
    candidate = Candidate(parse_template(source(launch('when = "M > 5"'))), Configuration())
    with pytest.raises(PlanError, match="no launch is left"):
        resolve(candidate, {"M": 5}, FACTS, SIGNATURE)


def test_formatting_and_parsing_give_the_same_plan() -> None:
    template = parse_template(GEMM, "gemm.cu")
    again = parse_template(format_template(template), "gemm.cu")
    assert again.plan == template.plan
    assert format_template(again) == format_template(template)


def test_the_space_holds_the_constraints() -> None:
    space = parse_template(GEMM).plan.space(FACTS)
    assert len(space) == 8
    assert space.names == ("BM", "VEC", "compiler.use_fast_math")


def test_ids_follow_the_content() -> None:
    one, other = parse_template(GEMM, "a.cu"), parse_template(GEMM + "\n", "a.cu")
    same = parse_template(GEMM.replace("\n", "\r\n"), "b.cu")
    assert one.id == same.id != other.id
    left = Candidate(one, Configuration({"BM": 32, "VEC": 1}))
    assert left.id == Candidate(same, Configuration({"VEC": 1, "BM": 32})).id
    assert left.id != Candidate(one, Configuration({"BM": 32, "VEC": 2})).id


@pytest.mark.parametrize(
    ("plan", "message", "line"),
    [
        ("[tune\n" + launch(), "not valid TOML", 2),
        ("[tune]\nBM = []\n" + launch(), "non-empty list", 3),
        ("[tune]\nBM = [1.5]\n" + launch(), "only 32-bit integers", 3),
        ("[tune]\nBM = [8, 8]\n" + launch(), "tune.BM: has the value 8 twice", 3),
        ("[tune]\nBM = [4, true, 1]\n" + launch(), "has the value True twice", 3),
        ("[tune]\nnum_sms = [8]\n" + launch(), "not a usable name", 3),
        ("[tune.compiler]\nopt = [1]\n" + launch(), "not an allowed compiler setting", 3),
        ("[tune.compiler]\nuse_fast_math = [3]\n" + launch(), "bool expected", 3),
        ('[tune]\nBM = [8]\n[constraints]\nc = "BM < N"\n' + launch(), "a constraint may use only", 5),
        ('[tune]\nBM = [8]\n[constraints]\nc = "BM <"\n' + launch(), "constraints.c", 5),
        ('[let]\na = "b + 1"\nb = "2"\n' + launch(), "before it is defined", 3),
        ('[let]\nx = "1"\n[scratch]\nx = { dtype = "float32", shape = [1] }\n' + launch(), "already used in", 5),
        ('[scratch]\ns = { dtype = "float33", shape = [1] }\n' + launch(), "dtype must be one of", 3),
        ("[wrong]\nx = 1\n" + launch(), "unknown key", 2),
        ("", "needs 1 to 64", 2),
        ('[[launch]]\nkernel = "k"\ngrid = [1]\nargs = ["A"]', "lacks the key 'block'", 2),
        (launch("cooperative = 3"), "true or false", 7),
        (launch("clusters = [1]"), "unknown key", 7),
        ('[[launch]]\nkernel = "a b"\ngrid = [1]\nblock = [1]\nargs = ["A"]', 'extern "C" kernel', 3),
        ('[[launch]]\nkernel = "k"\ngrid = [1, 1, 1, 1]\nblock = [1]\nargs = ["A"]', "1 to 3 expressions", 4),
        ('[[launch]]\nkernel = "k"\ngrid = [true]\nblock = [1]\nargs = ["A"]', "must be an integer", 4),
    ],
)  # fmt: skip
def test_a_bad_plan_is_one_line_with_its_place(plan: str, message: str, line: int) -> None:
    with pytest.raises(PlanError, match=re.escape(message)) as caught:
        parse_template(source(plan), "file.cu")
    assert caught.value.line == line
    assert str(caught.value).startswith(f"file.cu:{line}")
    assert "\n" not in str(caught.value)


def test_the_column_of_a_bad_expression_is_that_of_the_fault() -> None:
    with pytest.raises(PlanError) as caught:
        parse_template(source('[let]\nTPB = "(8 / 2"\n' + launch()), "file.cu")
    assert caught.value.line == 3
    assert caught.value.column >= len('TPB = "')


def test_a_plan_that_is_never_closed_is_told_from_none() -> None:
    with pytest.raises(PlanError, match=r"^file.cu:2:1: the plan's comment is never closed"):
        parse_plan("\n/* kernelwright\n[tune]\nT = [1]\n", "file.cu")


def test_a_file_without_a_plan_says_what_is_needed() -> None:
    with pytest.raises(PlanError, match="must start with a plan"):
        parse_plan("__global__ void k() {}", "file.cu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (launch().replace("[32]", "[2048]"), "block.x is 2048"),
        (launch().replace("block = [32]", "block = [64, 32]"), "a block of 2048 threads"),
        (launch().replace("grid = [1]", "grid = [0]"), "at least 1 is needed"),
        (launch().replace("grid = [1]", "grid = [1, 70000]"), "grid.y is 70000"),
        (launch('dynamic_shared_bytes = "max_shared_bytes + 1"'), "dynamic shared memory"),
        (launch("cluster = [2]"), "cannot be cut into clusters"),
        (launch().replace('"A"', '"B"'), "unknown name"),
        (launch().replace('"A"', '"2 ** 40"'), "no 32-bit integer"),
        (launch().replace("[1]", '["M / 3"]'), "M / 3"),
        ('[let]\nM = "3"\n' + launch(), "is a name of the problem"),
        ('[scratch]\nA = { dtype = "float32", shape = [1] }\n' + launch(), "is a name of the problem"),
        ('[scratch]\ns = { dtype = "float32", shape = ["M ** 5"] }\n' + launch(), "scratch: needs about"),
    ],
)
def test_what_cannot_be_launched_is_refused_with_the_numbers(text: str, message: str) -> None:
    candidate = Candidate(parse_template(source(text)), Configuration())
    with pytest.raises((PlanError, ExpressionError), match=re.escape(message)):
        resolve(candidate, {"M": 1000}, FACTS, SIGNATURE)


def test_a_configuration_without_a_tunable_is_refused() -> None:
    candidate = Candidate(parse_template(source("[tune]\nBM = [8]\n" + launch())), Configuration())
    with pytest.raises(PlanError, match="lacks the tunable 'BM'"):
        macros(candidate, FACTS)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_any_text_as_a_plan_is_a_plan_or_a_plan_error(text: str) -> None:
    try:
        parse_template(source(text))
    except PlanError as error:
        assert "\n" not in str(error).replace(repr(text), "")  # noqa: PT017


@pytest.mark.parametrize("text", ["\0", "\ud800"])
def test_a_source_that_is_no_text_is_refused(text: str) -> None:
    line = GEMM.count("\n") + 1
    with pytest.raises(PlanError, match=rf"^candidate.cu:{line}:3: .* no text"):
        parse_template(f"{GEMM}//{text}")


def test_a_byte_order_mark_is_no_part_of_the_source() -> None:
    assert parse_template("\ufeff" + GEMM).id == parse_template(GEMM).id
