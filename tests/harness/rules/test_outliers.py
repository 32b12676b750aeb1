"""What singles out a case is found by evaluating it, whatever it looks like."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.core.errors import UserError
from kernelwright.core.lexer import lex
from kernelwright.core.plan import parse_plan
from kernelwright.core.rules import CandidateRules
from kernelwright.gauntlet import load_entries
from kernelwright.harness.rules.outliers import check_outliers
from kernelwright.harness.rules.source import check_source
from kernelwright.problems.loader import bundled_names, load_problem
from kernelwright.problems.rules import candidate_rules

ROOT = Path(__file__).parents[3]
RULES = CandidateRules(no_size_branches=True, sizes={"R": (64, 123), "C": (64, 77)})
PLAN = """/* kernelwright
[tune]
T = [32, 64, 128]
ODD = [8, 123]
BS = [256]
[let]
PER = "T // 8"
[[launch]]
kernel = "k"
grid = ["cdiv(R, 4)", "cdiv(C, BS)"]
block = [256]
args = ["A", "R", "C"]
*/
"""
HELPERS = r"""
struct B64 { char c[64]; };
__constant__ const int TABLE[2] = {64, 123};
constexpr int operator""_k(unsigned long long v) { return (int)(v * 10 + 3); }
#define IS(x) (!((x) - 64))
#define JOIN(a, b) a##b
__device__ __forceinline__ bool same(int a, int b) { return a - b == 0; }
__device__ int deep(int n, bool b) { if (b) return 3; const int d = n - 63; if (d * 2 == 2) return 1; return 0; }
enum { E0 = 62, E1, E2 };
namespace ns { constexpr int BOX = 64; }
struct S { static constexpr int v = 64; };
template <int V> struct H { static constexpr int v = V; };
template <class T, int K> __device__ bool is(T x) { return x == K; }
template <int K> __device__ int deeper(int x) { int n = x; if (n == K) return 1; return 0; }
"""
KERNEL = """extern "C" __global__ void k(float* a, int R, int C) { const int i = blockIdx.x * 256 + threadIdx.x;
 %s }
"""


def source(body: str) -> str:
    return PLAN + HELPERS + KERNEL % body


@pytest.mark.parametrize(
    "body",
    [
        "if (R-64==0) a[0]=1;",
        "if (!(R-64)) a[0]=1;",
        "if (R+1==65) a[0]=1;",
        "if ((unsigned)R-64u<1u) a[0]=1;",
        "if ((float)R==64.f) a[0]=1;",
        "if (R=='@') a[0]=1;",
        "if (R==sizeof(B64)) a[0]=1;",
        "if (TABLE[0]==R) a[0]=1;",
        "if (min(R,64)==R && max(R,64)==R) a[0]=1;",
        "a[!(R-123)] = 1;",
        "if (R == 12_k) a[0] = 1;",
        "if (gridDim.x == 31) a[0] = 1;",
        "if (R % 97 == 26) a[0] = 1;",
        "if (R % 11 == 2 && R % 17 == 4) a[0] = 1;",
        "if (R - 64) a[0] = 1;",
        "while (R - 64) {}",
        "for (int q = R - 64; !q; ++q) a[q] = 1;",
        "int n = R; n -= 64; if (!n) a[0] = 1;",
        "int n; n = R; --n; if (n == 63) a[0] = 1;",
        "if (IS(R)) a[0] = 1;",
        "if (R + 0 == JOIN(6, 4)) a[0] = 1;",
        "if (same(R, 64)) a[0] = 1;",
        "a[0] = deep(R, false);",
        "if (R == E2) a[0] = 1;",
        "if (R * 2 > 127) if (R * 2 < 129) a[0] = 1;",
        "if (R * 2 < 128) return; if (R * 2 < 130) a[0] = 1;",
        "if (R * 2 < 128) { } else if (R * 2 > 129) { } else { a[0] = 1; }",
        "switch (R - 60) { case 4: a[0] = 1; }",
        "bool b = R - 64; a[0] = b;",
        "if (R * 2 + C * 2 == 256 ? true : false) a[0] = 1;",
        "if (i < R && R - 64 == 0) a[0] = 1;",
        "if (__popc(R - 64) == 0) a[0] = 1;",
        "if (__int2float_rn(R) == 6.4e1f) a[0] = 1;",
        "if (R == T) a[0] = 1;",
        "if (R == PER * 8) a[0] = 1;",
        "if (R / ODD * (ODD / R) == 1) a[0] = 1;",
        "if (64 / R * (R / 64) == 1) a[0] = 1;",
        "a[0] = a[i] * (64 / R * (R / 64));",
        "if (abs(R - 64) < 1) a[0] = 1;",
        "if (static_cast<long>(R) - 64L == 0) a[0] = 1;",
        "if (R == int(64.5f)) a[0] = 1;",
        'a[0] = "ab"[R - 64 == 0];',
        "auto f = [&](int q) { return R - 64 == 0; };",
        "if (R * 1 == 64 && C * 1 == 64) a[0] = 1;",
        "if ((R ^ 0100) == 0) a[0] = 1;",
        "if ((R - 63) / 3 == 0 && R > 62) a[0] = 1;",
        "if (R - 64 || a[0] > 1) a[0] = 1;",
        "int f = 0; if (R * 2 > 127) f = 1; if (R * 2 > 129) f = 0; if (f) a[0] = 1;",
        "int f = 0; if (R * 2 > 127) { if (R * 2 > 129) f = 0; else { f = 1; } } a[f] = f * 2;",
        "if (ns::BOX == R) a[0] = 1;",
        "if (S::v == R) a[0] = 1;",
        "if (H<64>::v == R) a[0] = 1;",
        "if (is<int, 64>(R)) a[0] = 1;",
        "if (is<int, ns::BOX>(R)) a[0] = 1;",
        "a[0] = deeper<64>(R);",
        'if (R + 1 == sizeof("0123456789012345678901234567890123456789012345678901234567890123")) a[0] = 1;',
    ],
)
def test_what_singles_out_a_case_is_refused(body: str) -> None:
    broken = check_source(source(body), RULES)
    assert broken is not None
    assert re.match(r"line \d+: '", broken.reason)
    assert check_source(source(body), replace(RULES, no_size_branches=False)) is None


@pytest.mark.parametrize(
    "body",
    [
        "if (R > 70) a[0] = 1;",
        "if (R/64==1) a[0] = 1;",
        "if (R>>6==1) a[0] = 1;",
        "if (R % 4 == 0) a[0] = 1;",
        "if (R & 63) a[0] = 1;",
        "if (!(R & 63)) a[0] = 1;",
        "if ((R & (R - 1)) == 0) a[0] = 1;",
        "if (i < R && i + 1 < C) a[0] = 1;",
        "if (blockIdx.x == gridDim.x - 1) a[0] = 1;",
        "if (R <= T) a[0] = 1;",
        "if (R == C) a[0] = 1;",
        "if (2 * R == C * 2) a[0] = 1;",
        "if (R % T == 0 && C % 4 == 0) a[0] = 1;",
        "a[(R + 31) / 32 * 32 - R] = 1;",
        "a[i * R + C] = R % 77;",
        "for (int j = i; j < R; j += gridDim.x * blockDim.x) if (j == R - 1) a[j] = 1;",
        "for (int j = 0; j < C; ++j) if (j * 64 == R) a[j] = 1;",
        "int n = 0; for (int j = 0; j < R; ++j) { n = n + 1; if (n == 64) break; } a[0] = n;",
        "switch (R & 3) { case 0: a[0] = 1; break; case 3: a[1] = 1; }",
        "switch (R / 16) { case 4: a[0] = 1; }",
        "if (gridDim.x == 1) a[0] = 1;",
        "if (gridDim.x > 1) a[0] = 1;",
        "const bool full = (R % 64) == 0 && (C % 64) == 0; a[0] = full;",
        "const int left = R - R / 8 * 8; if (left == 3) a[0] = left;",
        "if (R > 1024 && R <= 2048) a[0] = 1;",
        "if (C <= 128 && C % 4 == 0) a[0] = 1;",
        "if (R * C % 4 == 0) a[0] = 1;",
        "if (R == 1) a[0] = 1;",
        "if (R < C) a[0] = 1; else if (R > C) a[0] = 2; else a[0] = 3;",
        "float acc[2] = {0, 0}; acc[0] = a[i]; if (acc[0] == R - 64) a[0] = 1;",
        "a[0] = 1.0f / R; a[1] = fmodf(R, 3.f);",
        "int m = min(R, C); if (m > 32) a[0] = m;",
        "if (same(R, C)) a[0] = 1;",
        "if (R % 61 == 3) a[0] = 1;",
        "int v = 1; if (R % 4 == 0) v = 4; else if (R % 2 == 0) v = 2; if (v == 4) a[0] = v; a[R / v * v] = 1;",
        "int v = 1; if (a[0] > 1) v = R - 64; if (v == 0) a[0] = v;",
        "int v = R; for (int j = 0; j < C; ++j) { if (j == 3) v = 64; } if (v == R) a[0] = v;",
        "if (is<int, 1>(R % 4) || H<2>::v == R % 4) a[0] = deeper<1>(R);",
        "for (int K = 0; K < R; ++K) if (K == 64) a[0] = K;",
        "{ int n = 64; a[0] = n; } { int n = R; if (a[0] == n) a[1] = n; }",
    ],
)
def test_properties_of_any_size_are_free(body: str) -> None:
    broken = check_source(source(body), RULES)
    assert broken is None, broken


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("R // 64 * (64 // R)", True),
        ("R // 123 * (123 // R)", True),
        ("1 + min(1, R // 123) * min(1, 123 // R)", True),
        ("max(R, 123) - min(R, 123)", True),
        ("1 if R % 97 == 26 else 0", True),
        ("2 if R - 64 else 1", True),
        ("R // ODD * (ODD // R)", True),
        ("R * C", False),
        ("cdiv(R, 64) * 64 - R", False),
        ("R % T", False),
        ("2 if R % 4 == 0 and C <= 128 else 1", False),
        ("ceil_pow2(R) - R", False),
        ("4 if R > 100 else 2", False),
        ("R * C / 1", False),
    ],
)
def test_expressions_of_a_plan(expression: str, refused: bool) -> None:
    text = source("a[0] = 1;").replace('args = ["A", "R", "C"]', f'args = ["A", "R", "{expression}"]')
    broken = check_source(text, RULES)
    assert (broken is not None) is refused, broken


def test_what_a_plan_passes_is_known() -> None:
    text = source("if (C == 63) a[0] = 1;").replace('args = ["A", "R", "C"]', 'args = ["A", "R", "R - 1"]')
    assert check_source(text, RULES) is not None
    two = source("if (R * 2 < 129) a[0] = 1;").replace('grid = ["cdiv', 'when = "R * 2 > 127"\ngrid = ["cdiv')
    assert check_source(two, RULES) is not None
    assert check_source(two.replace("when", "# when"), RULES) is None


def test_the_line_is_that_of_the_code() -> None:
    text = source("#define FIVE 5\n\n  if (R - 59 == FIVE) a[0] = 1;")
    broken = check_source(text, RULES)
    assert broken is not None
    line = int(broken.reason.split(":")[0].removeprefix("line "))
    assert "R - 59" in text.splitlines()[line - 1]


# -- nothing honest is refused ----------------------------------------------------------------------------


@cache
def rules_of(problem: str) -> CandidateRules:
    return replace(candidate_rules(load_problem(problem)), no_size_branches=True)


def honest() -> Iterator[tuple[str, str, CandidateRules]]:
    for entry in load_entries(ROOT / "tests" / "gauntlet"):
        if entry.kind == "honest":
            place = (
                str(ROOT / "tests" / "gauntlet" / entry.problem) if "/" in entry.problem else entry.problem
            )
            yield entry.file, entry.text, rules_of(place)
    for name in bundled_names():
        problem = load_problem(name)
        for title, text in (("baseline", problem.baseline_source), *problem.catalogue()):
            yield f"{name} {title}", text, rules_of(name)
    for path in sorted((ROOT / "tests" / "data" / "replies").glob("*.jsonl")):
        name = path.stem.removeprefix("cpu_")
        place = name if name in bundled_names() else str(ROOT / "examples" / name)
        for line in path.read_text(encoding="utf-8").splitlines():
            reply = json.loads(line)
            for text in re.findall(r"```\w*\n(/\* kernelwright.*?)```", reply["text"], re.DOTALL):
                yield f"{path.name} {reply['id']}", text, rules_of(place)
    for path in sorted((ROOT / "examples").rglob("*.cu")):
        folder = next((p for p in path.parents if (p / "problem.toml").exists()), None)
        if folder:
            yield path.name, path.read_text(encoding="utf-8"), rules_of(str(folder))


def other_size(draw: Random) -> int:
    power = 1 << draw.randrange(2, 21)
    return draw.choice(
        (power, 3 * power, power + 1, power - 1, draw.randrange(3, 3_000_000), draw.randrange(3, 200))
    )


def test_honest_sources_are_judged_soon_and_not_refused() -> None:
    taken, draw = [], Random(7)
    for title, text, rules in honest():
        try:
            plan = parse_plan(text)
        except UserError:
            continue
        began = time.thread_time()
        broken = check_outliers(lex(text), rules, plan)
        taken.append(time.thread_time() - began)
        assert broken is None, (title, broken)
        others = {name: tuple(other_size(draw) for _ in range(3)) for name in rules.sizes}
        broken = check_outliers(lex(text), replace(rules, sizes=others), plan)
        assert broken is None, (title, others, broken)
    assert len(taken) > 100
    assert sorted(taken)[len(taken) // 2] < 0.1


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(16, 3_000_000) | st.integers(4, 21).map(lambda k: 1 << k),
    branch=st.sampled_from(
        ["N - {n} == 0", "!(N - {n})", "N + 1 == {n} + 1", "(unsigned)N - {n}u < 1u", "(double)N == {n}.", "N / {n} * ({n} / N)",
         "max(N, {n}) == N && min(N, {n}) == N", "(N ^ {n}) == 0", "N % {n} == 0 && N / 2 < {n}", "__popc(N ^ {n}) < 1"]
    ),
)  # fmt: skip
def test_any_size_is_found(size: int, branch: str) -> None:
    text = KERNEL.replace("int R, int C", "int N") % f"if ({branch.format(n=size)}) a[0] = 1;"
    rules = CandidateRules(no_size_branches=True, sizes={"N": (100, size)})
    assert check_outliers(lex(text), rules, None) is not None


# -- bombs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "__device__ int f0(int n) { return n; }\n"
        + "\n".join(
            f"__device__ int f{i}(int n) {{ return f{i - 1}(n) + f{i - 1}(n + 1); }}" for i in range(1, 60)
        )
        + KERNEL % "a[0] = f59(R);",
        "__device__ int f(int n) { return f(n) + f(n - 1); }" + KERNEL % "a[0] = f(R);",
        "#define M0 R + R\n"
        + "\n".join(f"#define M{i} M{i - 1} + M{i - 1}" for i in range(1, 40))
        + "\n"
        + KERNEL % "a[0] = M39;",
        KERNEL
        % ("int n0 = R;" + "".join(f"int n{i} = n{i - 1} + 1;" for i in range(1, 3000)) + "a[0] = n2999;"),
        KERNEL % ("a[0] = " + "(" * 400 + "R" + " + 1)" * 400 + ";"),
        KERNEL % ("int n = R;" + "n++;" * 20000 + "a[0] = n;"),
    ],
)
def test_bombs_end_soon(text: str) -> None:
    began = time.process_time()
    check_source(PLAN + text, RULES)
    assert time.process_time() - began < 5


def test_a_long_chain_of_names_is_followed() -> None:
    chain = "int n0 = R;" + "".join(f"int n{i} = n{i - 1} + 1;" for i in range(1, 300))
    assert check_source(source(chain + "if (n299 * 1 == 363) a[0] = 1;"), RULES) is not None


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["R", "C", "64", "123u", "1.5f", "'@'", "'\\x", "'", "(", ")", "+", "-", "*", "/", "%", "<<", ">>", "==", "!",
             "~", "?", ":", "&&", "^", "[", "]", "{", "}", ",", ";", "=", "++", "int n", "n", "if (", "for (", "switch (",
             "case ", "TABLE", "sizeof(", "B64", "12_k", "7_q", "0x1p3", "99999999999999999999", "IS(", "JOIN(",
             "same(", "min(", "abs(", "__popc(", "(float)", "int(", "gridDim.x", "T", "return ", "else ", "enum {", "\n",
             "#define R C\n", "static_cast<int>(", "1e400", "__clz("]
        ),
        max_size=30,
    )
)  # fmt: skip
def test_no_text_makes_it_raise(parts: list[str]) -> None:
    check_source(source(" ".join(parts)), RULES)
    check_source(source("".join(parts)), RULES)
    check_source(HELPERS + KERNEL % " ".join(parts), RULES)
