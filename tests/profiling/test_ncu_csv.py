"""What ncu printed on a real GPU, and what it might print."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.profiling import names
from kernelwright.profiling.ncu_csv import number, read_names, read_raw, read_source

DATA = Path(__file__).parent / "data"
KERNEL = Path(__file__).parents[2] / "bench" / "bottlenecks" / "kernels" / "bank_conflicts.cu"
HEAD = '"ID","Kernel Name","Block Size","Grid Size","CC","gpu__time_duration.sum","sm__throughput.avg"\n'
UNITS = '"","","","","","ns","%"\n'


def row(number_: int, kernel: str, time: str, share: str) -> str:
    return f'"{number_}","{kernel}","(16, 16, 1)","(128, 1, 1)","9.0","{time}","{share}"\n'


def recorded(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def test_a_recorded_report_is_read() -> None:
    report = read_raw(recorded("gemm_naive_full.csv"))
    assert report.error == ""
    (kernel,) = report.kernels
    assert (kernel.kernel, kernel.grid, kernel.block, kernel.device) == (
        "gemm_naive",
        "(128,128,1)",
        "(16,16,1)",
        "9.0",
    )
    assert kernel.metrics.get(names.DRAM_READ) == 33_561_600
    assert kernel.metrics.get(names.SM) == 64.78
    assert kernel.time_ns == 3_179_840


def test_what_is_no_number_is_unknown() -> None:
    (kernel,) = read_raw(recorded("gemm_naive_full.csv")).kernels
    assert kernel.metrics.get("sass__inst_executed_register_spilling_mem_local") is None  # "no data"
    assert kernel.metrics.get("launch__tpc_enabled") is None  # "all"
    assert "sass__inst_executed_register_spilling_mem_local" not in kernel.metrics.values


def test_columns_that_did_not_come_are_told() -> None:
    (kernel,) = read_raw(recorded("gemm_naive_metrics.csv")).kernels
    missing = kernel.metrics.missing(names.LEVEL1)
    assert names.ISSUE in missing
    assert names.SM not in missing


def test_several_launches_in_their_order() -> None:
    text = HEAD + UNITS + row(0, "first", "1,024", "1.5") + row(1, "second(float *)", "2,048,000", "nan")
    report = read_raw("==PROF== Connected\nprinted by the program\n" + text)
    assert [k.kernel for k in report.kernels] == ["first", "second"]
    assert report.kernels[1].time_ns == 2_048_000
    assert report.kernels[1].metrics.get("sm__throughput.avg") is None


def test_of_a_truncated_report_whole_rows_count() -> None:
    whole = HEAD + UNITS + row(0, "first", "1", "2")
    report = read_raw(whole + row(1, "second", "3", "4")[:-12])
    assert [k.kernel for k in report.kernels] == ["first"]
    assert read_raw(HEAD[:-20]).kernels == ()


def test_errors_of_the_tool_are_kept() -> None:
    text = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n"
    report = read_raw(text)
    assert report.forbidden
    assert report.kernels == ()
    assert not read_raw("==ERROR== Failed to connect\n").forbidden


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3,138,496", 3138496.0),
        ("0.30", 0.3),
        ("-1.5e3", -1500.0),
        ("1234567", 1234567.0),
        ("1,23", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("", None),
        ("no data", None),
        ("(16, 16, 1)", None),
    ],
)
def test_numbers(text: str, value: float | None) -> None:
    assert number(text) == value


@given(st.text(max_size=400))
def test_any_text_is_no_error(text: str) -> None:
    assert read_raw(text).kernels == ()
    read_source(text, "a\nb\n")
    number(text)


@given(st.integers(0, 4000), st.integers(0, 255), st.binary(max_size=3))
def test_a_damaged_report_is_no_error(at: int, byte: int, more: bytes) -> None:
    raw = recorded("gemm_naive_full.csv").encode()
    damaged = (raw[:at] + bytes([byte]) + more + raw[at + 1 :]).decode(errors="replace")
    for kernel in read_raw(damaged).kernels:
        assert all(isinstance(value, float) for value in kernel.metrics.values.values())


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_come_back(value: float) -> None:
    assert number(f"{value:,.6f}") == pytest.approx(value, abs=1e-6, rel=1e-9)


def test_names_that_no_version_has() -> None:
    listed = read_names(
        "Device NVIDIA\n-----\nsm__throughput   Throughput  %\ngpu__time_duration    Counter ns\n"
    )
    assert listed == {"sm__throughput", "gpu__time_duration"}
    asked = (names.SM, "smsp__warp_issue_stalled_memory_dependency_per_warp_active.pct")
    assert names.unknown_names(asked, listed) == asked[1:]


def test_hot_lines_of_a_real_report() -> None:
    """ncu 2025.3.1 on an H200; most rows of instructions are left out, which have no line of their own."""
    lines = read_source(recorded("source_bank_conflicts.csv"), KERNEL.read_text(encoding="utf-8"))
    assert [line.line for line in lines] == [21, 34, 33]
    assert lines[0].text == "x += s[lane * 32 + at];"
    assert lines[0].share > 0.85
    assert lines[0].stalls[0][0] == "short_scoreboard"


def test_hot_lines_are_the_templates_own() -> None:
    view = (
        '"Line No","Source","Address","Source","# Samples","stall_barrier","stall_long_sb","stall_long_sb (Not Issued)"\n'
        '"1","extern "C" whatever it, says","-","-","10","0","5","1"\n'
        '"","","0x10","LDG R1, [R2]","10","0","5","1"\n'
        '"3","x","-","-","1,030","30","1,000","9"\n"99","y","-","-","7","0","0","0"\n"2","cut","-"\n'
    )
    lines = read_source(view, "first\nsecond\n  third;\n")
    assert [(line.line, line.text) for line in lines] == [(3, "third;"), (1, "first")]
    assert lines[0].share == pytest.approx(1030 / 1040)
    assert lines[0].stalls[0] == ("long_scoreboard", pytest.approx(1000 / 1030))
    assert read_source("==ERROR== no source\n", "a") == ()
