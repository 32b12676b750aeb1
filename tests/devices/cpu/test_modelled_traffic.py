"""The model of the checked mode against counters of a GPU, and what stands for what it does not look at."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kernelwright.devices.traffic import read_traffic
from tests.devices.cpu.test_good_kernels import HEAD, out, x_of
from tests.devices.cpu.workbench import Bench, Kernel

SCRIPT = Path(__file__).parents[3] / "bench" / "compare_modelled.py"


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compare_modelled", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["compare_modelled"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["bank_conflicts", "strided_stores"])
def test_the_model_agrees_with_counters(bench: Bench, compare: ModuleType, name: str) -> None:
    model = compare.Model(bench.compiler, bench.runner, bench.scratch)
    pairs, alone = compare.compare(name, model, compare.REPORTS)
    assert alone == []
    assert {pair.kernel for pair in pairs} == {"planted", "cured"}
    assert max(pair.off for pair in pairs) < 0.01
    assert max(pair.modelled for pair in pairs) > 31


def test_what_cannot_be_modelled_is_told(bench: Bench, compare: ModuleType) -> None:
    pairs, (told,) = compare.compare(
        "tensor", compare.Model(bench.compiler, bench.runner, bench.scratch), compare.REPORTS
    )
    assert pairs == []
    assert told.startswith("tensor: not modelled: not_run: ")
    assert "inline PTX" in told


def test_the_first_executions_stand_for_all(bench: Bench) -> None:
    """64 of 800 executions are looked at; a line weighs what it is executed."""
    loop = "for (int k = 0; k < 800; ++k) s += x[threadIdx.x * 8 + (k & 7)];"
    kernel = Kernel(
        HEAD + "\n float s = 0;\n " + loop + "\n y[threadIdx.x] = s; }",
        ["x", "y", 256],
        x_of(256),
        out(32),
        lambda a: {"y": 100 * a["x"].reshape(32, 8).sum(1)},
        tolerance=1e-2,
    )
    result = bench.run(kernel, "check")
    load, store = sorted(read_traffic(result.findings), key=lambda one: -one.requests)
    assert (load.operation, load.requests, load.units) == ("load", 800, 32.0)
    assert (store.operation, store.requests, store.units) == ("store", 1, 4.0)
