"""What would run on the host, where a board's compiler makes code for it, is refused; what tunes device code is not."""

import pytest

from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.source import check_source

KERNEL = 'extern "C" __global__ void k(float* a, int n) { a[0] = n; }\n'


def verdict(source: str) -> str:
    found = check_source(f"{source}\n{KERNEL}", CandidateRules())
    return found.reason if found else ""


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("__host__ __device__ int f() { return 1; }", "line 1: '__host__': a candidate is device code only"),
        ("#define HD __ho##st__ __device__", "__host__"),
        ("\n__attribute__((constructor)) __device__ void f() {}", "line 2: __attribute__ 'constructor' is not allowed"),
        ("__attribute((__constructor__(101))) __device__ void f() {}", "__constructor__"),
        ("__attribute__((unused, destructor)) __device__ void f() {}", "'destructor' is not allowed"),
        ('__attribute__((aligned(16), section(".init_array"))) constexpr int x = 1;', "is a directive of an assembler"),
        ('__attribute__((section("init"))) constexpr int x = 1;', "'section' is not allowed"),
        ('__attribute__((ifunc("f"))) __device__ void g();', "'ifunc' is not allowed"),
        ("#define RUN __attribute__((constructor))", "'constructor' is not allowed"),
        ("#define RUN(x) __attribute__((x))", "'x' is not allowed"),
        ("#define RUN __attribute__(", "cannot be read"),
        ("#define OPEN ((\n__attribute__ OPEN constructor)) __device__ void f() {}", "cannot be read"),
        ("__attribute__((unused constructor)) __device__ void f() {}", "cannot be read"),
        ("[[gnu::constructor]] __device__ void f() {}", "'gnu': only plain attributes are allowed"),
        ("[ [ifunc(1)]] __device__ void f() {}", "the attribute 'ifunc' is not allowed"),
        ("[/**/[ifunc(1)]] __device__ void f() {}", "the attribute 'ifunc' is not allowed"),
        ("#define E\n[E[gnu::ifunc]] __device__ void f() {}", "'gnu'"),
        ("#define L(a, b) a a g##b\nL([, nu::ifunc])", "pastes tokens that give 'gnu'"),
        ("#define unused constructor\n__attribute__((unused)) __device__ void f() {}", "'unused' is a macro"),
        ("#define hot(x) constructor\n__attribute__((cold, hot(1))) __device__ void f() {}", "'hot' is a macro"),
        ("#define A(unused) __attribute__((unused))\nA(constructor)", "'unused' is a macro, or a parameter"),
        ("#define OPEN [ [", "brackets that do not match"),
        ("#define X 4), constructor, aligned(4\nstruct __align__(X) S {};", "brackets that do not match"),
        ("#define J(a, b) a##b\nJ(__attri, bute__)((constructor)) __device__ void f() {}", "pastes tokens that give"),
        ("#define J(a, b) a##b\n#define J2(m, a, b) m(a, b)\nJ2(J, __ho, st__) int f();", "pastes tokens that give"),
        ("#define J(a, b) a##b\nJ(__ho, st__) int f();\n#undef J\n#define J(a, b)", "pastes tokens that give"),
        ("<:<:gnu::constructor:>:> __device__ void f() {}", "digraphs"),
        ("__annotate__(constructor) __device__ void f() {}", "__annotate__"),
        ('asm(".globl f");', "'.globl' is a directive of an assembler"),
        ('__device__ void f() { asm("add.s32 %0, 1;\\n.section .init_array"); }', "'.section' is a directive"),
        ('asm(".sec" "tion .text");', "'.section' is a directive"),
        ('asm("x:.quad 1");', "'.quad' is a directive"),
        ('asm(R"(\n.macro m)");', "'.macro' is a directive"),
        ('_Pragma("redefine_extname a b")', "_Pragma of anything but"),
        ("#define P(x) _Pragma(#x)", "_Pragma of anything but"),
    ],
)  # fmt: skip
def test_refused(source: str, part: str) -> None:
    assert part in verdict(source)


@pytest.mark.parametrize(
    "source",
    [
        "struct __attribute__((aligned(16), packed)) V { float x[4]; };",
        "typedef float f4 __attribute__((vector_size(16)));",
        "__attribute__((__noinline__)) __device__ void f() {}",
        "__attribute__(()) __device__ void f() {}",
        "[[nodiscard]] __device__ int f() { return 1; }",
        '[[maybe_unused, deprecated("old")]] __device__ int f() { return 1; }',
        "__device__ int f(int* a) { int i[1] = {0}; return a[[&] { return i[0]; }()] + a[a[0]]; }",
        '__device__ void f() { asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p bra L; }" :: "r"(1)); }',
        '__device__ void f() { asm volatile("{\\n\\t.reg .b64 t;\\n\\tcvta.to.shared.u64 t, %0; }" :: "l"(1ll)); }',
        '__device__ void f() { asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(1), "l"(1ll)); }',
        '#define UNROLL _Pragma("unroll")',
        '#define UNROLL _Pragma("unroll 4")',
        '#define QUIET _Pragma("nv_diag_suppress 177")',
        'static_assert(sizeof(int) == 4, "an int has 4 bytes. See above.");',
        "__device__ bool f(int a, int b) { return a<::sqrt(b); }",
        "#define ALIGN 16\n#define AT(p, i) p[i]\nstruct __attribute__((aligned(ALIGN))) S { int a[AT(ALIGN, 0)[1]]; };",
        "#define packed_row(x) (x)[0]\n#define likely(x) __builtin_expect(!!(x), 1)",
    ],
)  # fmt: skip
def test_allowed(source: str) -> None:
    assert verdict(source) == ""
