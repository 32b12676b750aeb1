"""What the linker and the loader may find in a candidate: nothing that changes what they do, or that runs at load.

Object code comes from g++ and from its assembler. Whatever text gets through to that, a name or a tag that device code
has no use for is refused: an input section that is called like one of the linker's own becomes a part of it.
"""

import re
from typing import Final

from kernelwright.core.outcome import Status
from kernelwright.core.rules import MAX_TABLE_BYTES, too_large_tables
from kernelwright.devices.cpu.source_rules import Refusal
from kernelwright.devices.elf import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_TLS,
    SHF_WRITE,
    SHT_GROUP,
    SHT_INIT_ARRAY,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_NULL,
    SHT_PROGBITS,
    SHT_RELA,
    SHT_STRTAB,
    SHT_SYMTAB,
    SHT_SYMTAB_SHNDX,
    STT_OBJECT,
    ElfFile,
    Section,
)

_KINDS: Final = {
    *(SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_GROUP),
    *(SHT_SYMTAB_SHNDX, SHT_INIT_ARRAY),
}
# Sections that g++ makes of device code, and what the memory of each is for.
_CODE, _TABLES, _DATA, _SHARED, _NOTES = (
    re.compile(rf"(?:{names})(?:\..*)?", re.DOTALL)
    for names in (
        r"\.text",
        r"\.rodata",
        r"\.data|\.bss|\.init_array",
        r"\.tbss|\.tdata",
        r"|\.rela|\.group|\.debug_[a-z_]+|\.comment|\.note\.GNU-stack|\.symtab|\.strtab|\.shstrtab|\.symtab_shndx",
    )
)
_MEMORY: Final = {
    _CODE: SHF_ALLOC | SHF_EXECINSTR,
    _TABLES: SHF_ALLOC,
    _DATA: SHF_ALLOC | SHF_WRITE,
    _SHARED: SHF_ALLOC | SHF_WRITE | SHF_TLS,
    _NOTES: 0,
}
_USES: Final = SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR | SHF_TLS
_HARMLESS: Final = 0x10 | 0x20 | 0x40 | 0x200  # merged, strings, info link, group
_PROPERTY: Final = (
    ".note.gnu.property"  # which instructions the code is made for: the linker reads it, nothing runs it
)

# DT_* of what our link line asks for; those from 0x70000000 on are AArch64's, for how functions are called.
_DYNAMIC: Final = {
    *(0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 16, 20, 23, 24, 30),
    *(0x6FFFFEF5, 0x6FFFFFF9, 0x6FFFFFFB, 0x70000001, 0x70000003, 0x70000005),
}
_FLAGS, _FLAGS_1 = 30, 0x6FFFFFFB
_SETTINGS: Final = {_FLAGS: 2 | 8 | 16, _FLAGS_1: 1}  # symbolic, bind now, static TLS
# R_X86_64_* and R_AARCH64_* of data and of calls: none of them runs a function to find an address.
_RELOCATIONS: Final = {1, 6, 7, 8, 16, 17, 18, 257, 1025, 1026, 1027, 1028, 1029, 1030, 1031}


def check_sections(elf: ElfFile) -> Refusal | None:
    """Before the linker reads an object file."""
    for section in elf.sections:
        if section.kind not in _KINDS or section.flags not in _flags_of(section):
            return Refusal(
                Status.RULE_BROKEN, f"has a section {section.name[:80]!r}, which is not device code"
            )
    tables = table_bytes(elf)
    return Refusal(Status.RULE_BROKEN, too_large_tables(tables)) if tables > MAX_TABLE_BYTES else None


def _flags_of(section: Section) -> set[int]:
    """The flags that a section may have, as it has them; empty where it has others."""
    if section.name == _PROPERTY:
        return {SHF_ALLOC}
    for names, uses in _MEMORY.items():
        if names.fullmatch(section.name):
            return {section.flags} if section.flags & ~_HARMLESS == uses else set()
    return set()


def table_bytes(elf: ElfFile) -> int:
    """Bytes of constants and of initialised data, wherever they stand."""
    sections = sum(s.size for s in elf.sections if s.kind == SHT_PROGBITS and _holds_data(s))
    in_code = (
        s.size for s in elf.symbols if s.kind == STT_OBJECT and s.section and _CODE.fullmatch(s.section.name)
    )
    return sections + sum(in_code)


def _holds_data(section: Section) -> bool:
    return any(names.fullmatch(section.name) for names in (_TABLES, _DATA, _SHARED))


def check_loading(dynamic: list[tuple[int, int]], relocations: list[int]) -> Refusal | None:
    """Before anything loads the linked candidate."""
    for tag, value in dynamic:
        if tag not in _DYNAMIC or value & ~_SETTINGS.get(tag, value):
            return Refusal(
                Status.RULE_BROKEN, f"asks the loader for more than device code needs (tag {tag:#x})"
            )
    for kind in relocations:
        if kind not in _RELOCATIONS:
            return Refusal(Status.RULE_BROKEN, f"has the loader run code (relocation {kind})")
    return None
