"""What of an exported file a board's host would run: nothing may be there that is not there without the candidate.

nvcc compiles a file for the GPU and for the host. Here the host's half is compiled twice, with the candidate's code and
with empty kernels in its place, and the two objects are compared: machine code, what it refers to, what a loader runs.
"""

import asyncio
import ctypes
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from kernelwright.devices.elf import (
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_FINI_ARRAY,
    SHT_INIT_ARRAY,
    SHT_NOBITS,
    SHT_PREINIT_ARRAY,
    SHT_REL,
    STB_LOCAL,
    STT_GNU_IFUNC,
    ElfFile,
    Relocation,
    Section,
    Symbol,
    read_elf,
)
from kernelwright.harness.enclosure import Enclosure
from kernelwright.harness.watched import find_tool
from kernelwright.leaderboard.export.gate import Answer
from kernelwright.leaderboard.export.twins import Twins

COMPILE_S: Final = 120.0
_WHAT: Final = {"bare": "the launcher here", "whole": "the candidate"}
_COMPILER: Final = ("-m", "kernelwright.harness.worker.run_compiler")
_FLAGS: Final = ("-c", "-std=c++17", "-w", "-Xcompiler=-ffunction-sections,-fdata-sections,-w")
_REGISTRATION: Final = re.compile(r"\.text\._ZL\d+__nv_cudaEntityRegisterCallbackPPv")
"""Tells the CUDA runtime the names of kernels and variables: another for each file, made by nvcc."""
_STUB: Final = re.compile(r"\.text\._Z\d+__device_stub__Z(\d+)(\w+)")
_ARRAYS: Final = (SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY)
_RUNTIME: Final = ("__cudaRegister", "__cudaLaunch")
_OF_LIBRARIES: Final = re.compile("_|cu[A-Z]|cuda|cublas|nv|Py|[^A-Za-z]")
_LOADER: Final = re.compile(r"\.(ctors|dtors|init|fini|preinit)(_array)?(\.|$)")


def judge_host_code(twins: Twins) -> tuple[Answer, str]:
    """:func:`host_code` where no event loop runs."""
    return asyncio.run(host_code(twins))


async def host_code(twins: Twins, scratch_root: Path | None = None) -> tuple[Answer, str]:
    """Refused: the candidate brings code for the host, or nvcc does not take it. Not run: no nvcc that works here."""
    nvcc = find_tool("nvcc")
    if nvcc is None:
        return Answer.NOT_RUN, "nvcc, which would show the host's half of the file, is not on this machine"
    with Enclosure({"whole.cu": twins.whole, "bare.cu": twins.bare}, scratch_root=scratch_root) as enclosure:
        for name in ("bare", "whole"):
            command = [nvcc, *twins.flags, *_FLAGS, f"{name}.cu", "-o", f"{name}.o"]
            ran = await enclosure.run((*_COMPILER, *command), COMPILE_S)
            if ran.code != 0:
                why = ran.ended or ran.printed or "it did not end in time"
                answer = Answer.NOT_RUN if name == "bare" else Answer.REFUSED
                return answer, f"nvcc does not compile {_WHAT[name]}: {why}"
        return await asyncio.to_thread(_judged, enclosure.folder)


def _judged(folder: Path) -> tuple[Answer, str]:
    try:
        fault = difference(folder / "whole.o", folder / "bare.o")
    except (OSError, ValueError) as error:
        return Answer.REFUSED, f"what nvcc made of it cannot be read: {error}"
    if fault:
        return Answer.REFUSED, fault
    return Answer.PASSED, "the host's machine code is the same without the candidate"


def difference(whole: Path, bare: Path) -> str | None:
    """What one object would run on the host that the other would not, in one line.

    Both were compiled with a section for each function; kernels are ``extern "C"``. Raises ValueError for files that
    are no objects.
    """
    one, other = _Object.read(whole), _Object.read(bare)
    for check in (_loaded, _places, _names, _code, _tables):
        for fault in check(one, other):
            return fault
    return None


@dataclass(frozen=True)
class _Part:
    """A section with its bytes and what it refers to: place, kind, target, where in the target."""

    section: Section
    content: bytes
    references: tuple[tuple[int, int, str, int], ...]

    @property
    def runs(self) -> bool:
        return bool(self.section.flags & SHF_EXECINSTR)

    @property
    def targets(self) -> list[str]:
        return [target for _, _, target, _ in self.references]


@dataclass(frozen=True)
class _Object:
    elf: ElfFile
    parts: Mapping[str, _Part]

    @classmethod
    def read(cls, path: Path) -> "_Object":
        elf, data = read_elf(path), path.read_bytes()
        references: dict[int, list[tuple[int, int, str, int]]] = {}
        for relocation in elf.relocations:
            references.setdefault(id(relocation.section), []).append(_reference(relocation))
        parts: dict[str, _Part] = {}
        for section in elf.sections:
            if section.kind == SHT_REL:
                raise ValueError("it has relocations without addends")
            if not section.flags & SHF_ALLOC:
                continue
            if section.name in parts:
                raise ValueError(f"two sections are called {_shown(section.name)}")
            empty = section.kind == SHT_NOBITS
            content = b"" if empty else data[section.offset : section.offset + section.size]
            parts[section.name] = _Part(section, content, tuple(references.get(id(section), ())))
        return cls(elf, parts)

    @property
    def defined(self) -> Iterator[Symbol]:
        """What other files see."""
        return (s for s in self.elf.symbols if s.binding != STB_LOCAL and not s.is_undefined)

    @cached_property
    def kernels(self) -> frozenset[str]:
        """Sections of what nvcc puts in a kernel's place: its address stands for the kernel, and it is never called."""
        found = (_STUB.fullmatch(name) for name in self.parts)
        return frozenset(f".text.{stub[2][: int(stub[1])]}" for stub in found if stub)


def _reference(relocation: Relocation) -> tuple[int, int, str, int]:
    """Where in a target matters only where that is code: constants move."""
    symbol = relocation.symbol
    if symbol.section is None:
        return relocation.offset, relocation.kind, symbol.name, relocation.addend
    place = symbol.value + relocation.addend if symbol.section.flags & SHF_EXECINSTR else 0
    return relocation.offset, relocation.kind, symbol.section.name, place


# -- checks: each yields faults ---------------------------------------------------------------------------


def _loaded(whole: _Object, bare: _Object) -> Iterator[str]:
    """What a loader runs by itself."""
    ours, known = list(_at_loading(whole)), list(_at_loading(bare))
    for name, target in ours:
        if (name, target) not in known:
            yield f"{_shown(target)} would run when the file is loaded ({_shown(name)})"
    if len(ours) != len(known):
        yield f"{len(ours)} functions would run when the file is loaded, {len(known)} without the candidate"
    for symbol in whole.elf.symbols:
        if symbol.kind == STT_GNU_IFUNC:
            yield f"what chooses {_shown(symbol.name)} would run when the file is loaded"


def _at_loading(each: _Object) -> Iterator[tuple[str, str]]:
    for name, part in each.parts.items():
        if part.section.kind in _ARRAYS or _LOADER.match(name):
            yield from ((name, target) for target in part.targets or ["something"])


def _places(whole: _Object, _: _Object) -> Iterator[str]:
    for name, part in whole.parts.items():
        if part.runs and (part.section.flags & SHF_WRITE or not re.match(r"\.text(\.|$)", name)):
            yield f"there is code in the section {_shown(name)}"


def _names(whole: _Object, bare: _Object) -> Iterator[str]:
    """The launcher's names mean the launcher's code, and no new one stands in a library's or the loader's way."""
    known = {symbol.name: _place(symbol) for symbol in bare.defined}
    for symbol in whole.defined:
        place = _place(symbol)
        if symbol.name in known:
            if known[symbol.name] != place:
                yield f"{_shown(symbol.name)} is not the launcher's"
        elif not symbol.name.startswith("_Z") and place[0] not in whole.kernels:
            yield f"{_shown(symbol.name)} is a name of the host"
    for part in sorted(whole.kernels):
        if _is_taken(name := part.removeprefix(".text.")):
            yield f"the kernel's name {_shown(name)} is one of the host's libraries: choose another"


def _is_taken(name: str) -> bool:
    """What stands in a kernel's place is not compared, so nothing else of the file may call it by its name."""
    return bool(_OF_LIBRARIES.match(name)) or hasattr(ctypes.CDLL(None), name)


def _place(symbol: Symbol) -> tuple[str, int]:
    return symbol.section.name if symbol.section else "", symbol.value


def _code(whole: _Object, bare: _Object) -> Iterator[str]:
    """Every piece of code is there without the candidate too, or was made by nvcc."""
    for name, part in whole.parts.items():
        known = bare.parts.get(name)
        if not part.runs or (known and (known.content, known.references) == (part.content, part.references)):
            continue
        if known is None and part.targets == ["exit"]:
            continue  # what nvcc leaves of a device function: it ends the process, and nothing calls it
        if not _made_by_nvcc(name, whole):
            yield f"{_shown(name)} is code for the host"
        for target in part.targets:
            if not _of_registration(target, whole, bare):
                yield f"{_shown(name)} would use {_shown(target)}"


def _tables(whole: _Object, bare: _Object) -> Iterator[str]:
    """Data that leads to code; what describes all code for unwinding differs as the code does."""
    for name, part in bare.parts.items():
        if name == ".eh_frame":
            continue
        there = whole.parts.get(name)
        if there is None and (part.runs or part.references) and not _STUB.fullmatch(name):
            yield f"{_shown(name)} is lacking"
        if there and not part.runs and part.references != there.references:
            yield f"{_shown(name)} leads elsewhere"


def _made_by_nvcc(name: str, whole: _Object) -> bool:
    """A kernel's way into the runtime, or what registers it: another for each signature."""
    return name in whole.kernels or bool(_STUB.fullmatch(name) or _REGISTRATION.fullmatch(name))


def _of_registration(target: str, whole: _Object, bare: _Object) -> bool:
    part = whole.parts.get(target)
    if part is None:  # of another file
        return target.startswith(_RUNTIME) or target in {symbol.name for symbol in bare.elf.undefined}
    return not part.runs or target in bare.parts or _made_by_nvcc(target, whole)


def _shown(text: str) -> str:
    return text.removeprefix(".text.")[:100]
