import ctypes
import struct

import pytest

from kernelwright.devices.cuda.parameters import Parameters, pack_scalar, pointer


def test_layout() -> None:
    values = [pointer(0x1234567890), struct.pack("<i", -5), b"\x07" * 100, struct.pack("<d", 2.5)]
    held = Parameters(values)
    addresses = (ctypes.c_uint64 * len(values)).from_address(held.address)
    for address, value in zip(addresses, values, strict=True):
        assert ctypes.string_at(address, len(value)) == value
        assert address % 16 == 0


@pytest.mark.parametrize(
    ("dtype", "value", "raw"),
    [
        ("int32", -2, struct.pack("<i", -2)),
        ("uint64", 2**64 - 1, b"\xff" * 8),
        ("float32", 1.5, struct.pack("<f", 1.5)),
        ("float64", 3, struct.pack("<d", 3.0)),
        ("float16", 1.0, b"\x00\x3c"),
        ("bfloat16", 1.0, b"\x80\x3f"),
        ("bfloat16", 1.00390625, b"\x80\x3f"),
    ],
)
def test_scalars(dtype: str, value: float, raw: bytes) -> None:
    assert pack_scalar(dtype, value) == raw


@pytest.mark.parametrize(
    ("dtype", "value"), [("int8", 200), ("uint32", -1), ("float16", 1e9), ("complex64", 1)]
)
def test_what_does_not_fit(dtype: str, value: float) -> None:
    with pytest.raises(ValueError, match=r"does not fit|unknown scalar dtype"):
        pack_scalar(dtype, value)
