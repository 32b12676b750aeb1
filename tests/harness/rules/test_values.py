"""Constants of the host whose value may be a call there are refused; plain numbers and device code are not."""

import time

import pytest

from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.source import check_source

KERNEL = '\nextern "C" __global__ void k(float* a, int n) { const float b = sqrtf(a[0]); a[0] = n + b; }\n'
EOF = "#ifndef EOF\n#define EOF 0\n#endif\n"


def verdict(source: str) -> str:
    found = check_source(source + KERNEL, CandidateRules(portable=True))
    return found.reason if found else ""


@pytest.mark.parametrize(
    "source",
    [
        f'{EOF}const int x = EOF ? printf("at loading") : 3;',
        f'{EOF}const int x{{EOF ? printf("at loading") : 3}};',
        f'{EOF}const int x(EOF ? printf("at loading") : 3);',
        f"{EOF}const int x = EOF ? *(int*)8 = 1 : 3;",
        f"{EOF}const int x = EOF ? ++*(int*)8 : 3;",
        f"{EOF}const int x = EOF ? ((int (*)())8)() : 3;",
        f"{EOF}namespace a {{ struct S {{ static inline const int x = EOF ? f() : 3; }}; }}",
        f"{EOF}#define K(x) const int evil = x;\nK(EOF ? f(1) : 3)",
        f"{EOF}#define K const int evil = EOF ? f(1) : 3;\n#define L K\nL",
        f"{EOF}using ci = const int;\nci x = EOF ? f(1) : 3;",
        f"{EOF}#define F f(1)\n#define G F\nstatic const int x = EOF ? G : 3;",
    ],
)
def test_refused(source: str) -> None:
    assert "a constant whose value calls or changes" in verdict(source)


@pytest.mark.parametrize(
    "source",
    [
        "const float x = -(1.0f + 2) * (int)3; static const int y[2] = {1, 2}; const unsigned z = sizeof(int) >= 4;",
        "#define TILE (4 * 8)\n#define LOG2E 1.44f\nconst int x = TILE / 2; const float y = LOG2E;",
        "__constant__ const float x = f(1); constexpr int y = g(2); __device__ const int z = h(3);",
        "struct S { static const int x = 3; float a[4]; __device__ S() : b(g(1)) { const int c = f(1); } int b; };",
        "namespace a { __device__ int f() { const int x = g(1); return x; } } enum { A = B(1) };",
        '#define KERNEL(T) extern "C" __global__ void k_##T(T* a) { const T b = f(a); }\nKERNEL(float)',
        "#define LOAD(i) const float v##i = f(i);\n__device__ void f() { LOAD(3) }",
        'struct S { float a = f(1); const int b = g(2); }; static_assert(sizeof(S) == 4, "");',
        "__launch_bounds__(64) __global__ void f() { const int x = g(1); }",
    ],
)
def test_allowed(source: str) -> None:
    assert verdict(source) == ""


@pytest.mark.parametrize(
    "piece",
    ["template ", "template < ", "asm ", 'extern "C" { ', "const int a(", "const a = {", "#define a b(\n"],
)
def test_time_is_linear(piece: str) -> None:
    begin = time.process_time()
    verdict(piece * (200_000 // len(piece)))
    assert time.process_time() - begin < 4
