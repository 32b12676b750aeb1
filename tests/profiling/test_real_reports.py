"""Reports of Nsight Compute 2025.3.1 on an H200: 17 kernels with planted bottlenecks, each with its cured twin.

``python bench/bench_bottlenecks.py --from FOLDER --keep tests/data/ncu_bottlenecks`` made them from whole reports.
"""

import json
from pathlib import Path

import pytest

from kernelwright.profiling.bottleneck import Bottleneck
from kernelwright.profiling.labels import Seen, labels
from kernelwright.profiling.names import FREE, LEVEL1
from kernelwright.profiling.ncu_csv import read_raw, trimmed

REPORTS = Path(__file__).parents[1] / "data" / "ncu_bottlenecks"
RIGHT = {
    "atomics": Bottleneck.ATOMICS,
    "bank_conflicts": Bottleneck.BANK_CONFLICTS,
    "barriers": Bottleneck.BARRIERS,
    "compute": Bottleneck.COMPUTE,
    "divergence": Bottleneck.DIVERGENCE,
    "dram": Bottleneck.DRAM,
    "l2": Bottleneck.L2,
    "latency_chain": Bottleneck.LATENCY,
    "occupancy_block": Bottleneck.OCCUPANCY_BLOCKS,
    "occupancy_registers": Bottleneck.OCCUPANCY_REGISTERS,
    "occupancy_shared": Bottleneck.OCCUPANCY_SHARED,
    "small_grid": Bottleneck.SMALL_GRID,
    "spills": Bottleneck.SPILLS,
    "strided_stores": Bottleneck.STRIDED_STORES,
    "tail": Bottleneck.TAIL,
    "tensor": Bottleneck.TENSOR,
    "uncoalesced_loads": Bottleneck.UNCOALESCED_LOADS,
}


@pytest.mark.parametrize("name", RIGHT)
def test_the_planted_bottleneck_is_named_and_goes_with_its_cause(name: str) -> None:
    spills = json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))
    report = read_raw((REPORTS / f"{name}.csv").read_text(encoding="utf-8"))
    found = {k.kernel: labels(Seen(k.metrics, spills[k.kernel])) for k in report.kernels}
    assert list(found) == ["planted", "cured"]
    assert found["planted"][0].bottleneck is RIGHT[name]
    assert RIGHT[name] not in {label.bottleneck for label in found["cured"]}


def test_every_kernel_has_its_report_with_all_that_was_asked_for() -> None:
    kernels = {path.stem for path in (REPORTS.parents[2] / "bench/bottlenecks/kernels").iterdir()}
    assert {path.stem for path in REPORTS.glob("*.csv")} == kernels == set(RIGHT)
    for path in REPORTS.glob("*.csv"):
        for kernel in read_raw(path.read_text(encoding="utf-8")).kernels:
            assert kernel.metrics.missing((*LEVEL1, *FREE)) == ()


def test_a_trimmed_report_reads_as_before_without_what_tells_of_the_machine() -> None:
    whole = (
        '==PROF== Connected to process 1\n"ID","Host Name","Kernel Name","Grid Size","Block Size","CC","a__b.sum","c__d"\n'
        '"","","","","","","",""\n"0","box","k(int)","(1, 1, 1)","(2, 1, 1)","9.0","1,000","7"\n"1","cut'
    )
    text = trimmed(whole, ["a__b.sum", "absent"])
    assert "box" not in text
    assert "process" not in text
    (kernel,) = read_raw(text).kernels
    assert kernel.metrics.values == {"a__b.sum": 1000.0}
    assert (kernel.kernel, kernel.grid, kernel.block) == ("k", "(1,1,1)", "(2,1,1)")
    assert trimmed("", ["a__b.sum"]) == ""
