"""Ways around the checked mode: memory and code that it would not look at."""

import re

import numpy as np
import pytest

from kernelwright.core.outcome import Check, Status
from kernelwright.devices.cpu.toolchain import LOCALS_BEGIN_AS_POISON, MODE_FLAGS, Toolchain
from tests.devices.cpu.test_good_kernels import HEAD, out, x_of
from tests.devices.cpu.workbench import Bench, Kernel

N = 256
SUM = "float sum = 0.f; for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];\n"
ANY = "y[threadIdx.x] = 2.f * x[threadIdx.x];"


def adding(body: str, head: str = HEAD) -> Kernel:
    """All threads of one block add to one number: right where each runs to its end, one after the other."""
    return Kernel(head + SUM + body + "}", ["x", "y", N], x_of(N), out(1), lambda a: {"y": a["x"].sum(keepdims=True)},
                  block=64, tolerance=1e-3, atomic_noise=True)  # fmt: skip


def doubling(body: str, head: str = HEAD) -> Kernel:
    return Kernel(
        head + body + ANY + "}", ["x", "y", N], x_of(N), out(N), lambda a: {"y": 2.0 * a["x"]}, block=N
    )


CLEARED = "if (threadIdx.x == 0) y[0] = 0.f; __syncthreads();\n"
TRICKS = {
    "a kernel that is always inlined": (
        "race", adding(f"{CLEARED}y[0] += sum;", HEAD.replace("__global__", "__global__ __forceinline__"))),
    "a rank that all threads share": (
        "to threadIdx", adding(f"""{CLEARED}volatile unsigned* rank = (volatile unsigned*)&threadIdx + 12;
          const unsigned mine = *rank; *rank = 0; *(volatile float*)y += sum; *rank = mine;""")),
    "a built-in variable as a place to add": (
        "to threadIdx", adding("""volatile float* place = (volatile float*)&gridDim.z;
          *place = threadIdx.x == 0 ? sum : *place + sum; y[0] = *place;""")),
    "a built-in variable as a place to add atomically": (
        "to threadIdx", adding("atomicAdd((float*)&gridDim.z, sum); y[0] = *(float*)&gridDim.z;")),
    "what lies behind the built-in variables": (
        "out-of-bounds", doubling("if (((volatile unsigned*)&threadIdx)[14] == 12345u) y[0] = 1.f;\n")),
    "an array named as a guard": (
        "uninitialised-shared", adding("""if (_ZGVsum[0] != _ZGVsum[0]) _ZGVsum[0] = 0.f;
          _ZGVsum[0] += sum; y[0] = _ZGVsum[0];""", 'extern "C" { __shared__ float _ZGVsum[2]; }\n' + HEAD)),
    "%n of printf": ("printf: %n", doubling('if (n == 1) printf("%d", n); printf("ab%n", (int*)y);\n')),
    "%s of printf": ("uninitialised-global", doubling('if (threadIdx.x == 0) printf("%s", (char*)y);\n')),
    "%s of printf beyond a buffer": ("out-of-bounds", doubling('printf("%.3s", (char*)(x + n));\n')),
    "a format of printf": ("uninitialised-global", doubling("if (threadIdx.x == 0) printf((char*)y);\n")),
    "a local array of another thread": (
        "local memory that is not the thread's own", adding("""__shared__ float* where; float mine[64];
          if (threadIdx.x == 0) where = mine;
          __syncthreads();
          volatile float* sums = where; sums[threadIdx.x] = sum;
          __syncthreads();
          if (threadIdx.x == 0) { y[0] = 0.f; for (int i = 0; i < 64; i++) y[0] += sums[i]; }""")),
    "a local array whose address nobody takes": (
        "beyond the variable", doubling("""volatile float here[1]; float there[1];
          here[(y - sink(there)) + threadIdx.x / 2] = 2.f;\n""",
          "__device__ __noinline__ float* sink(float* p) { *p = 1.f; return p; }\n" + HEAD)),
    "above the frames of a thread, by a pointer": (
        "local memory that is not the thread's own",
        doubling("float here[1]; volatile float* p = sink(here); for (int i = 0; i < 4000; i++) if (p[i] == 3.f) y[0] = 1.f;\n",
                 "__device__ __noinline__ float* sink(float* p) { *p = 1.f; return p; }\n" + HEAD)),
    "below the frames of a thread, by a pointer": (
        "local memory that is not the thread's own",
        doubling("float here[1]; volatile float* p = sink(here); for (int i = 0; i < 4000; i++) if (p[-i] == 3.f) y[0] = 1.f;\n",
                 "__device__ __noinline__ float* sink(float* p) { *p = 1.f; return p; }\n" + HEAD)),
    "above the frames of a thread": (
        "beyond the variable",
        doubling("volatile float here[1]; here[0] = 1.f; for (int i = 0; i < 4000; i++) if (here[i] == 3.f) y[0] = 1.f;\n")),
    "below the frames of a thread": (
        "local memory that is not the thread's own",
        doubling("volatile float here[1]; here[0] = 1.f; for (int i = 0; i < 4000; i++) if (here[-i] == 3.f) y[0] = 1.f;\n")),
    "what the thread before has left on the stack": (
        "unwritten", adding("""volatile unsigned word[1024];
          if (word[0] != 0x5eed5eedu) { word[1] = __float_as_uint(0.f); word[2] = 0; }
          word[0] = 0x5eed5eedu; word[1] = __float_as_uint(__uint_as_float(word[1]) + sum); word[2] = word[2] + 1;
          if (word[2] == 64) { y[0] = __uint_as_float(word[1]); word[0] = 0; }""")),
}  # fmt: skip


@pytest.mark.parametrize("name", TRICKS)
def test_the_checked_mode_sees_it(bench: Bench, name: str) -> None:
    found, kernel = TRICKS[name]
    result = bench.run(kernel, "check")
    assert (result.status, found in result.reason) == (Status.WRONG, True), result
    assert result.check in {Check.CHECKED_MODE, Check.POISON}
    assert result.check == Check.POISON or re.search(r"line \d+", result.reason)


WORK = """struct Work { float* to; float value;
  __device__ Work(float* t, float v) : to(t), value(v) {}
  __device__ __forceinline__ Work(const Work& o) : to(o.to), value(o.value) { *to += value; } };
"""


@pytest.mark.parametrize("mode", list(MODE_FLAGS))
@pytest.mark.parametrize(
    ("head", "body"),
    [
        (WORK, "Work w(y, 1.f); atomicExch(&w, Work(y, 2.f));"),
        (WORK + "namespace std { template <> struct is_arithmetic<Work> : true_type {}; }\n",
         "Work w(y, 1.f); atomicExch(&w, Work(y, 2.f));"),
        ("enum E : int { A, B };\n__device__ float* place;\n__device__ __forceinline__ E operator+(E a, E b) { return B; }\n",
         "E e = A; atomicAdd(&e, B);"),
        ("__device__ __forceinline__ half operator&(half a, half b) { return a; }\n", "half h; atomicAnd(&h, h);"),
    ],
)  # fmt: skip
def test_atomics_take_no_types_with_code_of_their_own(bench: Bench, mode: str, head: str, body: str) -> None:
    built = bench.build(f"{head}{HEAD} {body} }}", mode=mode)
    assert (built.status, built.check) == (Status.COMPILE_FAILED, Check.COMPILER), built
    assert "atomic functions take numbers" in built.reason


LINE = """struct Line { float v[16]; };
__shared__ Line tile;
__device__ __noinline__ Line added(Line line, float sum) { line.v[0] += sum; return line; }
"""


@pytest.mark.parametrize(
    "body",
    [
        "*(Line*)y = added(*(Line*)y, 1.f);",
        "Line mine = added(*(const Line*)y, 1.f); y[0] = mine.v[0];",
        "Line mine = {}; *(Line*)y = added(mine, 1.f);",
        "Line mine = added(tile, 1.f); y[0] = mine.v[0];",
        "__shared__ Line here[4]; here[n] = added(here[n + 1], 1.f); y[0] = here[2].v[0];",
        "__shared__ Line here[4]; here[1] = added(here[2], 1.f); y[0] = here[2].v[0];",
        "Line mine[3] = {}; mine[1] = added(mine[n], 1.f); y[0] = mine[1].v[0];",
        "struct Pair { int a; Line b; }; Line mine = added(((Pair*)y)->b, 1.f); y[0] = mine.v[0];",
        "Line (*f)(Line, float) = n == 1 ? added : nullptr; Line mine = f(*(const Line*)y, 1.f); y[0] = mine.v[0];",
    ],
)
def test_a_struct_by_value_is_copied_where_somebody_looks(bench: Bench, body: str) -> None:
    built = bench.build(f"{LINE}{HEAD} {body} }}", mode="check")
    assert (built.status, built.check) == (Status.COMPILE_FAILED, Check.COMPILER), built
    assert "cannot watch: copy it" in built.reason
    assert bench.build(f"{LINE}{HEAD} {body} }}").status is None


@pytest.mark.parametrize(
    "body",
    [
        "Line mine = *(const Line*)y; mine = added(mine, 1.f); *(Line*)y = mine;",
        "Line mine[2] = {}; mine[1] = added(mine[0], 1.f); *(Line*)y = mine[1];",
        "const float4* f = (const float4*)x; float4* g = (float4*)y; for (int i = 0; i < n; i++) g[i] = sum(f[i], sum(g[i], f[i + 1]));",
        'printf("*a, *b, MEM[%d] -> (%s, %f", n, "*c, d", y[n]); y[0] = powf(x[n], y[1]);',
        "int old = atomicAdd((int*)y + n, (int)x[n]); y[0] = fmaxf(y[old], x[old]);",
    ],
)
def test_other_calls_are_free(bench: Bench, body: str) -> None:
    sum_of_four = (
        "__device__ float4 sum(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }\n"
    )
    assert bench.build(f"{LINE}{sum_of_four}{HEAD} {body} }}", mode="check").status is None


def test_a_parameter_with_code_of_its_own_is_not_passed(bench: Bench) -> None:
    """Not even where it claims to be a pointer."""
    head = WORK + "namespace std { template <> struct is_pointer<Work> : true_type {}; }\n"
    source = f'{head}extern "C" __global__ void k(const float* x, Work y, int n) {{ }}'
    kernel = Kernel(source, ["x", "y", N], x_of(N), out(N), lambda a: {"y": a["x"]})
    result = bench.run(kernel, "check")
    assert (result.status, result.check) == (Status.LAUNCH_FAILED, Check.LAUNCH_LIMITS), result


@pytest.mark.parametrize("mode", list(MODE_FLAGS))
def test_a_thread_that_forges_its_rank_meets_as_itself(bench: Bench, mode: str) -> None:
    """The runtime knows who runs: no barrier is passed for another thread."""
    body = """volatile unsigned* rank = (volatile unsigned*)&threadIdx + 12; const unsigned mine = *rank;
      if (n == 1) *rank = 0;
      __syncthreads(); if (*rank != mine) y[0] = 1.f;\n"""
    assert bench.run(doubling(body), mode).status == Status.MEASURED


@pytest.mark.parametrize("mode", list(MODE_FLAGS))
def test_local_memory_of_a_thread_s_own_is_free(bench: Bench, mode: str) -> None:
    body = """float kept[32]; float* all = kept; for (int i = 0; i < 32; i++) all[i] = x[threadIdx.x];
      __syncthreads(); swap(all, all + 31); float* more = (float*)__builtin_alloca(n * 4);
      for (int i = 0; i < n; i++) more[i] = all[i % 32];
      __syncthreads(); if (more[n - 1] != x[threadIdx.x]) y[0] = 0.f;\n"""
    head = "__device__ __noinline__ void swap(float* a, float* b) { float c = *a; *a = *b; *b = c; }\n" + HEAD
    assert bench.run(doubling(body, head), mode).status == Status.MEASURED


@pytest.mark.parametrize("mode", list(MODE_FLAGS))
def test_what_printf_prints(bench: Bench, mode: str) -> None:
    call = (
        "const char word[] = {'w', 'o', 'r', 'd', 0}; if (threadIdx.x == 0) { int many = printf(\"%d %5.1f|%-4d|%+i %x %#o "
        '%u %llu %hd %c %s %.2s %*d %.*f %e %g %%\\n", -3, 2.25, 7, 5, 255, 8, 4000000000u, 1ull << 40, 65537, 65, word, "abc", '
        '6, 42, 2, 1.0, 1.5, 0.5); printf("%d%s%p", many, (const char*)0, (void*)0); }\n'
    )
    result = bench.run(doubling(call), mode)
    assert result.status == Status.MEASURED, result
    lines = [f for f in result.findings if f.startswith("printed: ")]
    assert (
        lines[0]
        == "printed: -3   2.2|7   |+5 ff 010 4000000000 1099511627776 1 A word ab     42 1.00 1.500000e+00 0.5 %"
    )
    assert lines[1].startswith("printed: 16(null)")


def test_a_conversion_that_cuda_has_not_ends_well(bench: Bench) -> None:
    result = bench.run(doubling('if (threadIdx.x == 0) printf("%1000000000d %q", 1, 2);\n'))
    assert (result.status, result.check) == (Status.WRONG, Check.CHECKED_MODE), result
    assert "%q is no conversion that CUDA has" in result.reason


@pytest.mark.parametrize(
    ("version", "poisons"),
    [
        ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", True),
        ("g++ (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", False),
        ("g++-14 (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)", True),
        ("g++ (some build)", False),
    ],
)
def test_locals_begin_as_poison_where_the_compiler_can(bench: Bench, version: str, poisons: bool) -> None:
    toolchain = Toolchain("g++", bench.cache)
    toolchain.__dict__["version"] = version
    assert (LOCALS_BEGIN_AS_POISON in toolchain.flags("check", fast_math=False)) is poisons
    assert LOCALS_BEGIN_AS_POISON not in toolchain.flags("fast", fast_math=False)


def test_shared_arrays_of_half_have_guards_that_nobody_writes(bench: Bench) -> None:
    body = """__shared__ half s[64]; s[threadIdx.x] = __float2half(x[threadIdx.x]); __syncthreads();
      y[threadIdx.x] = __half2float(s[63 - threadIdx.x]);"""
    kernel = Kernel(HEAD + body + "}", ["x", "y", 64], x_of(64), out(64), lambda a: {"y": a["x"][::-1].astype(np.float16)},
                    block=64, tolerance=1e-2)  # fmt: skip
    assert bench.run(kernel, "check").status == Status.MEASURED
