"""What a cubin holds, read from its ELF symbols in plain Python; no CUDA needed.

Layout: NVIDIA's cubins are 64-bit little-endian ELF files. A kernel is a function symbol whose ``st_other``
has the entry bit 0x10; ``__device__`` variables lie in ``.nv.global`` (zeroed) or ``.nv.global.init``;
``__constant__`` ones in ``.nv.constant3``, which no instruction names as a place to write to, but which a kernel can
write to all the same where it has a generic address of them (seen on an H200): whoever runs them has to look.
"""

import re
import struct
from collections.abc import Collection
from dataclasses import dataclass

from kernelwright.core.errors import UserError
from kernelwright.core.outcome import Status
from kernelwright.devices.cuda.sass import constant_reads, mix

_ENTRY = 0x10
_FUNCTION = 2
_OBJECT = 1
_SYMTAB = 2
_NOBITS = 8
_SECTION = 3
_RELOCATIONS = {4: 24, 9: 16}
"""Bytes of an entry, with and without addend."""
_MACHINE_CUDA = 190
_ADDRESS_BANK = 4
_ADDRESSES = ".nv.constant4"
_CONSTANTS = ".nv.constant3"
_SIZED = 4
_STACKS = (0x11, 0x12)
"""EIATTR_FRAME_SIZE and EIATTR_MIN_STACK_SIZE."""
_NO_ADDRESSES = (".debug", ".nv.info", ".nv.callgraph", ".nv.merc", ".note")
CODE = ".text."


class CubinError(UserError):
    """The bytes are no readable cubin."""


@dataclass(frozen=True)
class CubinSymbols:
    """Names as they stand in the symbol table (mangled for C++ names).

    ``writable`` are the variables in writable memory that code can reach: a compiler puts constants there too, such
    as ``static constexpr`` members of class templates, whose values it has long put into the instructions.
    ``constants`` are the ``__constant__`` ones.
    """

    kernels: tuple[str, ...]
    writable: tuple[str, ...]
    undefined: tuple[str, ...]
    constants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section: its name, ELF type, place and size in the file, and what it refers to."""

    name: str
    kind: int
    offset: int
    size: int
    link: int
    info: int


@dataclass(frozen=True)
class _Symbol:
    number: int
    name: str
    kind: int
    other: int
    section: int


def read_cubin(data: bytes) -> CubinSymbols:
    """Kernels, writable globals and undefined externals of a cubin. Raises CubinError on damaged bytes."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise CubinError(f"the cubin is damaged: {error}") from None


def _read(data: bytes) -> CubinSymbols:
    sections = read_sections(data)
    symbols = [each for s in sections if s.kind == _SYMTAB for each in _symbols(data, sections, s)]
    named = [symbol for symbol in symbols if symbol.name]
    reached = _reached(data, sections)
    return CubinSymbols(
        kernels=tuple(s.name for s in named if s.kind == _FUNCTION and s.other & _ENTRY and s.section),
        writable=tuple(
            s.name
            for s in named
            if s.kind == _OBJECT and _is_global(sections, s.section) and reached & {s.number, -s.section}
        ),
        undefined=tuple(s.name for s in named if s.section == 0 and not s.name.startswith(".nv.")),
        constants=tuple(
            s.name
            for s in named
            if s.kind == _OBJECT and 0 < s.section < len(sections) and sections[s.section].name == _CONSTANTS
        ),
    )


def _symbols(data: bytes, sections: list[Section], table: Section) -> list[_Symbol]:
    names = sections[table.link]
    found = []
    for number, at in enumerate(range(table.offset, table.offset + table.size - 23, 24)):
        name_at, info, other, index = struct.unpack_from("<IBBH", data, at)
        name = _text(data, names.offset + name_at) if name_at else ""
        found.append(_Symbol(number, name, info & 15, other, index))
    return found


def _reached(data: bytes, sections: list[Section]) -> set[int]:
    """Numbers of symbols whose address code can come by; a whole section as its negative number.

    An address stands in constant bank 4, one entry for every variable whether it is used or not: there the reads
    of the instructions decide. Any other relocation, into code or into data that code may read, counts.
    """
    reads = _bank_reads(data, sections)
    found: set[int] = set()
    for table in (s for s in sections if s.kind in _RELOCATIONS):
        target = sections[table.info].name if table.info < len(sections) else ""
        if target.startswith(_NO_ADDRESSES):
            continue
        size = _RELOCATIONS[table.kind]
        for at in range(table.offset, table.offset + table.size - size + 1, size):
            offset, info = struct.unpack_from("<QQ", data, at)
            if target != _ADDRESSES or reads is None or offset // 8 * 8 in reads:
                found.add(info >> 32)
    return found | _whole_sections(data, sections, found)


def _whole_sections(data: bytes, sections: list[Section], found: set[int]) -> set[int]:
    """Sections that are reached by the symbol of the section itself."""
    tables = [s for s in sections if s.kind == _SYMTAB]
    symbols = [symbol for table in tables for symbol in _symbols(data, sections, table)]
    return {-s.section for s in symbols if s.kind == _SECTION and s.number in found}


def _bank_reads(data: bytes, sections: list[Section]) -> set[int] | None:
    found: set[int] = set()
    for code in (s for s in sections if s.name.startswith(CODE)):
        reads = constant_reads(data[code.offset : code.offset + code.size], _ADDRESS_BANK)
        if reads is None:
            return None
        found |= reads
    return found


def read_sections(data: bytes) -> list[Section]:
    """Sections of a cubin in order. Raises CubinError or one of the errors that reading damaged bytes gives."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise CubinError("the cubin is damaged: it is no 64-bit little-endian ELF file")
    if struct.unpack_from("<H", data, 18)[0] != _MACHINE_CUDA:
        raise CubinError("the file is an ELF file, but not for a CUDA device")
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
    return [Section(_text(data, names + row[0]), row[1], row[4], row[5], row[6], row[7]) for row in rows]


def _text(data: bytes, offset: int) -> str:
    end = data.index(b"\0", offset)
    return data[offset:end].decode("utf-8", "replace")


def _is_global(sections: list[Section], index: int) -> bool:
    section = sections[index].name if 0 < index < len(sections) else ""
    return section == ".nv.global" or section.startswith((".nv.global.", ".nv.managed"))


def instruction_mix(data: bytes) -> dict[str, dict[str, int]]:
    """Instructions by class (see :func:`kernelwright.devices.cuda.sass.mix`) for each kernel of a readable cubin."""
    return {
        s.name.removeprefix(CODE): mix(data[s.offset : s.offset + s.size])
        for s in read_sections(data)
        if s.name.startswith(CODE)
    }


def stack_bytes(data: bytes) -> int:
    """Largest stack that the ``.nv.info`` of a readable cubin names for a thread of any of its functions.

    Its records: a format byte (4: a value follows), an attribute, the value's size; frame and stack sizes are two words,
    the function's symbol and the bytes.
    """
    found = 0
    for s in (s for s in read_sections(data) if s.name == ".nv.info"):
        at, end = s.offset, s.offset + s.size
        while at + 4 <= end:
            form, attribute, size = struct.unpack_from("<BBH", data, at)
            if form == _SIZED and attribute in _STACKS and size == 8 and at + 12 <= end:
                found = max(found, struct.unpack_from("<I", data, at + 8)[0])
            at += 4 + (size if form == _SIZED else 0)
    return found


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


_HINTS = {
    "vprintf": "printf",
    "__assertfail": "assert",
    "malloc": "malloc",
    "free": "free",
}


def check_cubin(symbols: CubinSymbols, requested: Collection[str]) -> tuple[Status, str] | None:
    """Rules of the design, section 2: ``None`` or the status and the reason."""
    if symbols.undefined:
        names = ", ".join(dict.fromkeys(_HINTS.get(n, readable(n)) for n in symbols.undefined))
        return Status.RULE_BROKEN, f"device code calls {names}, which a candidate may not use"
    if symbols.writable:
        return Status.RULE_BROKEN, (
            f"writable __device__ variable {readable(symbols.writable[0])!r} is not declared as scratch"
            " (a read-only table belongs in __constant__)"
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
