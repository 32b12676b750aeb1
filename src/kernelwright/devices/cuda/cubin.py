"""What a cubin holds, read from its ELF symbols in plain Python; no CUDA needed.

Layout: NVIDIA's cubins are 64-bit little-endian ELF files. A kernel is a function symbol whose ``st_other``
has the entry bit 0x10; ``__device__`` variables lie in ``.nv.global`` (zeroed) or ``.nv.global.init``;
``__constant__`` ones in ``.nv.constant3``, which device code cannot write.
"""

import re
import struct
from collections.abc import Collection
from dataclasses import dataclass

from kernelwright.core.errors import UserError
from kernelwright.core.outcome import Status

_ENTRY = 0x10
_FUNCTION = 2
_OBJECT = 1
_SYMTAB = 2
_NOBITS = 8
_MACHINE_CUDA = 190


class CubinError(UserError):
    """The bytes are no readable cubin."""


@dataclass(frozen=True)
class CubinSymbols:
    """Names as they stand in the symbol table (mangled for C++ names)."""

    kernels: tuple[str, ...]
    writable: tuple[str, ...]
    undefined: tuple[str, ...]


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int


def read_cubin(data: bytes) -> CubinSymbols:
    """Kernels, writable globals and undefined externals of a cubin. Raises CubinError on damaged bytes."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise CubinError(f"the cubin is damaged: {error}") from None


def _read(data: bytes) -> CubinSymbols:
    if data[:6] != b"\x7fELF\x02\x01":
        raise CubinError("the cubin is damaged: it is no 64-bit little-endian ELF file")
    if struct.unpack_from("<H", data, 18)[0] != _MACHINE_CUDA:
        raise CubinError("the file is an ELF file, but not for a CUDA device")
    sections = _sections(data)
    kernels: list[str] = []
    writable: list[str] = []
    undefined: list[str] = []
    for table in (s for s in sections if s.kind == _SYMTAB):
        names = sections[table.link]
        for at in range(table.offset, table.offset + table.size - 23, 24):
            name_at, info, other, index = struct.unpack_from("<IBBH", data, at)
            name = _text(data, names.offset + name_at) if name_at else ""
            if not name:
                continue
            kind = info & 15
            if kind == _FUNCTION and other & _ENTRY and index:
                kernels.append(name)
            elif index == 0 and not name.startswith(".nv."):
                undefined.append(name)
            elif kind == _OBJECT and 0 < index < len(sections) and _is_global(sections[index].name):
                writable.append(name)
    return CubinSymbols(tuple(kernels), tuple(writable), tuple(undefined))


def _sections(data: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count, names_index = struct.unpack_from("<HHH", data, 58)
    if size != 64 or start + size * count > len(data) or names_index >= count:
        raise CubinError("the cubin is damaged: its section table is cut off")
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, start + size * i) for i in range(count)]
    if any(row[1] != _NOBITS and row[4] + row[5] > len(data) for row in rows):
        raise CubinError("the cubin is damaged: a section is cut off")
    (segments,) = struct.unpack_from("<Q", data, 32)
    segment_size, segment_count = struct.unpack_from("<HH", data, 54)
    if segments + segment_size * segment_count > len(data):
        raise CubinError("the cubin is damaged: its segment table is cut off")
    names = rows[names_index][4]
    return [_Section(_text(data, names + row[0]), row[1], row[4], row[5], row[6]) for row in rows]


def _text(data: bytes, offset: int) -> str:
    end = data.index(b"\0", offset)
    return data[offset:end].decode("utf-8", "replace")


def _is_global(section: str) -> bool:
    return section == ".nv.global" or section.startswith((".nv.global.", ".nv.managed"))


_LENGTH = re.compile(r"(\d+)")


def readable(symbol: str) -> str:
    """Plain name of an Itanium-mangled variable or function (``_ZN2ns7counterE`` gives ``ns::counter``).

    Covers nested names without templates; anything else comes back as it is.
    """
    if not symbol.startswith("_Z"):
        return symbol
    rest = symbol[2:].removeprefix("N").removeprefix("L")
    parts: list[str] = []
    while match := _LENGTH.match(rest):
        end = match.end() + int(match[1])
        parts.append(rest[match.end() : end])
        rest = rest[end:].removeprefix("L")
    return "::".join(p for p in parts if not p.startswith(("_GLOBAL__N_", "_INTERNAL_"))) or symbol


_UNIT = re.compile(r"^_ZN(\d+)(?=_INTERNAL_)")


def without_unit(symbol: str) -> str:
    """The mangled name without the part that NVRTC makes up for one translation unit (internal linkage)."""
    match = _UNIT.match(symbol)
    return f"_ZN{symbol[match.end() + int(match[1]) :]}" if match else symbol


_HINTS = {
    "vprintf": "printf",
    "__assertfail": "assert",
    "malloc": "malloc",
    "free": "free",
}


def check_cubin(
    symbols: CubinSymbols, requested: Collection[str], library: Collection[str] = ()
) -> tuple[Status, str] | None:
    """Rules of the design, section 2: ``None`` or the status and the reason.

    ``library`` are writable globals that come with NVIDIA's own headers, named by :func:`without_unit`.
    """
    if symbols.undefined:
        names = ", ".join(dict.fromkeys(_HINTS.get(n, readable(n)) for n in symbols.undefined))
        return Status.RULE_BROKEN, f"device code calls {names}, which a candidate may not use"
    for name in symbols.writable:
        if without_unit(name) not in library:
            return Status.RULE_BROKEN, (
                f"writable __device__ variable {readable(name)!r} is not declared as scratch"
                " (a read-only table belongs in __constant__; instead of a static constexpr member use an enum)"
            )
    missing = [name for name in requested if name not in symbols.kernels]
    if missing:
        found = ", ".join(sorted(symbols.kernels)) or "none"
        mangled = any(readable(k) in missing for k in symbols.kernels)
        hint = ' (declare it extern "C")' if mangled else ""
        return (
            Status.COMPILE_FAILED,
            f"kernel {missing[0]!r} is not in the source{hint}; entries found: {found}",
        )
    return None
