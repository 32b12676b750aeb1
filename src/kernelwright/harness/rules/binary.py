"""Rules on the binary that was compiled: here nothing is hidden by macros. Only cubins are looked into.

Undefined externals and writable globals are refused by the compiler's own look (devices/cuda/cubin.py). The
instructions are decoded from their bits, so that no rule depends on a disassembler being installed.
"""

import struct
from collections.abc import Iterator, Mapping
from typing import Final

from kernelwright.core.outcome import StaticMetrics
from kernelwright.core.rules import MAX_TABLE_BYTES, CandidateRules, too_large_tables
from kernelwright.devices.cuda.cubin import CODE, CubinError, Section, read_sections
from kernelwright.devices.cuda.sass import PROGRAMMATIC, TENSOR, operations
from kernelwright.harness.rules.broken import Broken

_TABLES: Final = (".nv.constant2", ".nv.constant3", ".nv.global.init", ".rodata")
_INFO: Final = ".nv.info."
_BOUNDS: Final = frozenset({0x05, 0x10})  # EIATTR_MAX_THREADS, EIATTR_REQNTID
_SIZED: Final = 4


def check_binary(binary: bytes, rules: CandidateRules, static: StaticMetrics | None) -> Broken | None:
    """The first rule that a compiled candidate breaks; ``None`` when it keeps all.

    ``static`` is what the compiler reported. A binary that is no cubin (the cpu device's) has only that.
    """
    broken = _registers(rules, static)
    if broken is not None or not binary.startswith(b"\x7fELF"):
        return broken
    try:
        sections = read_sections(binary)
        return next(_faults(binary, sections, rules), None)
    except CubinError as error:
        return None if "not for a CUDA device" in str(error) else Broken(str(error))
    except (struct.error, IndexError, ValueError) as error:
        return Broken(f"the cubin is damaged: {error}")


def _registers(rules: CandidateRules, static: StaticMetrics | None) -> Broken | None:
    for kernel in static.kernels if static and rules.max_registers is not None else ():
        if kernel.registers is not None and kernel.registers > (rules.max_registers or 0):
            return Broken(
                f"kernel {kernel.name!r} uses {kernel.registers} registers a thread, the rules allow"
                f" {rules.max_registers}: use less state a thread, or set [tune.compiler] maxrregcount"
            )
    return None


def _faults(binary: bytes, sections: list[Section], rules: CandidateRules) -> Iterator[Broken]:
    tables = sum(s.size for s in sections if s.name.startswith(_TABLES))
    if tables > MAX_TABLE_BYTES:
        yield Broken(too_large_tables(tables))
    for section in sections:
        content = binary[section.offset : section.offset + section.size]
        if section.name.startswith(CODE):
            yield from _instructions(section.name.removeprefix(CODE), content, rules)
        elif (
            rules.no_launch_bounds and section.name.startswith(_INFO) and _BOUNDS & set(_attributes(content))
        ):
            name = section.name.removeprefix(_INFO)
            yield Broken(f"kernel {name!r} has launch bounds, which the rules forbid: remove them")


def _instructions(kernel: str, code: bytes, rules: CandidateRules) -> Iterator[Broken]:
    used = operations(code)
    if found := _named(used, PROGRAMMATIC):
        yield Broken(
            f"kernel {kernel!r} holds {found}: programmatic launch is not allowed: remove griddepcontrol"
        )
    if rules.no_tensor_cores and (found := _named(used, TENSOR)):
        yield Broken(
            f"kernel {kernel!r} uses tensor cores ({found}), which the rules forbid: compute without them"
        )


def _named(used: frozenset[int], names: Mapping[int, str]) -> str:
    return ", ".join(dict.fromkeys(names[op] for op in sorted(used & names.keys())))


def _attributes(content: bytes) -> Iterator[int]:
    """Kinds of a kernel's ``.nv.info`` entries: format, attribute, value or size, 4 bytes a head."""
    at = 0
    while at + 4 <= len(content):
        form, attribute, size = struct.unpack_from("<BBH", content, at)
        yield attribute
        at += 4 + (size if form == _SIZED else 0)
