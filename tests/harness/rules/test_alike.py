"""What NVRTC does not see but nvcc's pass for the host does is refused; conditions of the text itself are not."""

import pytest

from kernelwright.core.compilers import COMPILERS, GUARDS
from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.source import check_source

PLAN = """/* kernelwright
[tune]
BM = [64]
[let]
HALF = "BM / 2"
PER_SM = "BM * num_sms"
[[launch]]
kernel = "k"
grid = ["N"]
block = ["BM"]
args = ["A"]
*/
"""
KERNEL = 'extern "C" __global__ void k(float* a, int n) { a[0] = n; }\n'
HIDDEN = 'int evil = system("");\n#endif'


def verdict(source: str) -> str:
    found = check_source(f"{PLAN}{source}\n{KERNEL}", CandidateRules(portable=True))
    return found.reason if found else ""


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (f"#if __ELF__\n{HIDDEN}", "'__ELF__' may be a macro of a header"),
        (f"#ifdef EOF\n{HIDDEN}", "line 13: the condition asks for 'EOF'"),
        (f"#define Q EOF\n#if Q\n{HIDDEN}", "asks for 'Q'"),
        (f"#define P Q\n#define Q 1\n#undef Q\n#define Q EOF\n#if P\n{HIDDEN}", "asks for 'P'"),
        (f"#ifndef EOF\n#define EOF 1\n#else\n{HIDDEN}", "asks for 'EOF'"),
        (f"#if 0\n#define EOF 1\n#endif\n#ifdef EOF\n{HIDDEN}", "asks for 'EOF'"),
        (f"#ifndef EOF\n#define EOF 1\n#endif\n#if EOF < 0\n{HIDDEN}", "line 16: the condition asks for 'EOF'"),
        (f"#ifndef I\n#define I 1\nint x;\n{HIDDEN}", "asks for 'I'"),
        ("#ifndef KEEP\n#define KEEP(x)\n#endif", "asks for 'KEEP'"),
        ("#ifndef SIDE\n#define SIDE __device__\n#endif", "asks for 'SIDE'"),
        (f"#define TILE 8\n#include <vector>\n#if TILE\n{HIDDEN}", "asks for 'TILE'"),
        (f"#if num_sms > 132\n{HIDDEN}", "asks for 'num_sms'"),
        (f"#if PER_SM > 132\n{HIDDEN}", "asks for 'PER_SM'"),
        ("namespace a NV_IF_TARGET(NV_IS_HOST, (int x = f();))", "'NV_IF_TARGET' may be a macro"),
        ("#define X _CCCL_HOST_DEVICE", "'_CCCL_HOST_DEVICE' may be a macro"),
        ("__P(int x = 1;)", "'__P' may be a macro"),
        ('#define X "\x0c int x = f(); //"', "some take for a line's end"),
        (f"#if '\\xff' > 0\n{HIDDEN}", "a character in a condition"),
        (f"#define C '\\xff'\n#if C > 0\n{HIDDEN}", "asks for 'C'"),
        (f"#if BM && #cpu(BM)\n{HIDDEN}", "a character in a condition"),
        (f"#if 0\n#elifdef BM\n{HIDDEN}", "#elifdef is unknown"),
        (f"#define KERNELWRIGHT_ARCH 3\n#if __CUDA_ARCH__ == 3\n{HIDDEN}", "'KERNELWRIGHT_ARCH': names with"),
        (f"#undef __CUDA_ARCH__\n#ifdef __CUDA_ARCH__\n{HIDDEN}", "a macro named '__CUDA_ARCH__'"),
        ("#define DROP_STREAM(x)\n#define P(a, b) a##b\nint P(DROP_ST, REAM)(f());", "that give the macro"),
        (f"#define H 1\n#define ALF 1\n#define P(a, b) a##b\n#define C P(H, ALF)\n#if !C\n{HIDDEN}", "the macro 'HALF'"),
        ("#define F(a, ...) G(a, ##__VA_ARGS__)", "is read differently by compilers"),
        ('#define X "\u2028 int x = f(); //"', "some take for a line's end"),
    ],
)  # fmt: skip
def test_refused(source: str, part: str) -> None:
    assert part in verdict(source)


@pytest.mark.parametrize(
    "source",
    [
        "#if BM == 64 && HALF > 2 && !defined(KERNELWRIGHT_CPU)\n#define VEC 4\n#elif BM\n#define VEC 2\n#else\n#define VEC 1\n#endif\n#if VEC > 1\n#endif",
        "#define ROWS (BM / 4)\n#define AT(i) ((i) * ROWS)\n#if AT(3) > 8\n#endif",
        "#undef FAST\n#if BM > 32\n#define FAST\n#endif\n#ifdef FAST\n#endif",
        "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif",
        "#ifndef FLT_MAX\n#define FLT_MAX 3.4e38f\n#define FLT_MIN (-1)\n#endif",
        "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n#endif",
        "#ifdef __CUDACC__\n#endif",
        "#ifdef KERNELWRIGHT_CPU\n#include <cmath>\n#endif",
        "#define F(...) f(__VA_ARGS__)\n#define K(T) k_##T\n__device__ void K(float)();",
        'constexpr _Float16 x = 0; _Pragma("unroll")',
        '__device__ const char* f() { return R"(a\n b)"; }',
    ],
)  # fmt: skip
def test_allowed(source: str) -> None:
    assert verdict(source) == ""


@pytest.mark.parametrize("name", ["__CUDACC_RTC__", "__NVCC__", "__GNUC__", "__clang__", "__cplusplus", "__linux__",
                                  "__x86_64__", "__CUDA_ARCH_LIST__", "_MSC_VER", "_WIN32", "NDEBUG"])  # fmt: skip
def test_what_conditions_may_ask_for_besides_is_refused_by_an_export(name: str) -> None:
    assert GUARDS.fullmatch(name)
    assert COMPILERS.fullmatch(name)
