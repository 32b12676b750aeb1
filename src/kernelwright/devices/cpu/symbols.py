"""What a candidate's object code may need and define: device code calls nothing of the host."""

import re
from dataclasses import dataclass

from kernelwright.core.outcome import Status
from kernelwright.devices.cpu.linkage import check_sections
from kernelwright.devices.cpu.source_rules import Refusal, not_run
from kernelwright.devices.elf import (
    SHF_WRITE,
    SHT_FINI_ARRAY,
    SHT_INIT_ARRAY,
    SHT_PREINIT_ARRAY,
    STT_COMMON,
    STT_GNU_IFUNC,
    STT_OBJECT,
    STT_TLS,
    ElfFile,
    Symbol,
)

ARENA = "kw_dynamic_shared"
MAX_STATIC_SHARED = 48 * 1024
"""Static shared memory of one kernel, on every device (CUDA C++ Programming Guide, technical specifications)."""

_MATH = re.compile(
    r"(a?(cos|sin|tan)h?|atan2|cbrt|ceil|copysign|erfc?|exp(2|10|m1)?|fabs|fdim|floor|fma|fmax|fmin|fmod|frexp|hypot"
    r"|ilogb|[jy][01n]|ldexp|lgamma|ll?rint|ll?round|log(10|1p|2|b)?|modf|nearbyint|nextafter|pow|remainder|remquo"
    r"|rint|round|scalbl?n|sincos|sqrt|tgamma|trunc)f?"
)
_MEMORY = ("memcpy", "memmove", "memset", "memcmp", "strlen", "strcmp")
_RUNTIME = (
    *("kw_thread", "kw_barrier", "kw_barrier_vote", "kw_warp_meet", "kw_warp_gather", "kw_active_mask"),
    *("kw_bad_shuffle", "kw_fence", "kw_atomic_access", "kw_copy_async", "kw_copy_commit", "kw_copy_wait"),
    *("kw_clock", "kw_print", "kw_assert_failed", "kw_dynamic_shared"),
    *("_GLOBAL_OFFSET_TABLE_", "__tls_get_addr"),
)
_ALLOWED = frozenset((*_MEMORY, *_RUNTIME))
# In the checked mode the instrumentation's entry points, which its runner has, and memcpy wrapped.
_INSTRUMENTATION = re.compile(
    r"__tsan_(read|write)(1|2|4|8|16)|__tsan_unaligned_(read|write)(2|4|8|16)|__tsan_(read|write)_range"
    r"|__tsan_func_(entry|exit)|__tsan_init|__tsan_vptr_(update|read)|__wrap_mem(cpy|move|set)"
    r"|__ubsan_handle_type_mismatch_v1"
)
_WATCHES = re.compile(r"__(?:tsan|ubsan|wrap|real)_\w*")
_HEAP = frozenset(
    ("malloc", "free", "calloc", "realloc", "_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm")
)
_RUN_AT_LOAD = frozenset((SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY))
_RUN_AT_LOAD_SECTIONS = (".init", ".fini", ".preinit", ".ctors", ".dtors")
_RUN_AT_LOAD_NAMES = frozenset(("_init", "_fini"))  # what the linker makes DT_INIT and DT_FINI of
_FUNCTION_LOCAL = re.compile(r"_ZZ(?:N?)(\d+)(\w+)")


def check_object(elf: ElfFile, constants: frozenset[str], *, instrumented: bool) -> Refusal | None:
    """Look at a compiled candidate before it is linked. ``constants`` names its ``__constant__`` variables.

    An ``instrumented`` file has one entry that runs at load: the call of __tsan_init.
    """
    at_load = [s for s in elf.sections if s.kind in _RUN_AT_LOAD or s.name.startswith(_RUN_AT_LOAD_SECTIONS)]
    if sum(s.size for s in at_load) > (8 if instrumented else 0):
        return Refusal(
            Status.RULE_BROKEN, "runs code when it is loaded (a global object with a constructor?)"
        )
    for symbol in elf.symbols:
        if symbol.kind == STT_GNU_IFUNC or (symbol.name in _RUN_AT_LOAD_NAMES and not symbol.is_undefined):
            return Refusal(Status.RULE_BROKEN, f"runs code when it is loaded ({symbol.name!r})")
        if _WATCHES.fullmatch(symbol.name) and not symbol.is_undefined:
            return Refusal(Status.RULE_BROKEN, f"defines {symbol.name!r}, by which the checked mode watches")
        if _keeps_state(symbol) and plain_name(symbol.name) not in constants:
            name = plain_name(symbol.name)
            return Refusal(
                Status.RULE_BROKEN,
                f"keeps state in the writable __device__ variable {name!r}: declare it in [scratch] of the plan",
            )
    return check_sections(elf) or _check_static_shared(elf)


def _keeps_state(symbol: Symbol) -> bool:
    if symbol.is_undefined or symbol.kind not in {STT_OBJECT, STT_COMMON}:
        return False
    section = symbol.section
    if section is None:
        return symbol.kind == STT_COMMON
    return bool(section.flags & SHF_WRITE) and not section.name.startswith(".data.rel.ro")


def _check_static_shared(elf: ElfFile) -> Refusal | None:
    for kernel, size in static_shared_bytes(elf).items():
        if size > MAX_STATIC_SHARED:
            return Refusal(
                Status.COMPILE_FAILED,
                f"{kernel} uses {size} bytes of static shared memory, the limit is {MAX_STATIC_SHARED}",
            )
    return None


def static_shared_bytes(elf: ElfFile) -> dict[str, int]:
    """Bytes of ``__shared__`` arrays by the function that declares them; file scope is ``""``."""
    sizes: dict[str, int] = {}
    for symbol in elf.symbols:
        if symbol.kind == STT_TLS and not symbol.is_undefined and symbol.name != ARENA:
            function = _enclosing(symbol.name)
            sizes[function] = sizes.get(function, 0) + symbol.size
    return sizes


@dataclass(frozen=True)
class SharedStorage:
    """Shared memory of a linked candidate, in bytes of its thread-local storage.

    ``arrays`` are the static ``__shared__`` arrays: name, offset, bytes.
    """

    arena_offset: int
    nbytes: int
    arrays: tuple[tuple[str, int, int], ...]


def shared_storage(elf: ElfFile) -> SharedStorage:
    """Where a linked candidate has its shared memory. Raises ValueError when it has no dynamic arena."""
    symbols = [s for s in elf.symbols if s.kind == STT_TLS and not s.is_undefined and s.size]
    arena = next((s for s in symbols if s.name == ARENA), None)
    if arena is None:
        raise ValueError("the artifact has no dynamic shared memory")
    arrays = tuple(
        (plain_name(s.name), s.value, s.size) for s in symbols if s.size and s.value != arena.value
    )
    return SharedStorage(arena.value, max(s.value + s.size for s in symbols), arrays)


def _enclosing(name: str) -> str:
    found = _FUNCTION_LOCAL.match(name)
    return found[2][: int(found[1])] if found else ""


def plain_name(name: str) -> str:
    """Source name of a variable from its mangled name, as far as a plain variable goes."""
    found = re.match(r"_ZL(\d+)(\w+)", name)
    if found:
        return found[2][: int(found[1])]
    local = re.match(r"_ZZ.*E(\d+)?([A-Za-z_]\w*?)(?:_\d+)?$", name)
    return local[2] if local else name


def check_imports(names: list[str], vector_math: frozenset[str], *, instrumented: bool) -> Refusal | None:
    """Look at what the linked candidate still needs from outside: its instrumentation only if it has one.

    ``vector_math`` are the functions that the vector library has.
    """
    for name in names:
        if name in _HEAP:
            return not_run("memory allocation in a kernel", None)
        if instrumented and _INSTRUMENTATION.fullmatch(name):
            continue
        if name not in _ALLOWED and name not in vector_math and not _MATH.fullmatch(name):
            return Refusal(Status.RULE_BROKEN, f"calls host function {name!r}")
    return None
