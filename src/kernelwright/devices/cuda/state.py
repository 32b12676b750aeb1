"""State of the GPU around a measurement, through NVML where ``nvidia-ml-py`` is installed."""

import importlib
import os
import warnings
from dataclasses import dataclass
from typing import Any, Final

_BAD_REASONS: Final = {
    0x04: "software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Bits of nvmlClocksEventReasons that mean a clock below what the application asked for."""


@dataclass(frozen=True)
class DeviceState:
    """What NVML says now; ``None`` is unknown. Clock in MHz, temperature in degrees Celsius."""

    sm_clock_mhz: int | None
    temperature_c: int | None
    throttle: tuple[str, ...]
    other_processes: int | None


class StateReader:
    """Reads the state of one device by UUID. Without NVML every read is ``None``."""

    def __init__(self, uuid: str) -> None:
        self._nvml: Any = None
        self._handle: Any = None
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

    def read(self) -> DeviceState | None:
        """Clock, temperature, throttle reasons, number of foreign processes."""
        if self._handle is None:
            return None
        nvml, handle = self._nvml, self._handle
        # Renamed in later versions of the package.
        older = "nvmlDeviceGetCurrentClocksThrottleReasons"
        reasons = self._ask(
            getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or getattr(nvml, older), handle
        )
        processes = self._ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle)
        return DeviceState(
            sm_clock_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            temperature_c=self._ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            throttle=tuple(
                text for bit, text in _BAD_REASONS.items() if reasons is not None and reasons & bit
            ),
            other_processes=None if processes is None else _others(processes),
        )

    def _ask(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._nvml.NVMLError:
            return None


def _others(processes: Any) -> int:
    return sum(1 for process in processes if process.pid != os.getpid())


def findings(state: DeviceState | None) -> tuple[str, ...]:
    """What a reader of the timings must know about the state."""
    if state is None or not state.throttle:
        return ()
    return (f"the GPU was throttled: {', '.join(state.throttle)}",)
