"""Processes with a context on a GPU, as NVML lists them."""

import importlib
import warnings


def compute_processes(uuid: str) -> frozenset[int] | None:
    """Process ids that NVML lists for the device, in whatever namespace NVML counts; ``None`` when it cannot tell.

    NVML is opened and closed again: it takes some milliseconds, makes no context, and leaves nothing behind.
    """
    try:
        with warnings.catch_warnings():
            # An outdated package of the same name warns at import and works all the same.
            warnings.simplefilter("ignore")
            nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except ImportError:
        return None
    except nvml.NVMLError:
        return None
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        return frozenset(process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()
