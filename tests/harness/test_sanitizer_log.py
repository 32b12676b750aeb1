"""Reports of compute-sanitizer in both spellings of a place; texts follow NVIDIA's user manual."""

import pytest

from kernelwright.harness.sanitizer_log import read_log

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at k(const float *, float *, int)+0x160 in candidate.cu:12
=========     by thread (231,0,0) in block (3,0,0)
=========     Access to 0x7f5d2c000fa0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f5d2c000000 of size 4,000 bytes
=========
========= ERROR SUMMARY: 1 error
"""
OLD_MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at 0x160 in memcheck_demo.cu:6:unaligned_kernel(void)
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f6510c00001 is misaligned
=========     Saved host backtrace up to driver entry point at kernel launch time
=========     Host Frame: [0x2774ec] at other+0x5
=========
========= ERROR SUMMARY: 1,204 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at k(const float *, float *, int)+0x70 in candidate.cu:9
=========     and Read access at k(const float *, float *, int)+0x90 in candidate.cu:11 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
OLD_RACECHECK = """========= COMPUTE-SANITIZER
========= ERROR: Race reported between Write access at 0x00000050 in raceGroupBasic.cu:53:sumKernel(int *, int *)
=========     and Read access at 0x00000250 in raceGroupBasic.cu:64:sumKernel(int *, int *) [6 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
WARNING = """========= COMPUTE-SANITIZER
========= Warning: Race reported between Write access at k+0x70
=========     and Read access at k+0x90 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
INITCHECK = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at 0x70 in k
=========     by thread (1,0,0) in block (0,0,0)
=========     Address 0x7f0adfa00404
=========
========= ERROR SUMMARY: 3 errors
"""
SYNCCHECK = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at k(float *, int)+0x1d0 in candidate.cu:20
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 32 errors
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


@pytest.mark.parametrize(
    ("text", "errors", "finding"),
    [
        (
            MEMCHECK,
            1,
            (
                "Invalid __global__ write of size 4 bytes in kernel 'k' (candidate.cu:12)"
                " by thread (231,0,0) in block (3,0,0) 1 bytes after 'C' of 4,000 bytes"
            ),
        ),
        (
            OLD_MEMCHECK,
            1204,
            (
                "Invalid __global__ read of size 4 bytes in kernel 'unaligned_kernel' (memcheck_demo.cu:6)"
                " by thread (0,0,0) in block (0,0,0)"
            ),
        ),
        (
            RACECHECK,
            1,
            "Race reported between Write access in kernel 'k' (candidate.cu:9) and kernel 'k' (candidate.cu:11)",
        ),
        (
            OLD_RACECHECK,
            1,
            (
                "Race reported between Write access in kernel 'sumKernel' (raceGroupBasic.cu:53)"
                " and kernel 'sumKernel' (raceGroupBasic.cu:64)"
            ),
        ),
        (
            INITCHECK,
            3,
            "Uninitialized __global__ memory read of size 4 bytes in kernel 'k' by thread (1,0,0) in block (0,0,0)",
        ),
        (
            SYNCCHECK,
            32,
            (
                "Barrier error detected. Divergent thread(s) in block in kernel 'k' (candidate.cu:20)"
                " by thread (0,0,0) in block (0,0,0)"
            ),
        ),
    ],
    ids=["memcheck", "old memcheck", "racecheck", "old racecheck", "initcheck", "synccheck"],
)
def test_findings(text: str, errors: int, finding: str) -> None:
    log = read_log(text, {"A": 1, "C": 0x7F5D2C000000})
    assert log.errors == errors
    assert log.findings == (finding,)
    assert not log.warnings
    assert not log.fault


def test_a_warning_is_no_finding() -> None:
    log = read_log(WARNING)
    assert (log.errors, log.findings) == (0, ())
    assert log.warnings == ("Race reported between Write access in kernel 'k'",)


def test_clean() -> None:
    log = read_log(CLEAN)
    assert (log.errors, log.findings, log.fault) == (0, (), "")


@pytest.mark.parametrize(
    "line",
    [
        "Target application terminated before first instrumented API call",
        "Error: No attachable process found. compute-sanitizer timed-out.",
        "Error: Device not supported. Please refer to the documentation",
        "Internal Sanitizer Error: The Sanitizer encountered an error",
    ],
)
def test_a_fault_of_the_tool_is_no_finding(line: str) -> None:
    log = read_log(f"========= COMPUTE-SANITIZER\n========= {line}\n")
    assert log.fault == line
    assert log.findings == ()
    assert log.errors is None


def test_refused_calls_of_the_launcher_are_counted_apart() -> None:
    text = (
        "========= COMPUTE-SANITIZER\n"
        '========= Program hit CUDA_ERROR_INVALID_VALUE (error 1) due to "invalid argument" on CUDA API call\n'
        "=========     Host Frame: [0x1]\n========= ERROR SUMMARY: 1 error\n"
    )
    assert (read_log(text).api_errors, read_log(text).findings) == (1, ())


@pytest.mark.parametrize("text", ["", "garbage\n=", "=========", "=========\n=========     lost detail\n"])
def test_garbage_says_nothing(text: str) -> None:
    log = read_log(text)
    assert (log.errors, log.findings) == (None, ())
