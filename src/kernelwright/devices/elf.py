"""Just enough of ELF64 (System V ABI, chapter 4) to see what an object file needs and defines."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ET_REL = 1
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE = 0, 1, 2, 3, 4, 7
SHT_NOBITS, SHT_REL, SHT_DYNSYM, SHT_GROUP, SHT_SYMTAB_SHNDX = 8, 9, 11, 17, 18
SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY = 14, 15, 16
STT_OBJECT, STT_FUNC, STT_TLS, STT_COMMON, STT_GNU_IFUNC = 1, 2, 6, 5, 10
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 0x400
STB_LOCAL, STB_WEAK = 0, 2
_PT_DYNAMIC = 2


@dataclass(frozen=True)
class Section:
    """A section header: its name, type and flags."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int


@dataclass(frozen=True)
class Symbol:
    """A symbol. ``section`` is ``None`` for an undefined one."""

    name: str
    kind: int
    binding: int
    section: Section | None
    value: int
    size: int
    is_undefined: bool


@dataclass(frozen=True)
class Relocation:
    """A place of a section that the linker fills in with a symbol's address."""

    section: Section
    offset: int
    kind: int
    symbol: Symbol
    addend: int


@dataclass(frozen=True)
class ElfFile:
    """Sections and symbols of one file; the relocations of an object file."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...] = ()

    @property
    def undefined(self) -> list[Symbol]:
        """What someone else has to define."""
        return [symbol for symbol in self.symbols if symbol.is_undefined and symbol.name]

    def tls_bytes(self) -> int:
        """Bytes of thread-local storage, an upper bound with alignment."""
        return sum(s.size + 1024 for s in self.sections if s.flags & SHF_TLS)


def read_elf(path: Path, table: int = SHT_SYMTAB) -> ElfFile:
    """Sections of a little-endian ELF64 file and the symbols of one table.

    Raises ValueError when the file is something else or is cut.
    """
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path.name} is no little-endian ELF64 file")
    try:
        sections = _sections(data)
        symbols = tuple(
            s for section in sections if section.kind == table for s in _symbols(data, section, sections)
        )
        (kind,) = struct.unpack_from("<H", data, 0x10)
        is_object = kind == _ET_REL and table == SHT_SYMTAB
        relocations = tuple(_relocations(data, sections, symbols)) if is_object else ()
    except (struct.error, IndexError) as error:
        raise ValueError(f"{path.name} is cut: {error}") from None
    return ElfFile(sections, symbols, relocations)


def read_dynamic(path: Path) -> list[tuple[int, int]]:
    """Tag and value of every entry that the loader reads of a linked file, found as it finds them.

    Raises ValueError when the file has no such entries or is cut.
    """
    data = path.read_bytes()
    try:
        (headers_at,) = struct.unpack_from("<Q", data, 0x20)
        size, count = struct.unpack_from("<HH", data, 0x36)
        headers = [struct.unpack_from("<IIQQQQ", data, headers_at + i * size) for i in range(count)]
        (at, length), *more = [(h[2], h[5]) for h in headers if h[0] == _PT_DYNAMIC]
        if more:
            raise ValueError(f"{path.name} has two lists of dynamic entries")
        return [struct.unpack_from("<QQ", data, i) for i in range(at, at + length, 16)]
    except struct.error as error:
        raise ValueError(f"{path.name} is cut: {error}") from None


def read_dynamic_relocations(path: Path) -> list[int]:
    """Kinds of the relocations that the loader carries out."""
    data = path.read_bytes()
    return [
        struct.unpack_from("<Q", data, at + 8)[0] & 0xFFFFFFFF
        for table in _sections(data)
        if table.kind == SHT_RELA
        for at in range(table.offset, table.offset + table.size, table.entry_size)
    ]


def _sections(data: bytes) -> tuple[Section, ...]:
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    names_at = headers[names_index][4]
    return tuple(
        Section(_text(data, names_at + h[0]), h[1], h[2], h[4], h[5], h[6], h[7], h[9]) for h in headers
    )


def _symbols(data: bytes, table: Section, sections: tuple[Section, ...]) -> list[Symbol]:
    names_at = sections[table.link].offset
    found = []
    for at in range(table.offset, table.offset + table.size, table.entry_size):
        name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", data, at)
        section = sections[index] if 0 < index < len(sections) else None
        found.append(
            Symbol(_text(data, names_at + name), info & 15, info >> 4, section, value, size, index == 0)
        )
    return found


def _relocations(
    data: bytes, sections: tuple[Section, ...], symbols: tuple[Symbol, ...]
) -> Iterator[Relocation]:
    """Those with an addend, the only kind on x86-64 and AArch64."""
    for table in sections:
        if table.kind != SHT_RELA or not 0 < table.info < len(sections):
            continue
        for at in range(table.offset, table.offset + table.size, table.entry_size):
            offset, info, addend = struct.unpack_from("<QQq", data, at)
            yield Relocation(sections[table.info], offset, info & 0xFFFFFFFF, symbols[info >> 32], addend)


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode(errors="replace")
