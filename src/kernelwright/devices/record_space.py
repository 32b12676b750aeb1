"""Writes measured configurations as a recorded space (``kspace-1``), which optimisers can be played on."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import UserError
from kernelwright.core.files import place
from kernelwright.core.outcome import StaticMetrics
from kernelwright.core.space import Tunable
from kernelwright.devices.recorded import FORMAT, static_row


@dataclass(frozen=True)
class Recording:
    """One configuration: its time and relative spread, or the reason why it has none."""

    configuration: Configuration
    time_ms: float | None
    deviation_ms: float = 0.0
    compile_ms: float = 0.0
    bench_ms: float = 0.0
    reason: str = ""
    static: StaticMetrics | None = None


def write_recorded(
    path: Path, tunables: Sequence[Tunable], recordings: Sequence[Recording], about: Mapping[str, object]
) -> None:
    """Write the file; ``about`` holds at least ``name``, ``kernel`` and ``device``. Raises UserError."""
    if not any(recording.time_ms for recording in recordings):
        raise UserError(f"{path}: nothing was measured, there is nothing to record")
    places = [{value: i for i, value in enumerate(tunable.values)} for tunable in tunables]
    rows = [
        [place[r.configuration[t.name]] for t, place in zip(tunables, places, strict=True)]
        for r in recordings
    ]
    reasons = sorted({recording.reason for recording in recordings if recording.time_ms is None})
    codes = {reason: number for number, reason in enumerate(reasons[:254], start=1)}
    meta = {
        "format": FORMAT,
        **about,
        "params": [{"name": t.name, "values": list(t.values)} for t in tunables],
        "error_codes": {str(number): reason for reason, number in codes.items()},
        "n": len(recordings),
        "n_failed": sum(recording.time_ms is None for recording in recordings),
        "optimum_ms": min(r.time_ms for r in recordings if r.time_ms),
    }
    times = [np.nan if r.time_ms is None else r.time_ms for r in recordings]
    arrays = {
        "configs": np.array(rows, dtype=np.uint8 if all(len(p) <= 256 for p in places) else np.uint16),
        "time_ms": np.array(times, dtype=np.float64),
        "time_std_ms": np.array([r.deviation_ms for r in recordings], dtype=np.float32),
        "compile_ms": np.array([r.compile_ms for r in recordings], dtype=np.float32),
        "bench_ms": np.array([r.bench_ms for r in recordings], dtype=np.float32),
        "error": np.array(
            [codes.get(r.reason, 255) if r.time_ms is None else 0 for r in recordings], dtype=np.uint8
        ),
        "meta": np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
    }
    if any(r.static is not None for r in recordings):
        arrays["static"] = np.stack([static_row(r.static) for r in recordings])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type] # numpy's stubs mix up its keywords
    place(path, buffer.getvalue())
