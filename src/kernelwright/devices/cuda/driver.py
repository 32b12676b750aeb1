"""The CUDA driver API, thin: results are checked, handles are plain, errors are typed."""

import ctypes
from typing import Any, Final

from kernelwright.core.errors import HarnessError, MissingError
from kernelwright.devices.cuda.nvrtc import load
from kernelwright.devices.cuda.probe import probe

OUT_OF_MEMORY: Final = 2
NOT_READY: Final = 600
STICKY: Final = frozenset({214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 999})
"""Codes after which the context is lost (CUresult in NVIDIA's driver API): illegal address, launch time-out,
assert, hardware stack, illegal instruction, misaligned address, address space, invalid PC, launch failure,
uncorrectable ECC, contained error, unknown."""

_HOST_ALLOC_PORTABLE_MAPPED: Final = 1 | 2
_STREAM_NON_BLOCKING: Final = 1
_TURN_BYTES: Final = 1024


class CudaError(HarnessError):
    """A driver call failed. ``code`` and ``name`` are the CUresult; ``sticky`` when the context is lost."""

    def __init__(self, code: int, name: str, where: str) -> None:
        super().__init__(f"{where}: {name}" if where else name)
        self.code = code
        self.name = name
        self.sticky = code in STICKY


class Driver:
    """One device's primary context, current in the calling thread.

    The primary context is the one that array libraries use too, so that references computed by them share it.
    Raises MissingError where there is no usable device or NVIDIA's packages are not installed.
    """

    def __init__(self, ordinal: int) -> None:
        found = probe()
        if not found.usable:
            raise MissingError(
                f"no usable CUDA device: {found.reason}; use the cpu device, or install NVIDIA's driver"
            )
        if not 0 <= ordinal < found.device_count:
            raise MissingError(f"there is no device cuda:{ordinal}: the driver sees {found.device_count}")
        self.api = load("cuda.bindings.driver")
        self.driver_version = found.driver_version
        self.ordinal = ordinal
        self.ok(self.api.cuInit(0), "cuInit")
        self.device = self.ok(self.api.cuDeviceGet(ordinal), "cuDeviceGet")
        self.context = self.ok(self.api.cuDevicePrimaryCtxRetain(self.device), "cuDevicePrimaryCtxRetain")
        self.ok(self.api.cuCtxSetCurrent(self.context), "cuCtxSetCurrent")
        self.stream = self.ok(self.api.cuStreamCreate(_STREAM_NON_BLOCKING), "cuStreamCreate")
        self._other: tuple[Any, int] | None = None

    def ok(self, result: tuple[Any, ...], where: str = "") -> Any:
        """The value of a call that succeeded; raises CudaError otherwise."""
        if result[0]:
            raise CudaError(int(result[0]), result[0].name, where)
        return result[1] if len(result) > 1 else None

    def attribute(self, name: str) -> int:
        """A device attribute by its name without ``CU_DEVICE_ATTRIBUTE_``."""
        key = getattr(self.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.ok(self.api.cuDeviceGetAttribute(key, self.device), name))

    def allocate(self, nbytes: int) -> int:
        """Device memory, aligned to 256 bytes at least."""
        return int(self.ok(self.api.cuMemAlloc(max(nbytes, 1)), f"allocating {nbytes} bytes"))

    def free(self, pointer: int) -> None:
        """Give device memory back; waits for the device."""
        self.ok(self.api.cuMemFree(pointer), "cuMemFree")

    def free_bytes(self) -> int:
        """Device memory that is free now."""
        result = self.api.cuMemGetInfo()
        self.ok(result, "cuMemGetInfo")
        return int(result[1])

    def upload(self, pointer: int, host: int, nbytes: int) -> None:
        """Copy from host address to device; returns when done."""
        if nbytes:
            self.ok(self.api.cuMemcpyHtoD(pointer, host, nbytes), "upload")
            # From pageable memory the call returns before the copy has reached the device.
            self.synchronize()

    def download(self, pointer: int, nbytes: int) -> bytes:
        """Copy device memory to new host bytes; returns when done."""
        buffer = (ctypes.c_ubyte * nbytes)()
        if nbytes:
            self.ok(self.api.cuMemcpyDtoH(ctypes.addressof(buffer), pointer, nbytes), "download")
        return bytes(buffer)

    def preload(self, function: Any) -> None:
        """Load a kernel now: lazy loading at its first launch could wait for a stream that is held."""
        self.ok(self.api.cuFuncLoad(function), "cuFuncLoad")

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Device-to-device copy put into the stream."""
        if nbytes:
            self.ok(self.api.cuMemcpyDtoDAsync(target, source, nbytes, self.stream), "copy")

    def zero(self, pointer: int, nbytes: int) -> None:
        """Zero device memory, in the stream."""
        self.ok(self.api.cuMemsetD8Async(pointer, 0, nbytes, self.stream), "memset")

    def pinned(self, nbytes: int) -> tuple[int, int]:
        """Page-locked host memory that the device sees: host address, device address; zeroed."""
        flags = _HOST_ALLOC_PORTABLE_MAPPED
        host = int(self.ok(self.api.cuMemHostAlloc(nbytes, flags), "cuMemHostAlloc"))
        ctypes.memset(host, 0, nbytes)
        return host, int(self.ok(self.api.cuMemHostGetDevicePointer(host, 0), "cuMemHostGetDevicePointer"))

    def event(self) -> Any:
        """A new timing event."""
        return self.ok(self.api.cuEventCreate(0), "cuEventCreate")

    def record(self, event: Any) -> None:
        """Put the event into the stream."""
        self.ok(self.api.cuEventRecord(event, self.stream), "cuEventRecord")

    def reached(self, event: Any) -> bool:
        """Whether the device has passed the event. Raises CudaError when the device failed before it."""
        code = self.api.cuEventQuery(event)[0]
        if int(code) == NOT_READY:
            return False
        self.ok((code,), "cuEventQuery")
        return True

    def elapsed_ms(self, start: Any, stop: Any) -> float:
        """Time between two events that were reached."""
        return float(self.ok(self.api.cuEventElapsedTime(start, stop), "cuEventElapsedTime"))

    def synchronize(self) -> None:
        """Wait for the whole context: array libraries use streams of their own."""
        self.ok(self.api.cuCtxSynchronize(), "cuCtxSynchronize")

    def open_other(self) -> None:
        """Make a second context, for :meth:`give_turn`. Where there is no room for one, turns do nothing."""
        error, context = self.api.cuCtxCreate(None, 0, self.device)
        if error:
            return
        try:
            self._other = (context, self.allocate(_TURN_BYTES))
        except CudaError:
            self.api.cuCtxDestroy(context)
        finally:
            self.ok(self.api.cuCtxSetCurrent(self.context), "cuCtxSetCurrent")

    def give_turn(self) -> None:
        """Have the second context do something tiny, and come back to this one. Nothing may be under way in it."""
        if self._other is None:
            return
        context, place = self._other
        self.ok(self.api.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        try:
            self.ok(self.api.cuMemsetD8(place, 0, _TURN_BYTES), "cuMemsetD8")
            self.synchronize()
        finally:
            self.ok(self.api.cuCtxSetCurrent(self.context), "cuCtxSetCurrent")

    def close(self) -> None:
        """Release the contexts."""
        if self._other is not None:
            self.api.cuCtxDestroy(self._other[0])
            self._other = None
        self.api.cuDevicePrimaryCtxRelease(self.device)
