"""Device code as boards may have it: the same program, without comments and without the banned word."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.core.candidate import parse_template
from kernelwright.core.errors import UserError
from kernelwright.core.launch import BuildRequest
from kernelwright.core.resolve import compiler_options, macros
from kernelwright.devices.base import BuildResult
from kernelwright.devices.cuda.compiler import CudaCompiler
from kernelwright.leaderboard.export.text import Renames, device_code, words_of

from .support import FACTS, candidate_of, catalogue, subject_of


def code_of(body: str, *names: str) -> str:
    return device_code(body, names, Renames(words_of(body)), "c.cu").text


def test_comments_go_and_strings_stay() -> None:
    body = """// stream of words
#include <cuda_fp16.h>
#define A 1 /* a Stream */ + 2
__device__ const char* s() { return "// no comment /* */"; } // the end
__device__ void f() { asm volatile(R"(
    // PTX has comments too
    mov.u32 %r1, 7;)"); }


/* upstream
   downstream */
__device__ int g;
"""
    code = device_code(body, (), Renames(words_of(body)), "c.cu")
    assert code.headers == ("<cuda_fp16.h>",)
    # Comments inside of a line leave their room.
    assert [" ".join(line.split("                ")) for line in code.text.splitlines()] == [
        "#define A 1 + 2",
        '__device__ const char* s() { return "// no comment /* */"; }',
        '__device__ void f() { asm volatile(R"(',
        "    // PTX has comments too",
        '    mov.u32 %r1, 7;)"); }',
        "",
        "__device__ int g;",
    ]
    assert code.defined == ("A",)


def test_names_are_renamed_alike_and_stay_distinct() -> None:
    body = "#if STREAM == 1\n__device__ int stream_k, strm_k, MyStream;\n#endif\n__device__ int upStreams = stream_k;\n"
    assert code_of(body, "STREAM") == (
        "#if STRM == 1\n__device__ int strm_k_, strm_k, MyStrm;\n#endif\n__device__ int upStrms = strm_k_;\n"
    )


def test_an_include_under_a_condition_stays_there() -> None:
    body = "#ifdef KERNELWRIGHT_CPU\n#include <cstdio>\n#else\n#include <mma.h>\n#endif\n#include <cuda_fp16.h>\nint x;"
    code = device_code(body, (), Renames([]), "c.cu")
    assert code.headers == ("<cuda_fp16.h>",)
    assert "#include <mma.h>" in code.text


@pytest.mark.parametrize(
    "body",
    [
        "#ifndef LIMIT\n#define LIMIT 3\n#endif\n#if LIMIT > 2\nint x;\n#endif\n",
        "#if __CUDA_ARCH__ >= 900\nint x;\n#endif\n",
        "#if defined(KERNELWRIGHT_CUDA) && T > 3\nint x;\n#endif\n",
    ],
)
def test_conditions_that_all_compilers_answer_alike(body: str) -> None:
    assert "int x" in code_of(body, "T")


@pytest.mark.parametrize(
    ("body", "line", "what"),
    [
        ("#ifndef __CUDA_ARCH_FEAT_SM90_ALL\n#endif\n", 1, "depends on the compiler"),
        ("int x;\n#ifdef __CUDACC_RTC__\nint y;\n#endif\n", 2, "depends on the compiler"),
        ("#ifdef TORCH_VERSION\nint evil() { return 1; }\n#endif\n", 1, "'TORCH_VERSION'"),
        ("#ifdef LATER\nint evil;\n#endif\n#define LATER\n", 1, "'LATER'"),
        ("#ifndef EVIL\nint evil;\n#endif\n", 1, "'EVIL'"),
        ("\n#include <cuda/stream_ref>\n", 2, "header"),
        ('__device__ const char* s = "a stream";\n', 1, "boards refuse the word"),
        ("__device__ cudaStream_t s;\n", 1, "boards refuse the word"),
        ("int x = __LINE__;\n", 1, "depends on the compiler"),
        ("int x; \\ \nint y;\n", 1, "compilers read differently"),
    ],
)
def test_what_cannot_go_to_a_board(body: str, line: int, what: str) -> None:
    with pytest.raises(UserError, match=what) as error:
        code_of(body)
    assert f"c.cu:{line}: " in str(error.value)


@pytest.mark.parametrize("name", ["gemm/stream_k", "transpose/vectorised_tile"])
def test_nvrtc_makes_the_same_binary_of_it(name: str, tmp_path: Path) -> None:
    """Without comments and with other names it is the same program, byte for byte but for names of kernels."""
    problem, _, source = next(entry for entry in catalogue() if entry[1] == name)
    candidate = candidate_of(source)
    subject = subject_of(candidate, problem)
    code = device_code(subject.body, subject.macro_names, subject.renames, "c.cu")
    assert "stream" not in code.text.lower()
    assert len(code.text) < len(subject.body)
    defined = macros(candidate, FACTS)
    renamed = {subject.renames[name]: value for name, value in defined.items()}
    kernels = parse_template(source).kernels
    includes = "".join(f"#include {header}\n" for header in code.headers)
    compiler = CudaCompiler("sm_90a", tmp_path)
    options = compiler_options(candidate)
    whole = BuildRequest(subject.body, defined, options, kernels, "sm_90a")
    bare = BuildRequest(
        includes + code.text, renamed, options, tuple(subject.renames[k] for k in kernels), "sm_90a"
    )
    # NVRTC makes another binary of the first of these about once in 70 times: one instruction more in one kernel.
    assert any(
        same_but_for_names(compiler.build(whole, tmp_path), compiler.build(bare, tmp_path), subject.renames)
        for _ in range(4)
    )


def same_but_for_names(before: BuildResult, after: BuildResult, renames: Renames) -> bool:
    """Whether kernels, resources and instructions are alike; where no kernel's name changed, every byte."""
    assert after.reason == before.reason == ""
    assert before.static
    assert after.static
    alike = tuple(replace(kernel, name=renames[kernel.name]) for kernel in before.static.kernels)
    if alike == before.static.kernels and after.digest != before.digest:
        return False
    return (after.static.code_bytes, {k.name: k for k in after.static.kernels}) == (
        before.static.code_bytes,
        {k.name: k for k in alike},
    )
