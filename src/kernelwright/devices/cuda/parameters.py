"""Kernel parameters as the driver wants them: an array of addresses of values, built once per launch."""

import ctypes
import struct
from collections.abc import Sequence
from typing import Final

SCALARS: Final = {
    "int8": "b",
    "uint8": "B",
    "bool": "?",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


def pack_scalar(dtype: str, value: float) -> bytes:
    """Little-endian bytes of a scalar. Raises ValueError when the dtype is unknown or the value does not fit."""
    try:
        if dtype == "bfloat16":
            bits = struct.unpack("<I", struct.pack("<f", float(value)))[0]
            return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF)
        code = SCALARS[dtype]
        return struct.pack(f"<{code}", float(value) if code in "efd" else int(value))
    except KeyError:
        raise ValueError(f"unknown scalar dtype {dtype!r}") from None
    except (struct.error, OverflowError):
        raise ValueError(f"{value} does not fit {dtype}") from None


def pointer(address: int) -> bytes:
    """Bytes of a device pointer."""
    return struct.pack("<Q", address)


class Parameters:
    """Owns the storage of one launch's parameters; ``address`` goes to ``cuLaunchKernel``."""

    __slots__ = ("_storage", "address")

    def __init__(self, values: Sequence[bytes]) -> None:
        offsets: list[int] = []
        end = 0
        for value in values:
            offsets.append(end)
            end += -(-len(value) // 16) * 16
        self._storage = (ctypes.c_ubyte * (end + 8 * len(values) + 16))()
        base = ctypes.addressof(self._storage)
        blob = bytearray(end)
        for offset, value in zip(offsets, values, strict=True):
            blob[offset : offset + len(value)] = value
        ctypes.memmove(base, bytes(blob), end)
        addresses = struct.pack(f"<{len(values)}Q", *(base + offset for offset in offsets))
        ctypes.memmove(base + end, addresses, len(addresses))
        self.address = base + end
