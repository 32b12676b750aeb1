"""What the checked mode models, in a digest: said to be modelled, and a name only where the pattern suffices."""

from dataclasses import replace

import pytest

from kernelwright.core.outcome import KernelStatics, StaticMetrics
from kernelwright.devices.traffic import Traffic
from kernelwright.profiling import Bottleneck, make_digest, modelled, roofline
from kernelwright.profiling.labels import Label

WHOLE = Traffic("2", "global", "load", 4, 4.0, 4.0, 32.0, 100)
SCATTERED = replace(WHOLE, line="3", units=32.0)
TILE = Traffic("4", "shared", "load", 4, 1.0, 1.0, 32.0, 100)
SOURCE = "// first\nx = a[i];\ny = a[32 * i];\nz = tile[i];\n"


def label(*traffic: Traffic) -> Label | None:
    found = modelled(["race: something", *(one.text for one in traffic)])
    assert found is not None
    return found.label


@pytest.mark.parametrize(
    ("traffic", "name"),
    [
        ([WHOLE, SCATTERED], Bottleneck.UNCOALESCED_LOADS),
        ([WHOLE, replace(SCATTERED, operation="store")], Bottleneck.STRIDED_STORES),
        ([WHOLE, SCATTERED, replace(SCATTERED, operation="store", requests=300)], Bottleneck.STRIDED_STORES),
        ([WHOLE, replace(TILE, units=32.0)], Bottleneck.BANK_CONFLICTS),
        ([WHOLE, TILE], None),
        ([WHOLE, replace(SCATTERED, requests=2)], None),  # too rare
        ([replace(WHOLE, units=1.0)], None),  # a broadcast
        ([replace(WHOLE, units=5.0)], None),  # not aligned
        ([replace(WHOLE, requests=10_000), replace(TILE, units=32.0)], None),
        ([replace(TILE, units=1.5)], None),
    ],
)
def test_a_name_needs_a_pattern_that_costs_most(traffic: list[Traffic], name: Bottleneck | None) -> None:
    found = label(*traffic)
    assert (found.bottleneck if found else None) is name
    assert found is None or found.evidence.startswith("modelled: ")


def test_the_worst_lines_come_first_with_their_text() -> None:
    conflicts = replace(TILE, units=16.0)
    found = modelled(
        one.text for one in (WHOLE, SCATTERED, conflicts, replace(SCATTERED, line="?", requests=1))
    )
    digest = make_digest([], model=found, source=SOURCE)
    assert digest.level == 0
    assert digest.bottleneck is Bottleneck.BANK_CONFLICTS
    assert "static, no hardware counters" in digest.text
    assert [line for line in digest.text.splitlines() if line.startswith("Modelled, ")] == [
        "Modelled, line 4: shared load of 4 bytes: 16.00 wavefronts a request (ideal 1.00): z = tile[i];",
        "Modelled, line 3: global load of 4 bytes: 32.00 sectors a request (ideal 4.00): y = a[32 * i];",
        "Modelled, line ?: global load of 4 bytes: 32.00 sectors a request (ideal 4.00)",
    ]


def test_of_several_cases_the_largest_speaks() -> None:
    small = [replace(one, case="N=1", requests=1) for one in (WHOLE, SCATTERED)]
    found = modelled(one.text for one in (*small, replace(WHOLE, case="N=9"), replace(TILE, case="N=9")))
    assert found is not None
    assert found.worst == ()


def test_good_patterns_are_told_too_and_nothing_where_nothing_was_modelled() -> None:
    assert "Modelled: no line wastes sectors" in make_digest([], model=modelled([WHOLE.text])).text
    assert modelled(["race: something"]) is None
    assert "Modelled" not in make_digest([], model=None).text


def test_what_the_compiler_and_the_roofline_know_for_sure_goes_first() -> None:
    found = modelled([SCATTERED.text])
    spills = StaticMetrics(
        (KernelStatics("k", spill_bytes=8, theoretical_occupancy=0.2, occupancy_limiter="blocks"),)
    )
    assert make_digest([], static=spills, model=found).bottleneck is Bottleneck.SPILLS
    roof = roofline(4e9, 0, bytes_per_s=4e12, operations_per_s=0, time_ms=1.05)
    assert make_digest([], roofline=roof, model=found).bottleneck is Bottleneck.DRAM
    few = StaticMetrics((replace(spills.kernels[0], spill_bytes=0),))
    assert make_digest([], static=few, model=found).bottleneck is Bottleneck.UNCOALESCED_LOADS
    assert make_digest([], static=few).bottleneck is Bottleneck.OCCUPANCY_BLOCKS
