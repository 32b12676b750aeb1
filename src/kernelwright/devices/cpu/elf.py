"""Just enough of ELF64 (System V ABI, chapter 4) to see what an object file needs and defines."""

import struct
from dataclasses import dataclass
from pathlib import Path

SHT_SYMTAB, SHT_DYNSYM = 2, 11
SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY = 14, 15, 16
STT_OBJECT, STT_FUNC, STT_TLS, STT_COMMON, STT_GNU_IFUNC = 1, 2, 6, 5, 10
SHF_WRITE = 1
STB_WEAK = 2


@dataclass(frozen=True)
class Section:
    """A section header: its name, type and flags."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
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
class ElfFile:
    """Sections and symbols of one file."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    @property
    def undefined(self) -> list[Symbol]:
        """What someone else has to define."""
        return [symbol for symbol in self.symbols if symbol.is_undefined and symbol.name]

    def tls_bytes(self) -> int:
        """Bytes of thread-local storage, an upper bound with alignment."""
        return sum(s.size + 1024 for s in self.sections if s.flags & 0x400)


def read_elf(path: Path, table: int = SHT_SYMTAB) -> ElfFile:
    """Sections of a little-endian ELF64 file and the symbols of one table.

    Raises ValueError when the file is something else or is cut.
    """
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path.name} is no little-endian ELF64 file")
    try:
        sections = _sections(data)
        return ElfFile(sections, tuple(s for section in sections if section.kind == table
                                       for s in _symbols(data, section, sections)))  # fmt: skip
    except struct.error as error:
        raise ValueError(f"{path.name} is cut: {error}") from None


def _sections(data: bytes) -> tuple[Section, ...]:
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    names_at = headers[names_index][4]
    return tuple(Section(_text(data, names_at + h[0]), h[1], h[2], h[4], h[5], h[6], h[9]) for h in headers)


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


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode(errors="replace")
