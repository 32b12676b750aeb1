"""Recorded spaces: what was measured comes back; damaged files are one clear line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import PlanError, UserError
from kernelwright.core.outcome import Status
from kernelwright.devices.recorded import BUNDLED, read_folder, read_recorded

META: dict[str, Any] = {
    "format": "kspace-1",
    "name": "tiny",
    "params": [{"name": "a", "values": [1, 2, 4]}, {"name": "b", "values": [0, 1]}],
    "constraints": ["a * b < 4", "len([a]) == 1", "a % size == 0"],
    "constants": {"size": 1},
    "error_codes": {"1": "CompilationFailedConfig", "2": "RuntimeFailedConfig"},
}
NAN = float("nan")


def arrays(**changes: Any) -> dict[str, Any]:
    return {
        "configs": np.array([[2, 0], [0, 0], [0, 1], [1, 1]], dtype=np.uint8),
        "time_ms": np.array([4.0, 1.0, NAN, NAN]),
        "time_std_ms": np.array([0.1, 0.2, NAN, NAN], dtype=np.float32),
        "error": np.array([0, 0, 1, 2], dtype=np.uint8),
        "meta": np.frombuffer(json.dumps(META).encode(), dtype=np.uint8),
        **changes,
    }


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "tiny.npz"
    np.savez(path, **{key: value for key, value in arrays(**changes).items() if value is not None})
    return path


def meta(**changes: Any) -> Any:
    return np.frombuffer(json.dumps({**META, **changes}).encode(), dtype=np.uint8)


def test_outcomes_come_back(tmp_path: Path) -> None:
    recorded = read_recorded(write(tmp_path))
    assert recorded.optimum_ms == 1.0
    assert len(recorded.space) == 4
    assert [c.name for c in recorded.space.constraints] == ["constraint 1", "constraint 3"]
    best = recorded.outcome(Configuration({"a": 1, "b": 0}))
    assert best.times_ms() == {"recorded": 1.0}
    assert recorded.outcome(Configuration({"a": 4, "b": 0})).times_ms() == {"recorded": 4.0}
    assert recorded.outcome(Configuration({"a": 1, "b": 1})).status is Status.COMPILE_FAILED
    failed = recorded.outcome(Configuration({"a": 2, "b": 1}))
    assert (failed.status, failed.reason) == (Status.LAUNCH_FAILED, "RuntimeFailedConfig")
    with pytest.raises(PlanError, match="listed"):
        recorded.outcome(Configuration({"a": 4, "b": 1}))


def test_rows_of_the_space_and_times_stay_together(tmp_path: Path) -> None:
    recorded = read_recorded(write(tmp_path))
    for index, time in enumerate(recorded.times_ms):
        outcome = recorded.outcome(recorded.space.configuration(index))
        assert list(outcome.times_ms().values()) == ([] if np.isnan(time) else [time])
    near = recorded.space.neighbours(recorded.space.indices[0])
    assert recorded.space.valid(near).all()
    assert len(near) == 2


def test_the_bundled_spaces_can_be_read() -> None:
    spaces = read_folder(BUNDLED)
    assert [(s.name, len(s.space)) for s in spaces] == [
        ("convolution_v1-A4000_2023", 2442),
        ("pnpoly-RTX_3090", 4092),
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"error": None}, "lacks the array 'error'"),
        ({"meta": meta(format="kspace-9")}, "format 'kspace-9'"),
        ({"meta": np.frombuffer(b"{", dtype=np.uint8)}, "meta is no"),
        ({"meta": np.frombuffer(b"\xff\xfe", dtype=np.uint8)}, "meta is no"),
        ({"meta": np.frombuffer(b"[]", dtype=np.uint8)}, "meta is no"),
        ({"meta": np.frombuffer(b"[" * 200_000, dtype=np.uint8)}, "meta is no"),
        ({"meta": np.frombuffer(b'{"a": ' + b"1" * 5000 + b"}", dtype=np.uint8)}, "meta is no"),
        ({"meta": meta(params=[])}, "names 0 params"),
        ({"meta": meta(params=[META["params"][0]] * 2)}, "defined twice"),
        ({"meta": meta(params=[{"name": "a", "values": [1, 1, 2]}, META["params"][1]])}, "value twice"),
        ({"configs": np.zeros((4, 2))}, "unsigned integers"),
        ({"configs": np.zeros((0, 2), dtype=np.uint8)}, "at least one row"),
        ({"configs": np.full((4, 2), 9, dtype=np.uint8)}, "beyond the values"),
        ({"configs": np.zeros((4, 2), dtype=np.uint8)}, "recorded twice"),
        ({"time_ms": np.ones(3)}, "time_ms must be one number"),
        ({"time_ms": np.array([1.0, -1.0, NAN, NAN])}, "positive"),
        ({"time_ms": np.full(4, NAN)}, "not all nan"),
        ({"error": np.zeros(4)}, "error must be one number"),
        ({"configs": np.array([[None, 1]] * 4)}, "not a readable"),
    ],
)
def test_damaged_files_say_what_is_wrong(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(UserError, match=message) as caught:
        read_recorded(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_files_that_are_no_archives(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_recorded(tmp_path / "missing.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(UserError, match="not a readable"):
        read_recorded(tmp_path / "text.npz")
    whole = write(tmp_path).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        broken = bytearray(whole[: int(rng.integers(1, len(whole)))] if rng.random() < 0.5 else whole)
        broken[int(rng.integers(len(broken)))] ^= 0xFF
        (tmp_path / "broken.npz").write_bytes(bytes(broken))
        try:
            read_recorded(tmp_path / "broken.npz")
        except UserError:
            continue
    with pytest.raises(UserError, match=r"no \.npz file"):
        read_folder(tmp_path / "empty")
