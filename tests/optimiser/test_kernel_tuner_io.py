"""Kernel Tuner's files: what is read means the same, what is written is read back, faults are one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import UserError
from kernelwright.core.outcome import Status
from kernelwright.optimiser.kernel_tuner_io import TuningResult, read_t1, read_t4, write_t4

T1: dict[str, Any] = {
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "block_size_x", "Type": "int", "Values": "[32, 64, 128]", "Default": 32},
            {"Name": "tile", "Type": "int", "Values": "[1, 2, 4]"},
            {"Name": "shared", "Type": "bool", "Values": "[0, 1]"},
            {"Name": "layout", "Type": "string", "Values": "['rows', 'columns']"},
        ],
        "Conditions": [{"Expression": "block_size_x * tile <= 128", "Parameters": ["block_size_x", "tile"]}],
    },
    "KernelSpecification": {"Language": "CUDA"},
}


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_space_is_read(tmp_path: Path) -> None:
    space = read_t1(write(tmp_path / "t1.json", T1))
    assert space.names == ("block_size_x", "tile", "shared", "layout")
    assert len(space) == 6 * 2 * 2
    assert space.configuration(0) == Configuration(
        {"block_size_x": 32, "tile": 1, "shared": False, "layout": "rows"}
    )


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("TuningParameters", 0, "Values"), "__import__('os')", "'block_size_x': Values"),
        (("TuningParameters", 1, "Values"), "[[1]]", "'tile'"),
        (("TuningParameters", 1, "Values"), "(" * 5000, "'tile'"),
        (("Conditions", 0, "Expression"), "len(tile) > 1", "condition 1: unknown function 'len'"),
        (("TuningParameters",), [], "ConfigurationSpace.TuningParameters: is empty: put something there$"),
        (("TuningParameters", 1, "Name"), 3, r"TuningParameters\[1\].Name: must be a text in quotes, not 3$"),
    ],
)
def test_a_space_that_cannot_be_used_says_where(
    tmp_path: Path, path: tuple[Any, ...], value: Any, message: str
) -> None:
    document = json.loads(json.dumps(T1))
    place = document["ConfigurationSpace"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(UserError, match=message):
        read_t1(write(tmp_path / "t1.json", document))


def test_results_survive_writing_and_reading(tmp_path: Path) -> None:
    results = (
        TuningResult(Configuration({"a": 1, "b": True}), Status.MEASURED, (1.0, 1.2), 1.1),
        TuningResult(Configuration({"a": 2, "b": False}), Status.COMPILE_FAILED),
        TuningResult(Configuration({"a": 4, "b": False}), Status.TIMED_OUT),
    )
    write_t4(results, tmp_path / "t4.json")
    assert read_t4(tmp_path / "t4.json") == results


def test_every_status_can_be_written(tmp_path: Path) -> None:
    write_t4([TuningResult(Configuration({"a": 1}), s, (1.0,), 1.0) for s in Status], tmp_path / "t4.json")
    read = read_t4(tmp_path / "t4.json")
    assert len(read) == len(Status)
    assert sum(result.status is Status.MEASURED for result in read) == 1


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "configuration": {"a": 1},
        "times": {"compilation": 9.0, "runtimes": [1.0, 3.0]},
        "invalidity": "correct",
        "correctness": 1,
        **changes,
    }


def test_the_objective_is_the_named_measurement_or_the_mean_of_runs(tmp_path: Path) -> None:
    measurements = [{"name": "GFLOP/s", "value": 7.0}, {"name": "time", "value": 1.5, "unit": "ms"}]
    document = {"results": [entry(), entry(objectives=["time"], measurements=measurements)]}
    values = [result.value_ms for result in read_t4(write(tmp_path / "t4.json", document))]
    assert values == [2.0, 1.5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"t4.json: file: is no JSON \(EOF while parsing an object at line 1 column 1\)$"),
        ("[]", "t4.json: file: must be an object, not a list$"),
        ({"results": [{"configuration": {}}]}, r"results\[0\].times: is missing: add it \(and 1 more\)$"),
        ({"results": [entry(invalidity="odd")]}, r"results\[0\].invalidity: 'odd'"),
        ({"results": [entry(times={})]}, r"results\[0\]: correct, but neither 'time' nor runtimes"),
    ],
)
def test_results_that_cannot_be_used_say_where(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_t4(write(tmp_path / "t4.json", content))
    with pytest.raises(UserError, match="there is no such file"):
        read_t4(tmp_path / "missing.json")
