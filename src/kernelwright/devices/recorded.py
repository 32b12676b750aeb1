"""A measured space played back: every configuration's outcome was recorded once, on some GPU.

File format ``kspace-1``, one ``.npz`` a space: ``configs`` [n, d] value indices, ``time_ms`` [n] (nan: failed),
``time_std_ms`` [n], ``error`` [n] (0: none, else a key of ``error_codes``), ``meta`` UTF-8 JSON with ``name``,
``params`` (name, values), ``constants``, ``constraints``.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelwright.core.configuration import Configuration, Value
from kernelwright.core.errors import ExpressionError, UserError
from kernelwright.core.expressions import parse
from kernelwright.core.files import read_bytes
from kernelwright.core.outcome import CaseTiming, KernelStatics, Outcome, StaticMetrics, Status
from kernelwright.core.space import Constraint, SearchSpace, Tunable

BUNDLED = Path(__file__).parent / "spaces"
"""Two small spaces that come with the package."""

FORMAT = "kspace-1"
CASE = "recorded"
MAX_BYTES = 1 << 30
_KEYS = ("configs", "time_ms", "time_std_ms", "error", "meta")
_MORE = ("static",)


class _Parameter(BaseModel):
    name: str
    values: list[Value] = Field(min_length=1)


class _Meta(BaseModel):
    model_config = ConfigDict(extra="ignore")

    format: str
    name: str
    params: list[_Parameter]
    constants: dict[str, Any] = {}
    constraints: list[str] = []
    error_codes: dict[str, str] = {}
    kernel: str = ""
    device: str = ""


@dataclass(frozen=True)
class RecordedSpace:
    """A space and what became of each configuration, in the order of ``space.indices``.

    ``times_ms`` [n] is nan where the configuration failed; ``deviations_ms`` [n] is nan where unknown;
    ``reasons`` [n] says how it failed, empty where it did not.
    """

    name: str
    kernel: str
    device: str
    space: SearchSpace
    times_ms: npt.NDArray[np.float64]
    deviations_ms: npt.NDArray[np.float64]
    reasons: tuple[str, ...]
    statics: npt.NDArray[np.float32] | None = None
    """What the compiler said [n, 6] (see :func:`static_row`), where that was recorded."""

    def static(self, configuration: Configuration) -> StaticMetrics | None:
        """The compiler's numbers of a configuration, as those of one kernel."""
        if self.statics is None:
            return None
        known = [None if np.isnan(v) else float(v) for v in self.statics[self.space.index_of(configuration)]]
        registers, spills, stack, shared, code = (
            None if v is None else int(v) for v in (*known[:4], known[5])
        )
        kernel = KernelStatics(
            "recorded",
            registers=registers,
            spill_bytes=spills,
            stack_bytes=stack,
            static_shared_bytes=shared,
            theoretical_occupancy=known[4],
        )
        return StaticMetrics((kernel,), code)

    @cached_property
    def optimum_ms(self) -> float:
        """The best recorded time."""
        return float(np.nanmin(self.times_ms))

    def outcome(self, configuration: Configuration) -> Outcome:
        """What was recorded. Raises PlanError for a configuration that is not part of the space."""
        index = self.space.index_of(configuration)
        time = float(self.times_ms[index])
        if np.isnan(time):
            return Outcome(_status(self.reasons[index]), self.reasons[index])
        return Outcome(Status.MEASURED, cases=(CaseTiming(CASE, (time,), "recorded"),))


def static_row(static: StaticMetrics | None) -> npt.NDArray[np.float32]:
    """Registers, spilled bytes, stack bytes, shared bytes, occupancy, bytes of code [6]: the worst kernel's."""
    if static is None:
        return np.full(6, np.nan, dtype=np.float32)
    stacks = [k.stack_bytes for k in static.kernels if k.stack_bytes is not None]
    shared = [(k.static_shared_bytes or 0) + (k.dynamic_shared_bytes or 0) for k in static.kernels]
    occupancies = [k.theoretical_occupancy for k in static.kernels if k.theoretical_occupancy is not None]
    numbers = (
        static.registers,
        static.spill_bytes,
        max(stacks, default=None),
        max(shared, default=None),
        min(occupancies, default=None),
        static.code_bytes,
    )
    return np.array([np.nan if n is None else n for n in numbers], dtype=np.float32)


def _status(reason: str) -> Status:
    return Status.COMPILE_FAILED if "compil" in reason.lower() else Status.LAUNCH_FAILED


def read_recorded(path: Path) -> RecordedSpace:
    """Read one file. Raises UserError saying what is wrong with it."""
    arrays = _load(path)
    try:
        meta = _Meta.model_validate(json.loads(arrays["meta"].tobytes().decode()))
    except (ValueError, RecursionError, ValidationError) as error:
        raise UserError(f"{path}: meta is no {FORMAT} description: {_first_line(error)}") from None
    if meta.format != FORMAT:
        raise UserError(f"{path}: format {meta.format!r}, expected {FORMAT!r}")
    _check(path, arrays, meta)
    space = _space(path, arrays["configs"], meta)
    order = np.argsort(space.codes(arrays["configs"]), kind="stable")
    if not len(np.unique(space.codes(arrays["configs"]))) == len(order):
        raise UserError(f"{path}: a configuration is recorded twice")
    times = arrays["time_ms"].astype(np.float64)
    reasons = [meta.error_codes.get(str(int(code)), "failed") for code in arrays["error"]]
    return RecordedSpace(
        name=meta.name,
        kernel=meta.kernel,
        device=meta.device,
        space=space,
        times_ms=times[order],
        deviations_ms=arrays["time_std_ms"].astype(np.float64)[order],
        reasons=tuple(reasons[i] if np.isnan(times[i]) else "" for i in order),
        statics=_statics(path, arrays, len(times), order),
    )


def read_folder(folder: Path) -> list[RecordedSpace]:
    """All spaces of a folder, by file name. Raises UserError when there is none or one is damaged."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        raise UserError(f"{folder}: no .npz file with a recorded space in this folder")
    return [read_recorded(path) for path in paths]


def _statics(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], count: int, order: npt.NDArray[np.intp]
) -> npt.NDArray[np.float32] | None:
    if "static" not in arrays:
        return None
    if arrays["static"].shape != (count, 6) or arrays["static"].dtype.kind != "f":
        raise UserError(f"{path}: static must hold six numbers a configuration")
    return arrays["static"].astype(np.float32)[order]


def _load(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        packed = io.BytesIO(read_bytes(path, MAX_BYTES))
        with zipfile.ZipFile(packed) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise UserError(f"{path}: more than {MAX_BYTES} bytes unpacked")
        with np.load(packed, allow_pickle=False) as file:
            missing = [key for key in _KEYS if key not in file.files]
            if missing:
                raise UserError(f"{path}: lacks the array {missing[0]!r}: not a {FORMAT} file")
            return {key: file[key] for key in (*_KEYS, *(k for k in _MORE if k in file.files))}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise UserError(f"{path}: not a readable .npz file: {_first_line(error)}") from None


def _check(path: Path, arrays: Mapping[str, npt.NDArray[Any]], meta: _Meta) -> None:
    configs = arrays["configs"]
    if configs.ndim != 2 or configs.dtype.kind != "u" or not len(configs):
        raise UserError(f"{path}: configs must be a table of unsigned integers with at least one row")
    if configs.shape[1] != len(meta.params):
        raise UserError(
            f"{path}: configs has {configs.shape[1]} columns, meta names {len(meta.params)} params"
        )
    for key in ("time_ms", "time_std_ms", "error"):
        kinds = "ui" if key == "error" else "f"
        if arrays[key].shape != (len(configs),) or arrays[key].dtype.kind not in kinds:
            raise UserError(f"{path}: {key} must be one number a configuration ({len(configs)})")
    sizes = np.array([len(parameter.values) for parameter in meta.params])
    if (configs >= sizes).any():
        raise UserError(f"{path}: configs points beyond the values of a parameter")
    times = arrays["time_ms"]
    if np.isnan(times).all() or not (times[~np.isnan(times)] > 0).all() or np.isinf(times).any():
        raise UserError(
            f"{path}: time_ms must be positive, or nan for a failed configuration, and not all nan"
        )


def _space(path: Path, configs: npt.NDArray[Any], meta: _Meta) -> SearchSpace:
    try:
        return SearchSpace(
            tunables=tuple(Tunable(p.name, tuple(p.values)) for p in meta.params),
            constraints=tuple(_constraints(meta)),
            constants={name: v for name, v in meta.constants.items() if isinstance(v, int)},
            listed=configs,
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _constraints(meta: _Meta) -> list[Constraint]:
    """Those that our language can say; the recorded rows decide what is valid anyway."""
    names = {p.name for p in meta.params} | meta.constants.keys()
    constraints = []
    for number, text in enumerate(meta.constraints):
        try:
            expression = parse(text)
        except ExpressionError:
            continue
        if expression.names <= names:
            constraints.append(Constraint(f"constraint {number + 1}", expression))
    return constraints


def _first_line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0][:200]
