"""Templates of variables, whose values nvcc computes on the host at loading, are refused; other templates are not."""

import pytest

from kernelwright.core.rules import CandidateRules
from kernelwright.harness.rules.source import check_source

KERNEL = '\nextern "C" __global__ void k(float* a, int n) { a[0] = n; }\n'
RUN = '= printf("run at loading");'


def verdict(source: str) -> str:
    found = check_source(source + KERNEL, CandidateRules(portable=True))
    return found.reason if found else ""


@pytest.mark.parametrize(
    "source",
    [
        f"template <int N> const int x {RUN}",
        'template <int N> const int x{printf("")};',
        'template <int N> const int x(printf("") + __device__);',
        "struct Q { int a; }; template <int N> const struct Q x{f()};",
        "struct Q { int a; }; template <int N> struct Q x = {f()};",
        "#define M Q x\nstruct Q { int a; }; template <int N> struct M {f()};",
        f"struct S {{ template <int N> static inline const int x {RUN} }};",
        f"template <int N> const int S<N>::x {RUN}",
        f"template <int N> template <int M> const int x {RUN}",
        f"template <int N = (1 > 0)> const int x {RUN}",
        f"template <int N = sizeof(int[2 < 3])> const int x {RUN} __device__ bool f() {{ return 1 > 0; }}",
        f"#define DROP(x)\ntemplate <int N> DROP(__device__) const int x {RUN}",
        f"#define DROP(x)\n#define D DROP(__device__)\ntemplate <int N> D const int x {RUN}",
        f"#define DROP(x)\n#define E DROP (\n#define D E __device__ )\ntemplate <int N> D const int x {RUN}",
        f"#define D __device__\n#undef D\n#define D\ntemplate <int N> D const int x {RUN}",
        f"#define T template\nT <int N> const int x {RUN}",
        f"#define T(x) template x;\nT(<int N> const int x {RUN})",
        f"#define LT <\ntemplate LT int N> const int x {RUN}",
        f"#define JOIN(a, b) a b\nJOIN(template, <int N> const int x {RUN})",
        f"#define JOIN(z, a, b) a b\nJOIN(a < b, template <int N>, const int x {RUN})",
        f"template CUDARTAPI <int N> const int x {RUN}",
        f"#define P(a, b) a##b\nP(tem, plate) <int N> const int x {RUN}",
        f"#define __device__\ntemplate <int N> __device__ const int x {RUN}",
    ],
)
def test_refused(source: str) -> None:
    assert verdict(source)


@pytest.mark.parametrize(
    "source",
    [
        "template <typename T, int N = 2 * (3 + 1)> __device__ __forceinline__ T f(T a) { return a; }",
        "template <typename T>\n__global__ void __launch_bounds__(256) f(T* a) {}",
        "template <int N> __launch_bounds__(N) __global__ void f() {}",
        "template <int N> __attribute__((noinline)) __device__ void f() {}",
        "template <int N> static inline __device__ void f() {}",
        "template <int N> struct alignas(16) S { float x[N]; };",
        "template <class T> struct S; template <> struct S<float> final : Base<float> {};",
        "template <class T> struct std::hash<T> { __device__ S(); };",
        "template <class T> __device__ S<T>::S() : a(0) {}",
        "template <class T> template <int N> __device__ void S<T>::f() {}",
        "template <class T, class U> constexpr bool same = false; template <class T> constexpr bool same<T, T> = true;",
        "template <class T> using V = S<T, 4>;",
        "template <template <int> class T, template <class, int> class U> struct S {};",
        "template struct S<3>; template __global__ void f<3>(float*); template void f<4>(float*);",
        "__device__ void f() { x.template g<1>(); p->template g<1>(); T::template g<1>(); }",
        "#define DEVICE __device__ __forceinline__\ntemplate <int N> DEVICE void f() {}",
        "#define KERNEL(T) template <int N> __global__ void k_##T(T* a) {}\nKERNEL(float)",
        "struct S { template <class U> friend struct R; };",
    ],
)
def test_allowed(source: str) -> None:
    assert verdict(source) == ""
