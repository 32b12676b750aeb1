"""What instructions a cubin holds, decoded from their bits; no disassembler needed.

Since Volta an instruction is 128 bits (Jia et al., Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking, 2018): the operation in bits 0 to 8, the kind of its operands in bits 9 to 11, the width of a
memory access in bits 73 to 75, an operand of a constant bank in bits 38 to 53 (offset) and 54 to 58 (bank).
Numbers of operations as nvdisasm 13 names them for sm_75 to sm_121; the tests compare with it.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

INSTRUCTION_BYTES: Final = 16
TENSOR: Final[Mapping[int, str]] = {
    0x037: "IMMA", 0x03C: "HMMA", 0x03D: "BMMA", 0x03F: "DMMA", 0x07A: "QMMA", 0x07F: "OMMA",
    0x1EA: "UTCMMA", 0x1F0: "HGMMA", 0x1F1: "IGMMA", 0x1F2: "BGMMA", 0x1F3: "QGMMA",
}  # fmt: skip
PROGRAMMATIC: Final[Mapping[int, str]] = {0x02D: "PREEXIT", 0x02E: "ACQBULK"}
_BY_WIDTH: Final[Mapping[int, str]] = {
    0x180: "generic_load", 0x181: "global_load", 0x183: "local_load", 0x184: "shared_load",
    0x185: "generic_store", 0x186: "global_store", 0x187: "local_store", 0x188: "shared_store",
}  # fmt: skip
_CLASSES: Final[Mapping[str, tuple[int, ...]]] = {
    "fp32": (0x008, 0x009, 0x00B, 0x020, 0x021, 0x023),
    "fp64": (0x028, 0x029, 0x02A, 0x02B),
    "fp16": (0x030, 0x031, 0x032, 0x034, 0x040),
    "special": (0x108,),
    "integer": (0x00C, 0x010, 0x011, 0x012, 0x013, 0x016, 0x017, 0x019, 0x024, 0x025, 0x026, 0x027, 0x035, 0x036,
                0x046, 0x048, 0x04A, 0x087, 0x08C, 0x090, 0x091, 0x097, 0x099, 0x0A5, 0x0BD, 0x100, 0x109),
    "conversion": (0x03E, 0x045, 0x105, 0x106, 0x110, 0x111, 0x112),
    "atomic": (0x18A, 0x18C, 0x18D, 0x18E, 0x1A3, 0x1A8, 0x1A9),
    "async_copy": (0x1AE, 0x1BA),
    "matrix_load": (0x03B,),
    "constant_load": (0x0B9, 0x0BB, 0x182, 0x1AC),
    "barrier": (0x11D, 0x1A7, 0x1C7),
    "branch": (0x143, 0x144, 0x147, 0x149, 0x14D, 0x150, 0x158),
    "shuffle": (0x189,),
}  # fmt: skip
_CLASS_OF: Final = {op: name for name, ops in _CLASSES.items() for op in ops} | dict.fromkeys(
    TENSOR, "tensor"
)
_NOP: Final = 0x118
_HFMA2_OF_BF16: Final = (0x035, 2)
_WIDTHS: Final = (8, 8, 16, 16, 32, 64, 128, 256)
_CONSTANT_FORMS: Final = (3, 5)
_INDEXED: Final = 0x0BB
_REGISTER_INDEXED: Final = (0x182, 0x1AC)
_NO_REGISTER: Final = (0xFF, 0x3F)
"""RZ and URZ as the index of a load: none."""


def words(code: bytes) -> npt.NDArray[np.uint64]:
    """Instructions as rows of low and high 64 bits; a tail that is none is left out."""
    whole = len(code) // INSTRUCTION_BYTES * INSTRUCTION_BYTES
    return np.frombuffer(code[:whole], dtype="<u8").reshape(-1, 2)


def operations(code: bytes) -> frozenset[int]:
    """Numbers of the operations that occur."""
    return frozenset(int(op) for op in np.unique(words(code)[:, 0] & np.uint64(0x1FF)))


def mix(code: bytes) -> dict[str, int]:
    """Instructions by class, memory accesses by their width in bits (``global_load_128``); without NOPs.

    ``total`` counts every instruction, also of classes that have no name here.
    """
    rows = words(code)
    keys = (rows[:, 0] & np.uint64(0xFFF)) | ((rows[:, 1] >> np.uint64(9) & np.uint64(7)) << np.uint64(12))
    found: dict[str, int] = {"total": 0}
    for key, count in zip(*(part.tolist() for part in np.unique(keys, return_counts=True)), strict=True):
        operation, form, width = key & 0x1FF, key >> 9 & 7, _WIDTHS[key >> 12]
        if operation == _NOP:
            continue
        name = _class_name(operation, form, width)
        found["total"] += count
        if name:
            found[name] = found.get(name, 0) + count
    return found


def _class_name(operation: int, form: int, width: int) -> str:
    if operation in _BY_WIDTH:
        return f"{_BY_WIDTH[operation]}_{width}"
    if (operation, form) == _HFMA2_OF_BF16:
        return "fp16"
    return _CLASS_OF.get(operation, "")


def constant_reads(code: bytes, bank: int) -> frozenset[int] | None:
    """Byte offsets in a constant bank that the code reads, one for every 8 bytes; ``None``: any (by an index)."""
    rows = words(code)
    low = rows[:, 0]
    form = low >> np.uint64(9) & np.uint64(7)
    of_bank = np.isin(form, _CONSTANT_FORMS) & (low >> np.uint64(54) & np.uint64(0x1F) == bank)
    return _offsets(rows[of_bank])


def _offsets(rows: npt.NDArray[np.uint64]) -> frozenset[int] | None:
    found: list[Iterator[int]] = []
    for low, high in rows.tolist():
        operation, index = low & 0x1FF, low >> 24 & 0xFF
        if operation == _INDEXED or (operation in _REGISTER_INDEXED and index not in _NO_REGISTER):
            return None
        offset = low >> 38 & 0xFFFC
        loads = operation in {0x0B9, *_REGISTER_INDEXED}
        # An operand of 8 bytes is aligned to them.
        size = _WIDTHS[high >> 9 & 7] // 8 if loads else 8 - offset % 8
        found.append(iter(range(offset // 8 * 8, offset + size, 8)))
    return frozenset(chain.from_iterable(found))
