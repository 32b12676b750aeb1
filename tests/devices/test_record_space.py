"""Spaces of our own, written and read back."""

from pathlib import Path

import numpy as np
import pytest

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import UserError
from kernelwright.core.outcome import KernelStatics, StaticMetrics, Status
from kernelwright.core.space import Tunable
from kernelwright.devices.record_space import Recording, write_recorded
from kernelwright.devices.recorded import read_recorded

TUNABLES = (Tunable("X", (1, 2, 4)), Tunable("FAST", (False, True)))
STATIC = StaticMetrics((KernelStatics("k", registers=64, spill_bytes=8, theoretical_occupancy=0.5),), 4096)
ABOUT = {"name": "mine", "kernel": "k", "device": "NVIDIA H200"}


def configuration(x: int, *, fast: bool) -> Configuration:
    return Configuration({"X": x, "FAST": fast})


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    recordings = [
        Recording(
            configuration(4, fast=True), 1.5, deviation_ms=0.01, compile_ms=20.0, bench_ms=5.0, static=STATIC
        ),
        Recording(configuration(1, fast=False), None, reason="compile_failed"),
        Recording(configuration(2, fast=False), 3.0),
    ]
    write_recorded(path, TUNABLES, recordings, ABOUT)
    space = read_recorded(path)
    assert (space.name, space.device, len(space.space)) == ("mine", "NVIDIA H200", 3)
    assert space.optimum_ms == 1.5
    assert space.outcome(configuration(4, fast=True)).times_ms() == {"recorded": 1.5}
    static = space.static(configuration(4, fast=True))
    assert static is not None
    assert (static.registers, static.spill_bytes, static.code_bytes) == (64, 8, 4096)
    unknown = space.static(configuration(2, fast=False))
    assert unknown is not None
    assert unknown.registers is None
    failed = space.outcome(configuration(1, fast=False))
    assert (failed.status, failed.reason) == (Status.COMPILE_FAILED, "compile_failed")
    # The rows keep the order in which they were measured: the live curve.
    assert np.load(path)["time_ms"][0] == 1.5


def test_nothing_measured_is_nothing_to_record(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing was measured"):
        write_recorded(
            tmp_path / "x.npz",
            TUNABLES,
            [Recording(configuration(1, fast=True), None, reason="wrong")],
            ABOUT,
        )
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write_recorded(
            tmp_path / "no" / "x.npz", TUNABLES, [Recording(configuration(1, fast=True), 1.0)], ABOUT
        )
