"""Input sets that do not fit at once: runs are split, nothing in use is dropped, limits are said."""

import os
import resource

import pytest

from kernelwright.core.outcome import Status
from kernelwright.devices.base import Buffer, CaseRequest, RunRequest, TimingProtocol
from kernelwright.devices.cpu import CpuRunner, batches
from kernelwright.devices.cpu.data import DataCache, set_bytes
from kernelwright.devices.cpu.job import FORWARD, SHADOW_CELL, PlannedRun, shadow_bytes
from tests.devices.cpu.test_runner import RIGHT
from tests.devices.cpu.workbench import ArraySource, Bench

RUNS = [PlannedRun(i, i % 3, FORWARD) for i in range(8)]
BUFFERS = (Buffer("x", "float32", (1000,), "in"), Buffer("y", "float32", (1000,), "out"))


@pytest.mark.parametrize("sets", [1, 2])
def test_right_kernels_pass_where_not_all_input_sets_fit(bench: Bench, sets: int) -> None:
    source = ArraySource(RIGHT)
    data_bytes = sets * set_bytes(source.buffers("small"))
    runner = CpuRunner(bench.scratch, threads=1, cache=bench.cache, data_bytes=data_bytes)
    request = RunRequest(bench.build(RIGHT.source).artifact, (CaseRequest("small", bench.plan(RIGHT)),),
                         TimingProtocol(runs=8, dropped=1, input_sets=3))  # fmt: skip
    result = runner.run(request, source)
    runner.close()
    assert result.status == Status.MEASURED, result
    assert len(result.timings[0].samples_ms) == 7
    assert source.made == 3


def test_sets_asked_for_at_once_stay_open() -> None:
    cache, source = DataCache(1), ArraySource(RIGHT)
    first = cache.get(source, "small", {0, 1, 2})
    for data in first.values():
        os.fstat(data.fd)
    assert cache.missing(source, "small", {0, 3}) == 1
    cache.get(source, "small", {3})
    assert cache.missing(source, "small", {0, 1, 2, 3}) == 3
    cache.clear()


def test_runs_keep_their_order_where_all_sets_fit() -> None:
    assert [[r.number for r in b] for b in batches.batches(RUNS, 5, 3)] == [[0, 1, 2, 3, 4], [5, 6, 7]]


def test_runs_on_one_set_follow_each_other_where_not_all_fit() -> None:
    assert [[r.number for r in b] for b in batches.batches(RUNS, 4, 2)] == [[0, 3, 6, 1], [4, 7, 2, 5]]
    assert [[r.number for r in b] for b in batches.batches(RUNS, 9, 2)] == [[0, 3, 6, 1, 4, 7], [2, 5]]


def test_too_little_memory_for_inputs_is_no_fault_of_the_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "available_memory", lambda: 20_000)
    inputs = batches.memory_fault("N=1000", BUFFERS, 4096, 1)
    outputs = batches.memory_fault("N=1000", BUFFERS, 30_000, 0)
    assert inputs is not None
    assert outputs is not None
    assert inputs.status == Status.NOT_RUN
    assert "20000 are to be had" in inputs.reason
    assert outputs.status == Status.CRASHED
    assert batches.memory_fault("N=1000", BUFFERS, 4096, 0) is None


def test_the_checked_mode_has_room_for_its_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shadow_bytes(BUFFERS) == 1000 * SHADOW_CELL
    assert shadow_bytes([Buffer("y", "float64", (1000,), "inout")]) == 2000 * SHADOW_CELL
    monkeypatch.setattr(batches, "available_memory", lambda: 39_999)
    fault = batches.memory_fault("N=1000", BUFFERS, 4096, 0, checked=True)
    assert fault is not None
    assert (fault.status, fault.reason) == (
        Status.NOT_RUN,
        "not run: case N=1000: the checked mode: 40000 bytes of memory are needed, 39999 are to be had",
    )


def test_arrays_that_no_file_may_hold_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for room, status in ((4095, Status.NOT_RUN), (4096, None)):
        monkeypatch.setattr(batches, "largest_file", lambda room=room: room)
        fault = batches.memory_fault("N=1000", BUFFERS, 4096, 0)
        assert (fault and fault.status) == status


def test_limits_of_the_process_bound_what_is_available() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, before[1]))
    try:
        assert 0 < batches.available_memory() < 1 << 30
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
