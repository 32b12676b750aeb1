"""Names that a loader calls, data of the host and labels of asm are refused; kernels and shared memory are not."""

import pytest

from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.source import check_source

KERNEL = '\nextern "C" __global__ void k(float* a, int n) { a[0] = n; }\n'


def verdict(source: str) -> str:
    found = check_source(source + KERNEL, CandidateRules(portable=True))
    return found.reason if found else ""


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("extern const unsigned char code[] = {0xc3};", "extern of what is not device code"),
        ('extern "C" const unsigned char code[] = {0xc3};', "extern of what is not device code"),
        ('extern "C" { __device__ int f() { return 1; } extern const char code[] = {1}; }', "extern of what"),
        ('extern "C" { const char code[] = {1}; }', "extern of what"),
        ('#define EXT extern "C"\nEXT const char code[] = {1};', "extern of what"),
        ("#define DROP(x)\n#define D DROP(__device__)\nextern D const char code[] = {1};", "extern of what"),
        ("#define P(a, b) a##b\nP(ex, tern) const char code[] = {1};", "pastes tokens that give 'extern'"),
        ('extern "C" __device__ void __gmon_start__() {}', "'__gmon_start__' is a name that the host's loader"),
        ("#define P(a, b) a##b\ninline constexpr char P(__gmon, _start__)[1] = {1};", "'__gmon_start__': write it out"),
        ('extern "C" __global__ void PyInit_x() {}', "'PyInit_x' is a name"),
        ('__device__ int f() asm("environ");', "asm that may name a symbol"),
        ('__device__ int f() asm("f; ret");', "asm that may name a symbol"),
        ('#define L asm("f")\n__device__ int f() L;', "asm that may name a symbol"),
        ("#define L(x) asm(x)", "asm that may name a symbol"),
        ('#define A asm\n__device__ int f() A("f");', "asm that may name a symbol"),
        ('#define volatile\n__device__ int f() asm volatile("f");', "a macro named 'volatile'"),
    ],
)  # fmt: skip
def test_refused(source: str, part: str) -> None:
    assert part in verdict(source)


@pytest.mark.parametrize(
    "source",
    [
        "__device__ void f() { extern __shared__ float s[]; extern __align__(16) __shared__ char t[]; }",
        "__device__ void f() { __shared__ extern float s[]; }",
        "extern __device__ int f(int);",
        "extern template __device__ int f<3>(int);",
        'extern "C" void __global__ __launch_bounds__(256) g(float* a) {}',
        'extern "C" __launch_bounds__(256) __global__ void g(float* a) {}',
        'extern "C" { __global__ void g(float* a) { if (a) { a[0] = 1; } } __device__ int f() { return 1; } }',
        '#define KERNEL extern "C" __global__\nKERNEL void g() {}',
        '#define GLOBAL __global__\nextern "C" GLOBAL void g() {}',
        '__device__ void f() { asm("bar.sync 0;"); asm("mov.u32 %0, 1;" : "=r"(n)); asm volatile("trap;"); }',
        '__device__ void f(bool p) { if (p) asm volatile("trap;"); else asm("exit;"); }',
        '__device__ void f() { if (n) asm("mov.u32 %0, 1;" : "=r"(n)); __asm__ __volatile__("" ::: "memory"); }',
        '#define FENCE asm volatile("fence.proxy.async;" ::: "memory")',
    ],
)  # fmt: skip
def test_allowed(source: str) -> None:
    assert verdict(source) == ""
