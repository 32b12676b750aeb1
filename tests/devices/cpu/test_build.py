"""Building: diagnostics, rules, limits, reproducibility."""

import shutil
import time
from pathlib import Path

import pytest

from kernelwright.core.errors import HarnessError, MissingError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.outcome import Check, Status
from kernelwright.devices.cpu import CpuCompiler, check_toolchain
from kernelwright.devices.cpu.bounded import Limits
from tests.devices.cpu.workbench import Bench

EMPTY = 'extern "C" __global__ void k(float* y) { y[0] = 1.f; }\n'


def body(text: str, before: str = "") -> str:
    return f'{before}extern "C" __global__ void k(float* y) {{\n{text}\n}}\n'


def test_the_same_request_gives_the_same_bytes_anywhere(bench: Bench, tmp_path: Path) -> None:
    for mode in ("fast", "check"):
        first = bench.build(EMPTY, mode=mode)
        other = CpuCompiler(cache=bench.cache).build(BuildRequest(EMPTY, {}, {}, ("k",), "", mode), tmp_path)
        assert first.status is None
        assert first.digest == other.digest
        assert Path(first.artifact).read_bytes() == Path(other.artifact).read_bytes()
        assert str(tmp_path).encode() not in Path(other.artifact).read_bytes()
        assert str(bench.cache).encode() not in Path(other.artifact).read_bytes()


def test_content_decides_the_digest(bench: Bench) -> None:
    source = body("y[0] = N;")
    digests = [bench.build(source, macros={"N": n}).digest for n in (1, 2, 1)]
    assert digests[0] == digests[2] != digests[1]
    # maxrregcount means nothing on a CPU: a twin is a twin
    assert bench.build(source, macros={"N": 1}, options={"maxrregcount": 64}).digest == digests[0]


def test_static_metrics(bench: Bench) -> None:
    built = bench.build(body("__shared__ float s[64]; s[threadIdx.x] = 1; __syncthreads(); y[0] = s[1];"))
    assert built.static is not None
    assert built.static.kernels[0].static_shared_bytes == 256
    assert built.static.code_bytes == Path(built.artifact).stat().st_size


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (body("y[0] = undefined_thing;"), "candidate.cu:2: 'undefined_thing' was not declared in this scope"),
        ("/* kernelwright\nplan\n*/\n" + body("y[0] = ;"), "candidate.cu:5: expected primary-expression"),
        ("__global__ void other(float* y) {}\n", "the plan launches 'k', which the source does not define"),
        (body("y[0] = 1;", "#include <no_such_header.h>\n"), "candidate.cu:1: the header <no_such_header.h> does not"),
        (body("__shared__ float s[20000]; s[0] = 1; y[0] = s[1];"), "k uses 80000 bytes of static shared memory"),
        ("template <class T> __device__ T f(T x) { return x.nothing; }\n" + body("y[0] = f(1.f);"), "candidate.cu:1: "),
        ("#error no such path\n" + EMPTY, "candidate.cu:1: #error no such path"),
    ],
)  # fmt: skip
def test_compile_errors_name_the_line(bench: Bench, source: str, reason: str) -> None:
    built = bench.build(source)
    assert built.status == Status.COMPILE_FAILED
    assert reason in built.reason.translate({0x2018: "'", 0x2019: "'"})
    assert "\n" not in built.reason
    assert built.artifact == ""


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (body('asm volatile("bar.sync 0;");'), "inline PTX cannot run on the cpu device (line 2)"),
        (body('__asm__("");'), "inline PTX cannot run on the cpu device (line 2)"),
        ('asm(".globl x");\n' + EMPTY, "inline PTX cannot run on the cpu device (line 1)"),
        ("#define PTX asm\n" + body('PTX("nop;");'), "inline PTX cannot run on the cpu device (line 3)"),
        ("#include <cub/cub.cuh>\n" + EMPTY, "the header <cub/cub.cuh> cannot run on the cpu device (line 1)"),
        ("#include <cuda/barrier>\n" + EMPTY, "the header <cuda/barrier>"),
        (body("cuda::std::min(1, 2);"), "a CUDA C++ library"),
        (body("k<<<1, 1>>>(y);"), "a kernel launch in the source"),
        (body("__made_up_intrinsic(1);"), "the intrinsic __made_up_intrinsic cannot run on the cpu device (line 2)"),
        (body("y[0] = *(float*)malloc(4);", 'extern "C" void* malloc(size_t);\n'), "memory allocation in a kernel"),
    ],
)  # fmt: skip
def test_what_a_cpu_cannot_run_is_not_run(bench: Bench, source: str, what: str) -> None:
    built = bench.build(source)
    assert built.status == Status.NOT_RUN
    assert built.reason.startswith("not run: ")
    assert what in built.reason


@pytest.mark.parametrize(
    "source",
    [
        body('#if 0\nasm volatile("x");\n#endif\ny[0] = 1;'),
        body('#ifdef KERNELWRIGHT_CPU\ny[0] = 1;\n#else\nasm("x");\n#endif'),
        body("// asm volatile\ny[0] = 1; /* cuda::std */"),
        body('printf("asm <<<cuda::\\n"); y[0] = 1;', "#include <cstdio>\n#include <stdint.h>\n"),
    ],
)  # fmt: skip
def test_only_active_code_counts(bench: Bench, source: str) -> None:
    assert bench.build(source).status is None


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (body('system("id");', 'extern "C" int system(const char*);\n'), "calls host function 'system'"),
        (body("getpid();", 'extern "C" int getpid();\n'), "calls host function 'getpid'"),
        (body("syscall(1);", 'extern "C" long syscall(long, ...);\n'), "calls host function 'syscall'"),
        ('extern "C" int hidden() __asm__("system");\n' + body("hidden();"), "not run: inline PTX"),
        ("#pragma redefine_extname foo system\n" + EMPTY, "#pragma redefine_extname"),
        ('#pragma GCC optimize("O0")\n' + EMPTY, "#pragma GCC is not device code (line 1)"),
        ("struct S { S(); }; S s;\nint n = 0; S::S() { n = 1; }\n" + EMPTY, "runs code when it is loaded"),
        ("__attribute__((constructor)) void f() { __builtin_trap(); }\n" + EMPTY, "__attribute__ 'constructor' is not"),
        ("#define unused destructor\n__attribute__((unused)) void f() {}\n" + EMPTY, "'destructor' is not allowed: remove it (line 2)"),
        ('#define L(a, b) a a gnu::no_sanitize("thread") b b\nL([, ]) void f() {}\n' + EMPTY, "'gnu' is not allowed"),
        ('#define J(a, b) a##b\nJ(__attri, bute__)((no_sanitize("thread"))) void f() {}\n' + EMPTY, "'no_sanitize' is not"),
        (body("int c = 1'0; asm volatile(\"nop\"); c = '0';"), "not run: inline PTX"),
        (body("int c = 1'0; __builtin_ia32_rdtsc(); c = '0';"), "is a builtin of g++"),
        ("#if 0\n' /*\n#endif\n" + EMPTY, "a quote that is not closed"),
        ('extern "C" void _init() { __builtin_trap(); }\n' + EMPTY, "runs code when it is loaded ('_init')"),
        ('void f() {}\n__attribute__((section(".init_array"), used)) void (*const p)() = f;\n' + EMPTY, "'section' is not"),
        ("int f() { return 1; }\n"
         'extern "C" int g() __attribute__((ifunc("pick2")));\nextern "C" void* pick2() { return (void*)f; }\n'
         + body("y[0] = g();"), "'ifunc' is not allowed"),
        ("__device__ int calls = 0;\n" + body("y[0] = calls++;"), "writable __device__ variable 'calls'"),
        (body("static int calls; y[0] = calls++;"), "writable __device__ variable 'calls'"),
        ('#include "/etc/passwd"\n' + EMPTY, "includes the host path '/etc/passwd' (line 1)"),
        ("  #  include <../../secret.h>\n" + EMPTY, "includes the host path"),
        ('#define P "/etc/passwd"\n#include P\n' + EMPTY, "includes the file '/etc/passwd'"),
        ("%:include </etc/passwd>\n" + EMPTY, "includes the host path"),
        ("#include <vector>\n" + EMPTY, "includes the host header <vector> (line 1)"),
        ("#include <unistd.h>\n" + EMPTY, "includes the host header <unistd.h>"),
        ('#line 1 "other.cu"\n' + EMPTY, "#line directive"),
        ('# 1 "/usr/include/stdio.h" 3\n' + EMPTY, "#line directive"),
    ],
)  # fmt: skip
def test_rules(bench: Bench, source: str, reason: str) -> None:
    for mode in ("fast", "check"):
        built = bench.build(source, mode=mode)
        assert built.status in {Status.RULE_BROKEN, Status.NOT_RUN}, built
        assert reason in built.reason
        assert "root:" not in built.log  # nothing of the host's files leaks


def test_constants_are_no_state(bench: Bench) -> None:
    assert bench.build("__constant__ float c[2] = {1, 2};\n" + body("y[0] = c[threadIdx.x];")).status is None


@pytest.mark.parametrize(
    "bomb",
    [
        "constexpr long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nconstexpr long big = f(60);\n",
        "#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(A(x))))\nchar c[] = { B(B(B(1,))) };\n",
        "constexpr int n[900000000] = {1};\n__device__ const int* p() { return n; }\n",
        '#include "candidate.cu"\n',
        '#include "/dev/zero"\n',
    ],
)  # fmt: skip
def test_compile_bombs_are_bounded(bench: Bench, tmp_path: Path, bomb: str) -> None:
    limits = Limits(seconds=3, memory_bytes=600 << 20, file_bytes=32 << 20)
    compiler = CpuCompiler(cache=bench.cache, limits=limits)
    begin = time.monotonic()
    built = compiler.build(BuildRequest(bomb + EMPTY, {}, {}, ("k",), ""), tmp_path)
    assert time.monotonic() - begin < 10
    assert built.status in {Status.COMPILE_FAILED, Status.TIMED_OUT, Status.RULE_BROKEN}, built
    assert built.reason
    assert len(built.log.encode()) <= 8192
    assert not list(tmp_path.glob("build-*"))


def test_a_flood_of_errors_is_cut(bench: Bench) -> None:
    built = bench.build("".join(f"undefined_{i} x{i};\n" for i in range(5000)) + EMPTY)
    assert built.status == Status.COMPILE_FAILED
    assert built.reason.startswith("candidate.cu:1: ")
    assert len(built.log.encode()) <= 8192


@pytest.mark.parametrize(
    "end",
    [
        "kill -9 $$",
        "kill -15 $$",
        "echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1",
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_a_compiler_that_is_killed_is_no_verdict_when_seen_once(
    bench: Bench, tmp_path: Path, end: str, times: int
) -> None:
    cxx, count = tmp_path / "g++", tmp_path / "count"
    cxx.write_text(
        f'#!/bin/sh\ncase "$*" in *candidate.o)\n'
        f'echo >> {count}; [ $(wc -l < {count}) -le {times} ] && {{ {end}; }}\nesac\nexec g++ "$@"\n'
    )
    cxx.chmod(0o755)
    compiler = CpuCompiler(cxx=str(cxx), cache=bench.cache)
    built = compiler.build(BuildRequest(EMPTY, {}, {}, ("k",), ""), tmp_path)
    assert len(count.read_text()) == 2
    if times == 1:
        assert built.artifact
    else:
        assert (built.status, built.check) == (Status.COMPILE_FAILED, Check.COMPILE_LIMITS)
        assert built.reason == "the compiler was killed twice (out of memory, or by somebody)"


def test_without_a_compiler(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"^no-such-g\+\+ not found: apt-get install"):
        CpuCompiler(cxx="no-such-g++").build(BuildRequest(EMPTY, {}, {}, ("k",), ""), tmp_path)
    assert shutil.which("g++") is None or check_toolchain().startswith("g++")


def test_a_cache_that_cannot_be_written_is_our_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HarnessError, match="cannot build prelude-fast"):
        CpuCompiler(cache=tmp_path / "file").build(BuildRequest(EMPTY, {}, {}, ("k",), ""), tmp_path)


def test_an_unknown_mode_is_our_fault(bench: Bench) -> None:
    with pytest.raises(HarnessError, match="no mode 'slow'"):
        bench.build(EMPTY, mode="slow")
