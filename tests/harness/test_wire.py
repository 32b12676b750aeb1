"""Messages: whole, bounded, validated."""

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from kernelwright.core.errors import HarnessError
from kernelwright.core.launch import BuildRequest, KernelArgument, LaunchSpec, ResolvedPlan, ScratchSpec
from kernelwright.core.outcome import CaseTiming, KernelStatics, StaticMetrics, Status
from kernelwright.devices.base import BuildResult, CaseRequest, RunRequest, RunResult
from kernelwright.harness.sandbox import Layer, SandboxReport
from kernelwright.harness.setup import WorkerSetup
from kernelwright.harness.wire import (
    MAX_LINE,
    REPLY,
    REQUEST,
    Ceilings,
    Hello,
    Reply,
    Request,
    decode,
    encode,
)
from tests.harness.fake_device import FACTS

LAUNCH = LaunchSpec(
    "k", (4, 1, 1), (32, 2, 1), 16, (KernelArgument("A", "float32"), KernelArgument("N", "int32", 7))
)
PLAN = ResolvedPlan((LAUNCH,), (ScratchSpec("s", "float32", 9),))
STATIC = StaticMetrics((KernelStatics("k", registers=40),), 1000)
MESSAGES = [
    (REQUEST, Request(1, build=BuildRequest('src\n"\\é', {"BM": 4}, {"use_fast_math": True, "maxrregcount": 64}, ("k",), "sm_90a"))),
    (REQUEST, Request(2, run=RunRequest("/a", (CaseRequest("N=1", PLAN, 0.5),), check_only=True))),
    (REPLY, Reply(0, hello=Hello(SandboxReport((Layer("user", False, "why"),)), "g++", FACTS, Ceilings(1.0, 2.0)))),
    (REPLY, Reply(3, built=BuildResult("/a", "0" * 64, static=STATIC, log="l", seconds=0.1))),
    (REPLY, Reply(4, built=BuildResult(status=Status.COMPILE_FAILED, reason="line 1"))),
    (REPLY, Reply(5, ran=RunResult(Status.MEASURED, timings=(CaseTiming("N=1", (0.1, 0.2), "events", 0.3),)), broken=True)),
    (REPLY, Reply(6, error="no", user_error=True)),
]  # fmt: skip

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
FIELDS = st.sampled_from(
    ["id", "hello", "built", "ran", "error", "status", "timings", "static", "sandbox", "layers"]
)


def nested(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(values, max_size=3), st.dictionaries(FIELDS, values, max_size=4))


@pytest.mark.parametrize(("adapter", "message"), MESSAGES, ids=range(len(MESSAGES)))
def test_a_message_arrives_as_it_was_sent(adapter: TypeAdapter[Any], message: Request | Reply) -> None:
    line = encode(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(adapter, line) == message


def test_infinite_errors_travel() -> None:
    """A wrong output may be infinitely far off; strict JSON has no word for that."""
    sent = Reply(1, ran=RunResult(Status.MEASURED, timings=(CaseTiming("a", (1.0,), "clock", float("inf")),)))
    assert decode(REPLY, encode(sent)) == sent


def test_a_setup_survives_the_command_line() -> None:
    setup = WorkerSetup("device", "cuda:1", 7, "/s", "/a", "/c", "/p", seed=3, readable=("/x", "/y"))
    assert WorkerSetup.from_json(setup.to_json()) == setup
    assert setup.uses_gpu


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"nothing\n", b'{"id": "x"}\n', b'{"id": 1, "built": {"status": "odd"}}\n']
)
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(HarnessError, match="no valid message"):
        decode(REPLY, line)


@given(
    st.one_of(
        st.binary(max_size=300),
        st.recursive(SCALARS, nested, max_leaves=30).map(lambda v: json.dumps(v).encode()),
    )
)
def test_whatever_a_child_says_is_a_message_or_a_harness_error(line: bytes) -> None:
    with contextlib.suppress(HarnessError):
        assert isinstance(decode(REPLY, line), Reply)


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(HarnessError, match="longer than"):
        encode(Reply(1, error="x" * MAX_LINE))


def test_a_floor_is_the_larger_of_its_bounds() -> None:
    assert Ceilings(1e9, 1e12).floor_ms(1_000_000, 10) == pytest.approx(1.0)
    assert Ceilings(1e9, 1e12).floor_ms(10, 5_000_000_000) == pytest.approx(5.0)
    assert Ceilings().floor_ms(10, 10) == 0.0
    both = Ceilings(1e9, 1e12, 1e13)
    assert both.floor_ms(10, 5_000_000_000) == pytest.approx(5.0)
    assert replace(both, on_tensor_units=True).floor_ms(10, 5_000_000_000) == pytest.approx(0.5)
    # Where their rate is not known, fp32 is no bound either.
    assert Ceilings(1e9, 1e12, on_tensor_units=True).floor_ms(1_000_000, 5_000_000_000) == pytest.approx(1.0)
