import pytest

from kernelwright.devices.cuda.diagnostics import LOG_LIMIT, first_error, missing_header, trim

WARNING_FIRST = """candidate.cu(2): warning #177-D: variable "x" was declared
candidate.cu(4): error: identifier "y" is undefined

candidate.cu(5): error: expected a ";"
"""


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (
            WARNING_FIRST,
            'line 4: identifier "y" is undefined',
        ),
        ("/a/b/cuda_fp16.hpp(77): error #20: bad\n", "cuda_fp16.hpp line 77: bad"),
        (
            "ptxas application ptx input, line 27; error   : Unknown modifier '.op'\nptxas fatal : aborted",
            "generated PTX line 27 (inline asm?): Unknown modifier '.op'",
        ),
        (
            " ptxas error   : Entry function 'k' uses too much shared data (0x61a80 bytes, 0x38c00 max)",
            "ptxas: Entry function 'k' uses too much shared data (400000 bytes, 232448 max)",
        ),
        (
            "candidate.cu:1:10: fatal error: foo/bar.h: No such file or directory",
            "line 1: foo/bar.h: No such file or directory",
        ),
        ("nvcc fatal   : Unsupported gpu architecture", "nvcc fatal   : Unsupported gpu architecture"),
        ("something else", "something else"),
        ("", "the compiler failed without a message"),
    ],
)
def test_first_error(log: str, reason: str) -> None:
    assert first_error(log) == reason


def test_missing_header() -> None:
    assert (
        missing_header('candidate.cu(1): catastrophic error: could not open source file "vector" (no')
        == "vector"
    )
    assert missing_header('candidate.cu(1): catastrophic error: cannot open source file "a/b.h"') == "a/b.h"
    assert missing_header("x.cu:1:10: fatal error: foo.h: No such file or directory") == "foo.h"
    assert missing_header("candidate.cu(1): error: expected a declaration") is None


def test_trim() -> None:
    assert trim("a\0\n") == "a"
    long = trim("x" * 20000)
    assert len(long) == LOG_LIMIT
    assert long.endswith("... 20000 characters in all")
