"""The loop that measures the tensor units: it compiles everywhere, is made of matrix instructions, and is counted right."""

from types import SimpleNamespace
from typing import Any

import pytest

from kernelwright.devices.cuda.cubin import instruction_mix, read_cubin
from kernelwright.devices.cuda.nvrtc import Nvrtc
from kernelwright.devices.cuda.tensor_rate import LOOPS, THREADS, UNROLL, tensor_cubin, tensor_rate


@pytest.fixture(scope="module")
def nvrtc() -> Nvrtc:
    pytest.importorskip("cuda.bindings.nvrtc")
    return Nvrtc()


@pytest.mark.parametrize("arch", LOOPS)
def test_the_loop_compiles_to_matrix_instructions_without_spills(nvrtc: Nvrtc, arch: str) -> None:
    cubin = tensor_cubin(nvrtc, arch)
    assert read_cubin(cubin).kernels == ("tensor_rate",)
    found = instruction_mix(cubin)["tensor_rate"]
    assert found["tensor"] >= UNROLL
    assert not any(name.startswith(("local_", "global_load")) for name in found)


class Driver:
    """Takes the launch down; every run takes 2 ms."""

    stream = 0

    def __init__(self) -> None:
        self.unloaded = 0
        self.api = SimpleNamespace(
            cuModuleLoadData=lambda _: (0, "module"),
            cuModuleGetFunction=lambda *_: (0, "function"),
            cuModuleUnload=lambda _: (0,),
            cuLaunchKernel=None,
        )

    def ok(self, result: tuple[Any, ...], where: str = "") -> Any:
        self.unloaded += where == "cuModuleUnload"
        return result[-1]

    def preload(self, function: Any) -> None:
        assert function == "function"

    def elapsed_ms(self, *_: Any) -> float:
        return 2.0


def gpu(arch: str) -> Any:
    launches: list[Any] = []
    return SimpleNamespace(
        facts=SimpleNamespace(arch=arch, num_sms=10),
        driver=Driver(),
        row=lambda _: 1,
        record=lambda _: None,
        event=lambda _: None,
        launches=launches,
        run=lambda operations, *_, **__: not launches.append(operations[1].arguments),
    )


def test_operations_are_counted_by_launch_and_time(nvrtc: Nvrtc) -> None:
    one = gpu("sm_80")
    warps = 4 * 10 * THREADS // 32
    assert tensor_rate(one) == pytest.approx(warps * 16384 * UNROLL * 2 * 16 * 8 * 16 / 2e-3)
    assert one.launches[0][1:7] == (40, 1, 1, THREADS, 1, 1)
    assert one.driver.unloaded == 1


def test_where_the_peak_needs_other_instructions_it_is_unknown() -> None:
    assert tensor_rate(gpu("sm_100a")) == 0.0
