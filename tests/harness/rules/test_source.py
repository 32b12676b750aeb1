import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.source import check_source
from kernelwright.problems.loader import bundled_names, load_problem
from kernelwright.problems.rules import candidate_rules

FREE = CandidateRules()
STRICT = CandidateRules(
    no_tensor_cores=True,
    no_inline_ptx=True,
    no_launch_bounds=True,
    no_size_branches=True,
    banned_words=("__shfl_sync", "cp.async", "cuda::std"),
    allowed_headers=("cuda_fp16.h",),
    sizes={"N": (512, 4096), "M": (128, 7)},
)
KERNEL = 'extern "C" __global__ void k(float* a, int N) { %s }\n'


@pytest.mark.parametrize(
    ("source", "line", "part"),
    [
        ('#include "/etc/passwd"', 1, "host path '/etc/passwd'"),
        ("%:include <../secret.h>", 1, "host path"),
        ("\n/* a\n */ # /* b */ include <~/x>", 3, "host path"),
        ('#inc\\\nlude "/etc/passwd"', 1, "host path"),
        ("#include </*>", 1, "a header's name with quotes"),
        ('\n#if 0\n#include <"> /*\n#endif', 3, "a header's name with quotes"),
        ('#define P "/etc/passwd"\n#include P', 2, "of a macro"),
        ("#embed </etc/passwd>", 1, "one file"),
        ("#if __has_include(<x.h>)\n#endif", 1, "looking for files"),
        ('#line 3 "x.cu"', 1, "#line"),
        ('# 3 "x.cu"', 1, "#line"),
        ('void f() { asm(".inc" "bin \\"x\\""); }', 1, "'.incbin'"),
        ('void f() { asm("\\x2eincbin"); }', 1, "'.incbin'"),
        ('#define A(x) asm(x)\nvoid f() { A(R"q(.incbin "x")q"); }', 2, "'.incbin'"),
        ("void f() { k<<<1, 2>>>(); }", 1, "'<<<'"),
        ('void f() { asm("griddepcontrol.wait;"); }', 1, "programmatic"),
        ("void f() { cudaTriggerProgrammaticLaunchCompletion(); }", 1, "programmatic"),
        ("#define C(a, b) a##b\nvoid f() { C(cudaTriggerProgrammatic, LaunchCompletion)(); }", 1, "pastes tokens"),
        ("int a; // \r asm", 1, "carriage return"),
        ("int a; // \\ \nint b;", 1, "backslash followed by spaces"),
        ("??=include <x>", 1, "a trigraph"),
        ('auto s = R"()\\\n" /* )" ; /* */', 1, "a raw string with a line continuation"),
        ("#define S(x) #x\nvoid f() { asm volatile(S(.section .init_array)); }", 2, "'.section' is a directive"),
        ("#define S(x) #x\n#define D S(.)\nvoid f() { asm(D S(incbin)); }", 3, "'.incbin'"),
        ("#define S(x) #x\n#define T(x) S(x)\n#define I incbin\nvoid f() { asm(T(.I)); }", 4, "'.incbin'"),
        ('#define D "."\nvoid f() { asm(D "incbin"); }', 2, "'.incbin'"),
        ("#define S(...) #__VA_ARGS__\nvoid f() { asm(S(x, .) S(incbin)); }", 2, "'.incbin'"),
        ("#define S(a, x...) #x\nvoid f() { asm(S(, x, .incbin)); }", 2, "'.incbin'"),
        ("#define S(x) #x\n#define C(a, b) S(a##b)\nvoid f() { asm(C(.inc, bin)); }", 3, "'.incbin'"),
        ("#define S(x) #x\n#define C(a, b) S(.a##b)\nvoid f() { asm(C(, incbin)); }", 3, "'.incbin'"),
        ("#define S(x) #x\n#define C(m, x) m(x)\nvoid f() { asm(C(S, .incbin)); }", 3, "'.incbin'"),
        ('#define X .\n#if 0\n#define X ;\n#endif\n#define S(x) #x\n#define T(x) S(x)\nvoid f() { asm(T(X)"incbin"); }',
         7, "'.incbin'"),
        ("#define S(x) #x\nvoid f() { asm(S(.incbin)); }\n#define incbin reg\n", 2, "'.incbin'"),
        ("float f() { return _CG_CONCAT(__fmul, _rz)(1, 2); }", 1, "a header's macro that pastes"),
        ('#ident "x"', 1, "#ident is no directive"),
        ('#if 0\n# sccs "x"\n#endif', 2, "#sccs is no directive"),
        ("#assert machine(x)", 1, "#assert is no directive"),
        ('#pragma ident "x"', 1, "#pragma ident"),
        ("#pragma GCC optimize 1", 1, "#pragma GCC optimize"),
        ("#define unroll ident\n#pragma unroll 4", 2, "#pragma unroll is a macro"),
        ("bool late = __TIME__[0] > 48;", 1, "the same binary"),
        ("#define J(a) __DA##a\nbool late = J(TE__)[0] > 48;", 1, "the same binary"),
        ('void f() { asm("\\U0000002eincbin"); }', 1, "'.incbin'"),
        ('void f() { asm("\\u002eincbin"); }', 1, "'.incbin'"),
        ('void f() { asm("\\x0000000000000000002eincbin"); }', 1, "'.incbin'"),
        ('void f() { asm("\\x12eincbin"); }', 1, "'.incbin'"),
        ('void f() { asm("\\456incbin"); }', 1, "'.incbin'"),
        ('void f() { asm("\\x{2e}incbin"); }', 1, "an escape to some compilers only"),
        ('void f() { asm("\\\\\\o{56}incbin"); }', 1, "an escape to some compilers only"),
        ('void f() { asm("\\N{FULL STOP}incbin"); }', 1, "an escape to some compilers only"),
        ("#if 0\n' /*\n#endif", 2, "a quote that is not closed"),
        ('#if 0\n" /*\n#endif', 2, "a quote that is not closed"),
        ("#define U ' /*\n", 1, "a quote that is not closed"),
        ("#if 0\n#else don't //\n#endif", 2, "a quote that is not closed"),
        ('auto s = R""x( /* )"x";', 1, "a raw string with something strange"),
        ('#if 0\nR"(" /* )"\n#endif', 2, "a raw string with quotes or lines"),
        ('#define A R"(\n#define B )"', 1, "a raw string with quotes or lines"),
        ('auto s = R"(', 1, "does not end"),
        ("int a; /* b", 1, "does not end"),
        ("#if 0\n1'0 /* ' \n#endif", 2, "a digit separator before quotes"),
        ("#if 0\n1'e+'0' /* '\n#endif", 2, "a digit separator before quotes"),
        ("int a = 1''0 /* '\n;", 1, "a digit separator before quotes"),
        ('auto s = fooR"(" /* )";\n//*/', 1, "a quote directly behind 'fooR'"),
        ('auto s = $R"("; )";', 1, "the character '$'"),
        ('auto s = a\u0301R"("; )";', 1, "the character '\\u0301'"),
        ("int a; // \0", 1, "a character of value 0"),
        ('auto s = "a\\\\\n\n"; int b;', 1, "a backslash at the end of a line"),
        ("void f() <% int a; %>", 1, "brackets in digraphs"),
    ],
)  # fmt: skip
def test_never_allowed(source: str, line: int, part: str) -> None:
    broken = check_source(source, FREE)
    assert broken is not None
    assert part in broken.reason
    assert broken.reason.startswith(f"line {line}: ")
    assert "\n" not in broken.reason


@pytest.mark.parametrize(
    "source",
    [
        '// #include "/etc/passwd"\n/* asm(".incbin") <<< */',
        "#include <cuda_fp16.h>\n#include <cooperative_groups/memcpy_async.h>",
        "int shift(int a) { return a << 3 < 4; }",
        "template <class T> struct A {}; A<A<A<int>>> nested;",
        "#define LONG(a) \\\n  do { a; } \\\n  while (0)\nvoid f() { LONG(int b = 1'000'000); }",
        "#define CAT(a, b) a##b\nint CAT(first, second);",
        'void f(float* p) { asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;"); }',
        'void f(unsigned t) { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); }',
        "int broken( { [ <",
        "#define _MY_CONCAT(a, b) a##b\nint _MY_CONCAT(first, second), _STRIDE;",
        "#define S(x) #x\n#define T(x) S(x)\nstatic_assert(1, T(a.x > .5f && b->y % 2));",
        '#ifdef A\n#define V "v4"\n#else\n#define V "v2"\n#endif\nvoid f() { asm volatile("ld.global." V ".f32 %0;"); }',
        "#error don't\n#pragma unroll 4",
        "#define N 4\n#pragma unroll N\n#pragma once\n#\n#warning x\n#pragma nv_diag_suppress 177\n#pragma GCC unroll 4",
        'const char* s = "\\\\x{2e} \\\\N{a} \\x41g \\\\U";',
        "#if 0\nIt doesn't matter that it's wrong; since the 90's.\n#endif",
        "int a = 1'000'000; const char c = 'x'; // a comment",
        "#define A 1'000'000 // a comment\n#if A > 1'000\n#endif",
        "template <class T> struct A {}; struct B {}; A<::B> a; int b = 0x1'fp+3;",
        'auto s = R"(a "quoted" text\nof two lines)";',
    ],
)
def test_honest_code_that_looks_similar(source: str) -> None:
    assert check_source(source, FREE) is None


@pytest.mark.parametrize(
    ("rules", "bad", "good"),
    [
        ({"no_inline_ptx": True}, ['asm("nop;");', "#define H __asm__\n", "#define P(a, b) a##b\nP(as, m)(x);",
                                   "#define Q(a, b) a%:%:b\n#define L as\nQ(L, m)(x);"],
         ["int plasma = asm_like;", "// asm\n", "#define P(a, b) a##b\nint P(a, s), m;"]),
        ({"no_launch_bounds": True}, ["__global__ __launch_bounds__(64) void f();", "[[nv::launch_bounds(64)]] void f();",
                                      "#define B(a) __launch_##a\nB(bounds__)(3)", "void __maxnreg__(32) f();"],
         ["int launch_bounds_of_mine;", "/* __launch_bounds__ */"]),
        ({"no_tensor_cores": True}, ["using namespace nvcuda;", "#include <mma.h>", 'asm("mma.sync.aligned.m16n8k8");',
                                     'asm("wg" "mma.mma_async.sync");', 'asm("tcgen05.mma");'],
         ["int mma_tile = 3;", 'asm("fma.rn.f32 %0;");', 'asm("add.f32 gamma.x;");']),
        ({"allowed_headers": ("cuda_fp16.h",)}, ["#include <cub/cub.cuh>"], ["#include <cuda_fp16.h>"]),
        ({"banned_words": ("__ldg", "cuda::std", "cp.async")}, ["__ldg(p);", "cuda :: std::move(x);",
                                                                'asm("cp.async.ca");'],
         ["my__ldg(p);", "std::move(x);", "// __ldg"]),
        ({"banned_words": ("__fmul_rz", "__expf", "bfloat16")},
         ["__nv_fmul_rz(a, b);", 'asm("call __nv_fmul_rz, (%0);");', "__nv_fast_expf(a);",
          "#define P(a, b) a##b\nP(__nv_, fmul_rz)(a, b);"],
         ["__nv_bfloat16 a;", "__nv_bfloat162 a;", "__nv_fmul_rn(a, b);", "my__nv_fmul_rz(a);"]),
        ({"banned_words": ("st.global.cs",)},
         ['#define S(x) #x\nvoid f(float* y) { asm(S(st.global.cs.f32 [%0], %1;) :: "l"(y)); }',
          "#define S(x) #x\n#define T(x) S(x)\n#define CS cs\nvoid f() { asm(T(st.global.CS.f32 [%0], %1;)); }"],
         ["#define S(x) #x\nvoid f() { asm(S(st.global.f32 [%0], %1;)); asm(S(ld.global.cs.f32 %0, [%1];)); }"]),
        ({"banned_words": ("__half2float",)},
         ["#define P(a, b, c) a##b##c\n#define Q(a, b, c) P(a, b, c)\nQ(__half, TWO, float)(x);"],
         ["#define P(a, b) a##b\nP(__half, TWO)(x);"]),
        ({"max_source_bytes": 300}, ["x" * 301], ["x" * 300]),
    ],
)  # fmt: skip
def test_rules_of_a_problem(rules: dict[str, object], bad: list[str], good: list[str]) -> None:
    held = replace(FREE, **rules)  # type: ignore[arg-type]
    for source in bad:
        assert check_source(source, held) is not None, source
        if "max_source_bytes" not in rules:
            assert check_source(source, FREE) is None, source
    for source in good:
        assert check_source(source, held) is None, source


@pytest.mark.parametrize(
    "body",
    [
        "if (N == 4096) a[0] = 1;",
        "a[0] = 512 != N ? 1 : 2;",
        "if (N > 4095) a[0] = 1;",
        "switch (N) { case 3: break; case 512: a[0] = 1; }",
        "const int half = N / 2; if (half == 2048) a[0] = 1;",
        "const int big = 1 << 12; if (N == big) a[0] = 1;",
        "if (!(N ^ 4096)) a[0] = 1;",
    ],
)
def test_branches_on_sizes(body: str) -> None:
    broken = check_source("\n" + KERNEL % body, STRICT)
    assert broken is not None
    assert broken.reason.startswith("line 2: ")
    assert check_source(KERNEL % body, replace(STRICT, no_size_branches=False)) is None


@pytest.mark.parametrize(
    "source",
    [
        "#define BIG 4096\n" + KERNEL % "if (N == BIG) a[0] = 1;",
        "#define IS(n) ((n) == 4096)\n" + KERNEL % "if (IS(N)) a[0] = 1;",
        "__device__ bool large(int q) { return q == 4096; }\n" + KERNEL % "if (large(N)) a[0] = 1;",
        "#if N == 4096\n#endif",
        "template <int N> struct S {}; template <> struct S<4096> {};",
    ],
)
def test_branches_on_sizes_by_detours(source: str) -> None:
    assert check_source(source, STRICT) is not None


@pytest.mark.parametrize(
    "body",
    [
        "if (threadIdx.x < 512) a[0] = 1;",
        "if (N % 512 == 0) a[0] = 1;",
        "if (N > 0 && N == 1) a[0] = 1;",
        "for (int s = N / 2; s > 128; s /= 2) a[s] = 1;",
        "for (int i = 0; i < 4096; ++i) if (i < N) a[i] = 1;",
        "int i = blockIdx.x * 128 + threadIdx.x; if (i < N) a[i] = 512;",
    ],
)
def test_other_comparisons_are_free(body: str) -> None:
    assert check_source(KERNEL % body, STRICT) is None


PLAN = (
    '/* kernelwright\n[[launch]]\nkernel = "k"\ngrid = [1]\nblock = [32]\nargs = ["A", %s]\nwhen = "%s"\n*/\n'
)


@pytest.mark.parametrize(
    ("argument", "when", "refused"),
    [
        ('"N"', "N == 4096", True),
        ('"N"', "N - 512 == 0", True),
        ('"N"', "512 <= N <= 512", True),
        ('"N"', "N <= 512", False),
        ('"N"', "N % 512 == 0", False),
        ('"1 if N == 4096 else 0"', "N > 3", True),
    ],
)
def test_plans(argument: str, when: str, refused: bool) -> None:
    source = PLAN % (argument, when) + KERNEL % "a[0] = 1;"
    broken = check_source(source, STRICT)
    assert (broken is not None) is refused, broken


def test_the_plan_tells_which_parameter_is_a_size() -> None:
    kernel = 'extern "C" __global__ void k(float* a, int count) { if (count == 4096) a[0] = 1; }'
    assert check_source(PLAN % ('"N"', "N > 3") + kernel, STRICT) is not None
    assert check_source(PLAN % ('"7"', "N > 3") + kernel, STRICT) is None


@pytest.mark.parametrize("name", bundled_names())
def test_bundled_templates_keep_the_rules(name: str) -> None:
    problem = load_problem(name)
    rules = replace(candidate_rules(problem), no_size_branches=True)
    for title, source in (("baseline", problem.baseline_source), *problem.catalogue()):
        assert check_source(source, rules) is None, title


@pytest.mark.parametrize(
    "source",
    ["(" * 60_000, "{" * 60_000, "a<" * 30_000, 'R"(' * 20_000, "/*" * 30_000, "a\\\n" * 20_000,
     "void f(int N){f(N);}" * 3000, "int f(int N){return N" + "==4096" * 9000 + ";}"],
)  # fmt: skip
def test_bombs_end_soon(source: str) -> None:
    began = time.process_time()
    check_source(source, STRICT)
    assert time.process_time() - began < 5


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["#", "include", "define", "A(x)", "##", '"', "'", "\\", "\n", "\r", "/*", "*/", "//", 'R"(', ')"', "N",
             "==", "4096", "if(", "{", "}", "<", ">", "template", "asm", "é", "\0", " ", "switch(N){case 512:"]
        ),
        max_size=60,
    )
)  # fmt: skip
def test_no_text_makes_it_raise(parts: list[str]) -> None:
    check_source("".join(parts), STRICT)
    check_source(" ".join(parts), FREE)


@pytest.mark.parametrize("pragma", ["redefine_extname a b", "weak a", 'push_macro("a")', 'pop_macro("a")'])
def test_pragmas_that_give_names_another_meaning(pragma: str) -> None:
    broken = check_source(f"#pragma {pragma}\n", CandidateRules())
    assert broken is not None
    assert "makes names mean something else" in broken.reason


def test_declared_noise_where_results_must_repeat() -> None:
    plan = '/* kernelwright\natomic_noise = true\n[[launch]]\nkernel = "k"\ngrid = [1]\nblock = [1]\nargs = [1]\n*/\n'
    assert check_source(plan, CandidateRules()) is None
    broken = check_source(plan, CandidateRules(deterministic=True))
    assert broken is not None
    assert "atomic_noise" in broken.reason
