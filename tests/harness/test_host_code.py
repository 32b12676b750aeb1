"""Code for a board's host is seen in what a compiler made of a file, whatever the text looks like."""

import asyncio
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.harness import host_code
from kernelwright.harness.host_code import difference, judge_host_code
from kernelwright.leaderboard.export.gate import Answer
from kernelwright.leaderboard.export.twins import Twins, write_twins
from kernelwright.problems.loader import load_problem
from tests.leaderboard.export.support import FACTS, candidate_of, subject_of

SYSTEM = "int system(const char*);"
FUNCTIONS = ("-c", "-w", "-std=c++17", "-ffunction-sections", "-fdata-sections")
# What nvcc makes of a kernel and a launcher, in short.
LAUNCHER = """
extern "C" { void exit(int); void __cudaRegisterFunction(void**, const void*, const char*);
void __cudaRegisterFatBinary(void (*)(void**)); int cudaLaunchKernelExC(const void*, void*); int printf(const char*, ...); }
struct Limits { int most; Limits(int m) : most(m) {} };
void kernelwright_launch(void* p) { Limits limits(3); if (limits.most) cudaLaunchKernelExC((const void*)add, p); }
static void __nv_cudaEntityRegisterCallback(void** all) { __cudaRegisterFunction(all, (const void*)add, "add"); VARIABLES }
static void __sti____cudaRegisterAll() __attribute__((constructor));
static void __sti____cudaRegisterAll() { __cudaRegisterFatBinary(__nv_cudaEntityRegisterCallback); }
void __device_stub__Z3addTYPES(PARAMETERS) { cudaLaunchKernelExC((const void*)add, 0); }
extern "C" void add(PARAMETERS) { __device_stub__Z3addTYPES(NAMES); }
"""
BARE = 'extern "C" void add();' + LAUNCHER.replace("TYPES", "v").replace("PARAMETERS", "").replace(
    "NAMES", ""
).replace("VARIABLES", "")


def whole(code: str, variables: str = "") -> str:
    """With a candidate's code as nvcc leaves it for the host."""
    launcher = (
        LAUNCHER.replace("TYPES", "Pfi").replace("PARAMETERS", "float* a, int n").replace("NAMES", "a, n")
    )
    return f'extern "C" void add(float* a, int n);\n{code}\n' + launcher.replace("VARIABLES", variables)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("bare"), BARE)


def build(folder: Path, text: str) -> Path:
    (folder / "file.cpp").write_text(text, encoding="utf-8")
    subprocess.run(["g++", *FUNCTIONS, "file.cpp", "-o", "file.o"], cwd=folder, check=True)
    return folder / "file.o"


@pytest.mark.parametrize(
    ("code", "variables"),
    [
        ("", ""),
        ("static char counter;", '__cudaRegisterFunction(all, &counter, "counter");'),
        ('extern "C" void exit(int); float helper(float x) { int volatile one = 1; exit(one); }', ""),
        ('extern "C" void exit(int); template <int N> float f() { exit(1); } template float f<3>();', ""),
        ('constexpr float table[4] = {1, 2, 3, 4}; static const char* names[] = {"a", "b"};', ""),
        ("struct V { float x; float get() const { return x; } };", ""),
    ],
)  # fmt: skip
def test_what_nvcc_leaves_of_device_code_is_none(
    bare: Path, tmp_path: Path, code: str, variables: str
) -> None:
    assert difference(build(tmp_path, whole(code, variables)), bare) is None


@pytest.mark.parametrize(
    ("code", "part"),
    [
        (f'extern "C" {SYSTEM} static int early = system("");', "would run when the file is loaded"),
        ("__attribute__((constructor)) static void early() {}", "_ZL5earlyv would run when the file is loaded"),
        ("__attribute__((destructor)) static void late() {}", "_ZL4latev would run"),
        ('asm(".section .init_array, \\"aw\\"\\n.quad add\\n.text");', "would run when the file is loaded"),
        ('asm(".section .ctors, \\"aw\\"\\n.quad 0\\n.text");', "(.ctors)"),
        ('asm(".section .init, \\"ax\\"\\nret\\n.text");', "(.init)"),
        ('static void (*choose())() { return 0; } extern "C" void chosen() __attribute__((ifunc("_ZL6choosev")));',
         "what chooses chosen would run"),
        ("float helper(float x) { return x; }", "_Z6helperf is code for the host"),
        ("void* operator new(unsigned long) { return 0; }", "_Znwm is code for the host"),
        ('asm(".section .text._Z19kernelwright_launchPv, \\"ax\\"\\nnop\\n.text");', "is not the launcher's"),
        ('asm(".section .mine, \\"awx\\"\\nnop\\n.text");', "code in the section .mine"),
        ("extern const unsigned char __gmon_start__[] = {0xc3};", "__gmon_start__ is a name of the host"),
        ('extern "C" void exit(int); extern "C" void PyInit_x() { exit(1); }', "PyInit_x is a name of the host"),
        ('extern "C" void* memcpy(void* a, const void*, long) { return a; } void __device_stub__Z6memcpyv() {}',
         "the kernel's name memcpy is one of the host's libraries"),
        ('extern "C" void _ZN2at5emptyEv() {} void __device_stub__Z14_ZN2at5emptyEvv() {}',
         "the kernel's name _ZN2at5emptyEv is one of"),
        (f'extern "C" {SYSTEM} void __device_stub__Z4evilv() {{ system(""); }}', "would use system"),
        ('extern "C" void exit(int); struct Limits { int most; Limits(int m) { exit(m); } };\n#define Limits Other',
         "Other"),
    ],
)  # fmt: skip
def test_code_for_the_host_is_seen(bare: Path, tmp_path: Path, code: str, part: str) -> None:
    found = difference(build(tmp_path, whole(code)), bare)
    assert found is not None
    assert part in found


def test_a_changed_launcher_is_seen(bare: Path, tmp_path: Path) -> None:
    changed = whole("").replace("if (limits.most)", "if (!limits.most)")
    assert "_Z19kernelwright_launchPv is code for the host" in str(difference(build(tmp_path, changed), bare))
    moved = whole("").replace("limits(3)", "limits(4)")
    assert "_Z19kernelwright_launchPv is code for the host" in str(difference(build(tmp_path, moved), bare))


def test_what_is_no_object_is_refused(bare: Path, tmp_path: Path) -> None:
    for index, data in enumerate((b"", b"text", bare.read_bytes()[:200], bare.read_bytes()[:-300])):
        path = tmp_path / f"{index}.o"
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"is no little-endian ELF64 file|is cut|subsection|range"):
            difference(path, bare)


def test_without_nvcc_it_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_code, "find_tool", lambda _: None)
    answer, why = judge_host_code(Twins("", "", ()))
    assert answer is Answer.NOT_RUN
    assert "nvcc" in why


# -- with nvcc ------------------------------------------------------------------------------------------------

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
KERNEL = 'extern "C" __global__'


@pytest.fixture(scope="module")
def twins() -> Twins:
    problem = load_problem("vector_add")
    subject = subject_of(candidate_of(problem.baseline_source), problem)
    return write_twins(subject.candidate, subject.arguments, subject.abi, FACTS)


@needs_nvcc
def test_a_device_function_and_a_variable_leave_nothing_for_the_host(twins: Twins) -> None:
    code = (
        "__device__ float helper(float x) { return x; } __device__ int counter; __constant__ float table[4];"
    )
    assert judge(twins, code)[0] is Answer.PASSED


@needs_nvcc
@pytest.mark.parametrize(
    ("code", "part"),
    [
        (
            "__attribute__((constructor)) __host__ __device__ static void early() {}",
            "when the file is loaded",
        ),
        (
            'template <int N> const int early = printf(""); template const int early<1>;',
            "when the file is loaded",
        ),
        ('namespace early NV_IF_TARGET(NV_IS_HOST, (int x = printf("");))', "when the file is loaded"),
        ('#ifdef __GNUC__\nint x = printf("");\n#endif', "when the file is loaded"),
        ("__host__ __device__ int both(int x) { return x; }", "_Z4bothi is code for the host"),
    ],
)
def test_what_nvcc_makes_for_the_host_is_refused(twins: Twins, code: str, part: str) -> None:
    answer, why = judge(twins, code)
    assert answer is Answer.REFUSED, why
    assert part in why


@needs_nvcc
def test_what_nvcc_does_not_take_is_refused(twins: Twins) -> None:
    answer, why = judge(twins, "int x = ;")
    assert answer is Answer.REFUSED
    assert "nvcc does not compile the candidate: whole.cu" in why
    assert "expected an expression" in why


@needs_nvcc
def test_an_nvcc_that_does_not_work_is_no_verdict(twins: Twins) -> None:
    answer, why = judge(replace(twins, flags=("-arch=compute_10",)), "")
    assert answer is Answer.NOT_RUN
    assert "nvcc does not compile the launcher here: " in why


def judge(twins: Twins, code: str) -> tuple[Answer, str]:
    head, kernel, rest = twins.whole.partition(KERNEL)
    text = f"#include <nv/target>\n#include <cstdio>\n{head}{code}\n{kernel}{rest}"
    same = "#include <nv/target>\n#include <cstdio>\n"
    return asyncio.run(host_code.host_code(replace(twins, whole=text, bare=same + twins.bare)))
