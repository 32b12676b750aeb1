"""Is there a usable CUDA driver? Asked through ctypes only.

CUDA's Python packages fail badly without a driver (an exception from the loader, then a hang), so nothing of
them is touched before this says yes.
"""

import ctypes
from dataclasses import dataclass

_INIT_FAILURES = {
    34: "the CUDA stub library is loaded instead of the driver",
    35: "the driver is too old for this program",
    100: "no CUDA device is visible",
    304: "the operating system refused access to the device (a sandbox without /dev/nvidia*?)",
    802: "the system is not yet initialised (fabric manager)",
    803: "driver and display library versions do not match",
    804: "the driver has no forward compatibility on this device",
}


@dataclass(frozen=True)
class CudaProbe:
    """What the driver says. ``reason`` tells why it is unusable; empty when it is usable.

    ``driver_version`` is the newest CUDA version that the driver supports, such as ``13.0``.
    """

    usable: bool
    reason: str = ""
    driver_version: str = ""
    device_count: int = 0


def probe(library: str = "libcuda.so.1") -> CudaProbe:
    """Load the driver's library, initialise it, count devices. Never raises, never imports CUDA packages."""
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        return CudaProbe(usable=False, reason=f"no NVIDIA driver: {library} cannot be loaded")
    try:
        code = int(cuda.cuInit(0))
        number = ctypes.c_int(0)
        count = ctypes.c_int(0)
        cuda.cuDriverGetVersion(ctypes.byref(number))
        version = f"{number.value // 1000}.{number.value % 1000 // 10}"
        if code != 0:
            why = _INIT_FAILURES.get(code, "see CUresult in NVIDIA's driver API")
            return CudaProbe(usable=False, reason=f"cuInit failed with {code}: {why}", driver_version=version)
        if int(cuda.cuDeviceGetCount(ctypes.byref(count))) != 0 or count.value == 0:
            return CudaProbe(usable=False, reason="the driver sees no CUDA device", driver_version=version)
    except AttributeError as error:
        return CudaProbe(usable=False, reason=f"{library} is no CUDA driver: {error}")
    return CudaProbe(usable=True, driver_version=version, device_count=count.value)
