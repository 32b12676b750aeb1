"""State of the GPU around a measurement, through NVML where ``nvidia-ml-py`` is installed."""

import importlib
import time
import warnings
from collections.abc import Sequence
from typing import Any, Final

from kernelwright.core.outcome import Conditions

SLOWDOWNS: Final = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of nvmlClocksEventReasons under which timings say nothing about a candidate."""
POWER_CAP: Final = "software power cap"
"""Normal under load on a data-centre GPU, and set by what the kernel itself draws: a block taken again would run
at the same clock. So it is recorded and told, and never a reason to discard."""

_REASONS: Final = {0x04: POWER_CAP} | SLOWDOWNS
_SLOW_READ_S: Final = 0.2
"""Temperature and power change slowly and are slow to read: they are read at most this often."""


class StateReader:
    """Reads the state of one device by UUID. Without NVML every read is ``None``."""

    def __init__(self, uuid: str) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        self._read_at = float("-inf")
        self._slow: tuple[int | None, float | None] = (None, None)
        try:
            with warnings.catch_warnings():
                # An outdated package of the same name warns at import and works all the same.
                warnings.simplefilter("ignore")
                self._nvml = importlib.import_module("pynvml")
            self._nvml.nvmlInit()
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        except ImportError:
            return
        except self._nvml.NVMLError:
            self._handle = None

    def read(self) -> Conditions | None:
        """Clock and throttle reasons now; temperature and power of at most 0.2 s ago."""
        if self._handle is None:
            return None
        nvml, handle = self._nvml, self._handle
        # Renamed in later versions of the package.
        older = "nvmlDeviceGetCurrentClocksThrottleReasons"
        ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or getattr(nvml, older)
        reasons = self._ask(ask, handle)
        clock = self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM)
        now = time.monotonic()
        if now - self._read_at > _SLOW_READ_S:
            self._read_at = now
            power = self._ask(nvml.nvmlDeviceGetPowerUsage, handle)
            temperature = self._ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
            self._slow = (temperature, None if power is None else power / 1e3)
        throttle = tuple(text for bit, text in _REASONS.items() if reasons is not None and reasons & bit)
        return Conditions(clock, *self._slow, throttle)

    def _ask(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._nvml.NVMLError:
            return None


def slowed(conditions: Conditions | None) -> bool:
    """Whether timings taken under these conditions are to be taken again."""
    return conditions is not None and not set(conditions.throttle).isdisjoint(SLOWDOWNS.values())


def findings(timings: Sequence[tuple[str, Conditions | None]]) -> tuple[str, ...]:
    """What a reader of timings (case, conditions) must know about them."""
    found = []
    known = [(case, c) for case, c in timings if c is not None and c.throttle]
    for case, conditions in known:
        if slowed(conditions):
            reasons = ", ".join(conditions.throttle)
            found.append(f"case {case}: the GPU stayed throttled ({reasons}): its timings are too slow")
    capped = [conditions.sm_clock_mhz for _, conditions in known if POWER_CAP in conditions.throttle]
    if capped:
        clocks = [clock for clock in capped if clock is not None]
        at = f", SM clock down to {min(clocks)} MHz" if clocks else ""
        found.append(f"{POWER_CAP} in {len(capped)} of {len(timings)} cases{at}")
    return tuple(found)
