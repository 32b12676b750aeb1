"""The checked mode is another build of the same text, which must not find out in which one it is."""

import subprocess

import pytest

from kernelwright.core.outcome import Check, Status
from kernelwright.devices.cpu.own_names import hiding
from kernelwright.devices.cpu.toolchain import MODE_FLAGS, PRELUDE, Toolchain
from tests.devices.cpu.test_attacks import X86
from tests.devices.cpu.test_good_kernels import HEAD, out, x_of
from tests.devices.cpu.workbench import Bench, Kernel

N = 1000
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
RIGHT = "if (i < n) y[i] = 2.f * x[i];"


def kernel(body: str, head: str = "", **more: object) -> Kernel:
    arguments = {"grid": 4, "block": 256, **more}
    return Kernel(head + HEAD + INDEX + body + "}", ["x", "y", N], x_of(N), out(N), lambda a: {"y": 2.0 * a["x"]},
                  **arguments)  # type: ignore[arg-type]  # fmt: skip


@pytest.mark.parametrize("fast_math", [False, True])
def test_no_macro_differs(bench: Bench, fast_math: bool) -> None:
    toolchain = Toolchain("g++", bench.cache)
    names = []
    for mode in MODE_FLAGS:
        folder = toolchain.prelude(mode, fast_math=fast_math)
        hidden = bench.scratch / f"hidden-{mode}.h"
        hidden.write_text(hiding())
        flags = [*toolchain.flags(mode, fast_math=fast_math), "-nostdinc", "-nostdinc++", "-fpch-preprocess"]
        includes = ["-include", str(folder / PRELUDE), "-include", str(hidden)]
        command = ["g++", *flags, "-dM", "-E", *includes, "-x", "c++", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        names.append({line for line in done.stdout.splitlines() if line.startswith("#define ")})
    assert len(names[0]) > 100
    assert names[0] ^ names[1] == set()


@pytest.mark.parametrize("mode", list(MODE_FLAGS))
@pytest.mark.parametrize(
    "name", ["KW_CHECK", "KW_UNCHECKED", "KW_LINE", "__SANITIZE_THREAD__", "_GLIBCXX_TSAN", "__has_feature"]
)
def test_a_telling_macro_is_not_there(bench: Bench, mode: str, name: str) -> None:
    assert bench.build(f"#ifdef {name}\n#error there\n#endif\n{HEAD} }}", mode=mode).status is None


@pytest.mark.parametrize("mode", list(MODE_FLAGS))
@pytest.mark.parametrize(
    "body",
    [
        "kw_barrier(0);",
        "#ifdef kw_fence\n#endif\n",
        "#define GLUE(a, b) a##b\nGLUE(kw_, thread).rank = 0;",
        "KwThread t;",
        "auto f = &kw_device::lane;",
    ],
)
def test_our_own_names_are_no_device_code(bench: Bench, mode: str, body: str) -> None:
    built = bench.build(f"{HEAD}\n{body}\n}}", mode=mode)
    assert (built.status, built.check) == (Status.RULE_BROKEN, Check.SOURCE_RULES), built
    assert "own" in built.reason
    assert "line 2" in built.reason or "line 3" in built.reason


def test_a_tunable_of_our_name_is_refused(bench: Bench) -> None:
    built = bench.build(f"{HEAD} }}", macros={"kw_thread": 3})
    assert (built.status, built.check) == (Status.RULE_BROKEN, Check.SOURCE_RULES), built


def test_short_names_are_free(bench: Bench) -> None:
    """A convolution's kernel width is kw, and tunables are in capitals."""
    head = "namespace kw { __device__ float twice(float v) { return 2.f * v; } }\n"
    body = "for (int kh = 0; kh < KW_LOAD; ++kh) if (i < n) y[i] = kw::twice(x[i]);"
    assert bench.run(kernel(body, head, macros={"KW_LOAD": 1})).status == Status.MEASURED


@pytest.mark.parametrize(
    "code",
    [
        "long long t = __builtin_ia32_rdtsc();",
        "unsigned a; __builtin_ia32_rdtscp(&a);",
        "#define GLUE(a, b) a##b\nif (GLUE(__builtin_, constant_p)(n)) y[0] = 0;",
        "void* here = __builtin_return_address(0);",
        "void* here = __builtin_frame_address(0);",
        "if (__builtin_object_size(y, 0) == 1) y[0] = 0;",
        'if (__builtin_cpu_supports("avx2")) y[0] = 0;',
    ],
)
def test_builtins_of_the_compiler_are_no_device_code(bench: Bench, code: str) -> None:
    built = bench.build(f"{HEAD}\n{code}\n}}")
    assert (built.status, built.check) == (Status.RULE_BROKEN, Check.SOURCE_RULES), built
    assert "builtin" in built.reason


def test_builtins_that_cuda_has_are_fine(bench: Bench) -> None:
    body = f"if (__builtin_expect(n < 0, 0)) {{ __builtin_unreachable(); }} __builtin_assume(n > 0); {RIGHT}"
    assert bench.run(kernel(body)).status == Status.MEASURED


@pytest.mark.parametrize("mode", list(MODE_FLAGS))
@pytest.mark.parametrize("name", ["__tsan_read4", "__tsan_write4", "__wrap_memcpy"])
def test_nobody_defines_what_watches(bench: Bench, mode: str, name: str) -> None:
    """Else its own empty one would be called in place of the runner's: the checked mode would see nothing."""
    built = bench.build(f'extern "C" __attribute__((used)) void {name}(void*) {{}}\n{HEAD} }}', mode=mode)
    assert (built.status, built.check) == (Status.RULE_BROKEN, Check.BINARY_RULES), built
    assert name in built.reason


def test_nobody_asks_for_what_watches(bench: Bench) -> None:
    """Where it is not there, nothing could be loaded: no fault of the harness."""
    built = bench.build(f'extern "C" void __tsan_read4(void*);\n{HEAD} __tsan_read4(y); }}')
    assert (built.status, built.check) == (Status.RULE_BROKEN, Check.BINARY_RULES), built


@pytest.mark.parametrize("mode", list(MODE_FLAGS))
def test_looks_at_the_clock_are_equally_far_apart(bench: Bench, mode: str) -> None:
    """However long the work between them takes, and whichever build does it."""
    work = "const long long before = clock64(); volatile float f = 0; for (int j = 0; j < 100; j++) f = f + x[i % n];\n"
    body = f"{work} const long long ticks = clock64() - before; if (i < n) y[i] = ticks == 64 ? 2.f * x[i] : 0.f;"
    assert bench.run(kernel(body), mode).status == Status.MEASURED


def test_waiting_for_the_clock_ends(bench: Bench) -> None:
    body = f"const long long until = clock64() + 100000; while (clock64() < until) {{}} {RIGHT}"
    assert bench.run(kernel(body)).status == Status.MEASURED


def test_the_clock_begins_at_another_time_in_every_run(bench: Bench) -> None:
    body = "if (i < n) y[i] = 2.f * x[i] * (1.f + 1e-7f * (clock64() >> 8 & 15));"
    result = bench.run(kernel(body))
    assert (result.status, result.check) == (Status.UNSTABLE, Check.REPEAT), result


@X86
@pytest.mark.usefixtures("any_section")
def test_the_machine_s_own_clock_ends_the_run(bench: Bench) -> None:
    """rdtsc; ret, as data that can be executed."""
    head = 'const __attribute__((section(".text"))) unsigned char code[] = {0x0f, 0x31, 0xc3};\n'
    result = bench.run(kernel(f"((void (*)())(void*)code)(); {RIGHT}", head))
    assert (result.status, result.check) == (Status.CRASHED, Check.CRASH), result


def test_the_clock_s_type_is_cuda_s(bench: Bench) -> None:
    head = "static_assert(sizeof(clock64()) == 8 && sizeof(clock()) == 8);\n"
    assert bench.run(kernel(RIGHT, head)).status == Status.MEASURED
