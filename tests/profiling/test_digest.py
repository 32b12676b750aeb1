"""Few numbers, few characters, nothing made up."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kernelwright.core.outcome import KernelStatics, StaticMetrics
from kernelwright.profiling import (
    Bottleneck,
    Digest,
    HotLine,
    KernelProfile,
    Metrics,
    make_digest,
    roofline,
    static_digest,
)
from kernelwright.profiling.digest import MAX_CHARACTERS
from kernelwright.profiling.ncu_csv import read_raw
from kernelwright.profiling.occasions import Moment, digest_for_prompt, should_profile

DATA = Path(__file__).parent / "data"
KERNELS = read_raw((DATA / "gemm_naive_full.csv").read_text(encoding="utf-8")).kernels
STATIC = StaticMetrics(
    (
        KernelStatics(
            "gemm",
            registers=168,
            spill_bytes=0,
            theoretical_occupancy=0.19,
            occupancy_limiter="registers",
            instructions={"total": 900, "fp32": 512, "global_load_128": 8, "shared_load_128": 64},
        ),
    )
)


def test_a_naive_gemm_is_bound_by_l1() -> None:
    digest = make_digest(
        KERNELS,
        case="M=2048",
        roofline=roofline(1e8, 1e10, bytes_per_s=4e12, operations_per_s=5e13, time_ms=3.18),
    )
    assert digest.bottleneck is Bottleneck.L1
    assert digest.level == 1
    assert "M=2048" in digest.text
    assert "Known move" in digest.text
    assert "Roofline: bound by compute" in digest.text
    assert 5 <= len(digest.numbers) <= 8


def test_the_launch_with_most_time_is_spoken_of() -> None:
    quick = KernelProfile("quick", "", "", Metrics({"gpu__time_duration.sum": 10.0}))
    digest = make_digest([quick, *KERNELS, quick])
    assert digest.kernel == "gemm_naive"
    assert "gemm_naive takes 100% of the time of 3 launches" in digest.text


def test_what_changed_against_others() -> None:
    before = Digest(1, Bottleneck.DRAM, "", numbers=(("DRAM %", 90.0), ("SM %", 64.78)))
    text = make_digest(KERNELS, parent=before, incumbent=replace(before, case="")).text
    assert "Against the parent (DRAM-bound): DRAM % 90 -> 0.3" in text
    assert "Against the incumbent" in text
    assert "SM % 64.8 ->" not in text
    assert "Against" not in make_digest(KERNELS, parent=static_digest(STATIC)).text


def test_without_counters_it_says_so() -> None:
    digest = make_digest([], static=STATIC)
    assert digest.level == 0
    assert digest.bottleneck is Bottleneck.OCCUPANCY_REGISTERS
    assert "static, no hardware counters" in digest.text
    assert "registers 168" in digest.text
    assert "global_load_128 8" in digest.text
    assert static_digest(None).bottleneck is Bottleneck.UNKNOWN


def test_near_the_floor_nothing_else_counts() -> None:
    roof = roofline(4e9, 0, bytes_per_s=4e12, operations_per_s=0, time_ms=1.05)
    assert static_digest(STATIC, roof).bottleneck is Bottleneck.DRAM


def test_spills_are_seen_without_counters() -> None:
    assert static_digest(StaticMetrics((KernelStatics("k", spill_bytes=8),))).bottleneck is Bottleneck.SPILLS


def test_hot_lines_make_level_2() -> None:
    digest = make_digest(KERNELS, lines=[HotLine(12, 0.7, "acc += a * b;", (("long_sb", 0.9),))])
    assert digest.level == 2
    assert "Hot line 12 (70% of samples; long_sb 90%): acc += a * b;" in digest.text


@given(st.text(max_size=3000), st.integers(0, 40), st.floats())
def test_it_is_never_longer(word: str, many: int, value: float) -> None:
    words = (word,) * many
    digest = Digest(
        2, Bottleneck.SPILLS, word, word, word, ((word, value),) * many, words, words, words, words, words
    )
    assert len(digest.text) <= MAX_CHARACTERS


def test_rooflines() -> None:
    roof = roofline(8e9, 1e9, bytes_per_s=4e12, operations_per_s=6e13, time_ms=4.0)
    assert roof is not None
    assert (roof.floor_ms, roof.bound, roof.share, roof.distance) == (2.0, "memory", 0.5, 2.0)
    compute = roofline(8, 6e13, bytes_per_s=4e12, operations_per_s=6e13)
    assert compute is not None
    assert (compute.bound, compute.floor_ms, compute.share, compute.distance) == ("compute", 1e3, None, None)
    assert roofline(8e9, 1e9, bytes_per_s=0, operations_per_s=0) is None


def test_occasions() -> None:
    assert should_profile(Moment(since_profile=0)) == ""
    assert should_profile(Moment(since_profile=19)) == ""
    assert "20 experiments" in should_profile(Moment(since_profile=20))
    assert "structure" in should_profile(Moment(since_profile=1, new_structure=True))
    assert "stagnates" in should_profile(Moment(since_profile=1, stagnating=True))
    assert should_profile(Moment(since_profile=0, stagnating=True)) == ""
    assert should_profile(Moment(since_profile=0, asked=True)) == "asked for"
    assert digest_for_prompt(None) == ""
    assert digest_for_prompt(static_digest(STATIC)).startswith("Bottleneck")
