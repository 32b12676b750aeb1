"""Modelled accesses as findings, and back."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kernelwright.devices.traffic import Traffic, read_traffic

LOAD = Traffic("4", "global", "load", 4, 32.0, 4.0, 32.0, 128, "N=64 (odd)")


def test_a_finding_reads_back() -> None:
    store = replace(LOAD, line="?", space="shared", operation="store", width=16, units=4.5, lanes=7.5)
    assert list(read_traffic(["race: x", LOAD.text, "printed: " + LOAD.text, store.text])) == [LOAD, store]
    assert LOAD.text == (
        "metric (modelled) line 4: global load of 4 bytes: 32.00 sectors a request (ideal 4.00), 32.0 lanes, 128 requests"
        " (case N=64 (odd))"
    )
    assert "wavefronts" in store.text
    before = LOAD.text.replace("(modelled) ", "")
    assert list(read_traffic([before])) == [LOAD]


def test_what_is_wasted() -> None:
    assert LOAD.wasted == 0.875
    assert LOAD.excess == 28 * 128
    assert replace(LOAD, units=0.5, ideal=1.0).wasted == 0.0
    assert replace(LOAD, units=0.0).excess == 0.0


@given(st.text() | st.text().map(lambda text: LOAD.text[:40] + text))
def test_anything_else_is_passed_over(text: str) -> None:
    assert list(read_traffic([text])) == []
