"""Every label both ways: with its cause it is given, without it is not."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.profiling import names as n
from kernelwright.profiling.bottleneck import HINTS, Bottleneck
from kernelwright.profiling.labels import Seen, labels
from kernelwright.profiling.metrics import Metrics

QUIET = {
    n.SM: 30.0, n.MEMORY: 30.0, n.DRAM: 20.0, n.L2: 15.0, n.L1: 25.0, n.ISSUE: 30.0, n.LANES: 32.0,
    n.TENSOR: 0.0, n.INSTRUCTIONS: 1e6, n.LOCAL[0]: 0.0, n.LOCAL[1]: 0.0, n.WAVES: 8.0, n.GRID: 1056.0,
    n.SMS: 132.0, n.THEORETICAL: 100.0, n.WARP_LATENCY: 20.0, n.L2_SECTORS: 1e6, n.ATOMIC_SECTORS[0]: 0.0,
    n.PIPES["fma"]: 20.0,
    **dict(zip(n.LIMITS.values(), (32.0, 8.0, 8.0, 16.0), strict=True)),
    **{n.stall(reason): 0.1 for reason in n.STALLS}, n.stall("long_scoreboard"): 15.0,
    **{make(kind): value for kind in ("ld", "st") for make, value in (
        (n.efficiency, 100.0), (n.sectors, 4e5), (n.requests, 1e5), (n.conflicts, 0.0), (n.wavefronts, 1e5))},
}  # fmt: skip
"""A kernel that waits for memory and has no other fault."""


@dataclass(frozen=True)
class Cause:
    """What makes a label, and what is left of it where the label must not be given."""

    label: Bottleneck
    makes: dict[str, float]
    not_yet: dict[str, float]
    spills: int = 0
    spills_not: int = 0


CAUSES = [
    Cause(Bottleneck.SMALL_GRID, {n.GRID: 16.0}, {n.GRID: 132.0}),
    Cause(Bottleneck.SPILLS, {n.LOCAL[0]: 2e5}, {n.LOCAL[0]: 2e5}, 400, 0),
    Cause(
        Bottleneck.UNCOALESCED_LOADS,
        {n.efficiency("ld"): 12.5, n.sectors("ld"): 32e5},
        # A broadcast wastes its sector too, but there is only one.
        {n.efficiency("ld"): 12.5, n.sectors("ld"): 1e5},
    ),
    Cause(
        Bottleneck.STRIDED_STORES,
        {n.efficiency("st"): 12.5, n.sectors("st"): 32e5},
        {n.efficiency("st"): 100.0, n.sectors("st"): 16e5},
    ),
    Cause(
        Bottleneck.BANK_CONFLICTS,
        {n.conflicts("ld"): 9e4, n.L1: 70.0},
        {n.conflicts("ld"): 1e4, n.L1: 70.0},
    ),
    Cause(Bottleneck.ATOMICS, {n.ATOMIC_SECTORS[0]: 5e5}, {n.ATOMIC_SECTORS[0]: 1e4}),
    Cause(Bottleneck.BARRIERS, {n.stall("barrier"): 9.0}, {n.stall("barrier"): 3.0}),
    Cause(Bottleneck.DIVERGENCE, {n.LANES: 4.0, n.ISSUE: 80.0}, {n.LANES: 30.0, n.ISSUE: 80.0}),
    Cause(Bottleneck.TENSOR, {n.TENSOR: 62.0, n.SM: 62.0}, {n.TENSOR: 20.0, n.SM: 62.0}),
    Cause(Bottleneck.DRAM, {n.DRAM: 88.0, n.MEMORY: 88.0}, {n.DRAM: 40.0, n.MEMORY: 40.0}),
    Cause(Bottleneck.L2, {n.L2: 75.0, n.MEMORY: 75.0}, {n.L2: 40.0, n.MEMORY: 40.0}),
    Cause(Bottleneck.L1, {n.L1: 95.0, n.MEMORY: 95.0}, {n.L1: 40.0, n.MEMORY: 40.0}),
    Cause(Bottleneck.COMPUTE, {n.SM: 90.0, n.PIPES["fma"]: 90.0}, {n.SM: 50.0, n.PIPES["fma"]: 50.0}),
    Cause(Bottleneck.TAIL, {n.WAVES: 1.06}, {n.WAVES: 7.9}),
    Cause(
        Bottleneck.OCCUPANCY_REGISTERS,
        {n.THEORETICAL: 12.5, n.LIMITS["registers"]: 2.0},
        {n.THEORETICAL: 75.0, n.LIMITS["registers"]: 2.0},
    ),
    Cause(
        Bottleneck.OCCUPANCY_SHARED,
        {n.THEORETICAL: 12.5, n.LIMITS["shared memory"]: 2.0},
        {n.THEORETICAL: 75.0, n.LIMITS["shared memory"]: 2.0},
    ),
    Cause(
        Bottleneck.OCCUPANCY_BLOCKS,
        {n.THEORETICAL: 50.0, n.LIMITS["blocks"]: 2.0},
        {n.THEORETICAL: 75.0, n.LIMITS["blocks"]: 2.0},
    ),
    Cause(Bottleneck.LATENCY, {}, {n.SM: 70.0}),
]


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.label)
def test_the_label_comes_with_its_cause_and_goes_with_it(cause: Cause) -> None:
    with_it = labels(Seen(Metrics(QUIET | cause.makes), cause.spills))
    without = labels(Seen(Metrics(QUIET | cause.not_yet), cause.spills_not))
    assert with_it[0].bottleneck is cause.label
    assert with_it[0].evidence
    assert cause.label not in [label.bottleneck for label in without]


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.label)
def test_unknown_counters_make_no_label(cause: Cause) -> None:
    asked = set(cause.makes) or {n.SM}
    known = {name: value for name, value in QUIET.items() if name not in asked}
    assert cause.label not in [label.bottleneck for label in labels(Seen(Metrics(known), None))]


def test_of_equal_limits_shared_memory_is_the_last() -> None:
    """Blocks of one warp on Hopper: 32 fit, by their number as by the driver's own shared memory."""
    equal = {n.THEORETICAL: 50.0, n.LIMITS["blocks"]: 32.0, n.LIMITS["shared memory"]: 32.0}
    others = {n.LIMITS["registers"]: 128.0, n.LIMITS["threads"]: 64.0}
    assert labels(Seen(Metrics(QUIET | equal | others)))[0].bottleneck is Bottleneck.OCCUPANCY_BLOCKS


def test_nothing_known_is_unknown() -> None:
    (label,) = labels(Seen(Metrics()))
    assert label.bottleneck is Bottleneck.UNKNOWN


def test_every_name_has_moves() -> None:
    assert set(HINTS) == set(Bottleneck)
    assert all(HINTS[name] for name in Bottleneck if name is not Bottleneck.UNKNOWN)
    assert {cause.label for cause in CAUSES} == set(Bottleneck) - {Bottleneck.UNKNOWN}


@given(
    st.dictionaries(st.sampled_from(sorted(QUIET)), st.floats(-1e12, 1e12)), st.none() | st.integers(0, 4096)
)
def test_any_counters_have_a_label_and_none_twice(values: dict[str, float], spills: int | None) -> None:
    found = labels(Seen(Metrics(values), spills))
    assert found
    assert len({label.bottleneck for label in found}) == len(found)
