"""What a candidate's source may contain, before anything is compiled.

Two looks: the raw text for directives that would reach outside of the file, and the preprocessed text (only
code that is active) for what the CPU cannot run.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from kernelwright.core.attributes import attribute_faults
from kernelwright.core.lexer import Lexed, lex
from kernelwright.core.outcome import Check, Status

CANDIDATE = "candidate.cu"


@dataclass(frozen=True)
class Refusal:
    """Why a source is not compiled. ``check`` names what refused it where the status does not tell."""

    status: Status
    reason: str
    check: Check | None = None

    @property
    def blamed(self) -> str:
        """Name of the check; empty for what is not run here, which is no refusal."""
        check = self.check or _USUAL_CHECK.get(self.status)
        return check.value if check else ""


_USUAL_CHECK = {
    Status.RULE_BROKEN: Check.SOURCE_RULES,
    Status.COMPILE_FAILED: Check.COMPILER,
    Status.TIMED_OUT: Check.COMPILE_LIMITS,
}
_MOST_CODE = 2 << 20
"""Bytes that are looked at in some seconds."""
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"')
_FORBIDDEN_PRAGMA = {"GCC", "push_macro", "pop_macro", "redefine_extname", "weak", "omp"}
_RAW = re.compile(r"(?:u8|[uUL])?R\"")
_OF_OUR_MACROS = ("used", "kw_constant")
"""Attributes in what CUDA's keywords stand for here."""

# What is no CUDA, and tells how a text was compiled: the machine's own instructions (its clock among them), what the
# optimiser knows, where code and stack lie.
_TELLING = re.compile(
    r"__builtin_(?:(?:ia32|aarch64|arm|neon|cpu)_\w+|constant_p|(?:dynamic_)?object_size|(?:extract_|frob_)?return_addr(?:ess)?"
    r"|frame_address|apply\w*|return|readcyclecounter)"
)

# Active code that has no meaning on a CPU, by its first telling token.
_NOT_HERE = {
    **dict.fromkeys(("asm", "__asm__", "__asm"), "inline PTX"),
    "<<<": "a kernel launch in the source (the plan launches)",
    **dict.fromkeys(("this_grid", "grid_group"), "grid-wide synchronisation"),
    **dict.fromkeys(("this_cluster", "cluster_group"), "thread block clusters"),
    **dict.fromkeys(("cudaTextureObject_t", "cudaSurfaceObject_t", "tex1D", "tex2D", "tex3D", "tex1Dfetch",
                     "surf2Dread", "surf2Dwrite"), "textures"),
    **dict.fromkeys(("CUtensorMap",), "TMA"),
    **dict.fromkeys(("multi_grid_group", "cudaLaunchKernel", "cudaDeviceSynchronize"), "the CUDA runtime API"),
    **dict.fromkeys(("cuda", "cub", "thrust", "cute", "cutlass"), "a CUDA C++ library"),
}  # fmt: skip
_NOT_RUN = frozenset(_NOT_HERE.values())
_LIBRARIES = (
    "cub",
    "thrust",
    "cuda",
    "cute",
    "cutlass",
    "curand",
    "cublas",
    "nvfunctional",
    "cudaTypedefs.h",
)
_HOST_HEADER = re.compile(
    r"(sys|linux|bits|arpa|netinet)/.*|algorithm|array|atomic|bitset|chrono|complex|condition_variable|deque|exception"
    r"|filesystem|forward_list|fstream|functional|future|initializer_list|ios(fwd|tream|)|iomanip|istream|iterator"
    r"|list|locale|map|memory|mutex|new|numeric|optional|ostream|queue|random|ratio|regex|set|sstream|stack"
    r"|stdexcept|streambuf|string(_view)?|system_error|thread|tuple|typeindex|typeinfo|unordered_(map|set)"
    r"|valarray|variant|vector|c(stdlib|signal|setjmp|time|errno|stdarg)"
    r"|(stdlib|unistd|signal|setjmp|time|errno|fcntl|dlfcn|pthread|semaphore|omp|stdarg|malloc|\w+intrin)\.h"
)


def check_text(source: str) -> Refusal | None:
    """Look at the raw text: includes of absolute or parent paths, and line directives that hide places."""
    text = lex(source)
    if text.doubt:
        return _broken(f"{text.doubt[1]}, which compilers read differently", text.line(text.doubt[0]))
    for directive in text.directives:
        line = text.line(directive.offset)
        path = directive.header[1:-1].strip()
        if path.startswith(("/", "~")) or ".." in path.split("/"):
            return _broken(f"includes the host path {path[:80]!r}", line)
        if directive.name == "line" or directive.name.isdigit():
            return _broken("a #line directive hides where code stands", line)
    return None


def check_preprocessed(text: str, stubs: str) -> Refusal | None:
    """Look at the active code: files it came from, and what cannot run on the CPU.

    ``stubs`` is the folder of the headers that may be included, as it is written in the line markers.
    """
    line, here = 0, False
    rows, lines = [], []
    for row in text.split("\n"):
        marker = _MARKER.match(row)
        if marker is not None:
            line, name = int(marker[1]) - 1, marker[2]
            here = name == CANDIDATE
            if not (here or name.startswith((stubs, "<")) or name.endswith("macros.h")):
                return Refusal(Status.RULE_BROKEN, f"includes the file {name[:80]!r}")
        else:
            line += 1
        rows.append(row if here and marker is None else "")
        lines.append(line)
    code = "\n".join(rows)
    if len(code) > _MOST_CODE:
        reason = f"the source grows beyond {_MOST_CODE >> 20} MiB where its macros are expanded: shorten it"
        return Refusal(Status.COMPILE_FAILED, reason, Check.COMPILE_LIMITS)
    active = lex(code)
    faults = ((lines[active.line(offset) - 1], what) for offset, what in _active_faults(active))
    return next(
        (_broken(what, at) if what not in _NOT_RUN else not_run(what, at) for at, what in faults), None
    )


def _active_faults(active: Lexed) -> Iterator[tuple[int, str]]:
    """Offset and reason of what is wrong with code in which macros have been expanded."""
    if active.doubt:
        yield active.doubt[0], f"{active.doubt[1]}, which compilers read differently"
    yield from attribute_faults(active.tokens, more=_OF_OUR_MACROS)
    for directive in active.directives:
        words = [token.text for token in directive.tokens[:1]]
        if directive.name == "pragma" and _FORBIDDEN_PRAGMA.issuperset(words) and words:
            yield directive.offset, f"#pragma {words[0]} is not device code"
    for token, behind in zip_longest(active.tokens, active.tokens[1:]):
        if token.kind == "string" and _RAW.match(token.text):
            yield token.offset, "a raw string literal is not device code"
        elif _TELLING.fullmatch(token.text):
            yield token.offset, f"{token.text!r} is a builtin of g++, no device code"
        elif (what := _NOT_HERE.get(token.text)) and (
            token.text not in _LIBRARIES or (behind and behind.text == "::")
        ):
            yield token.offset, what


def _broken(what: str, line: int) -> Refusal:
    return Refusal(Status.RULE_BROKEN, f"{what} (line {line})")


def not_run(what: str, line: int | None) -> Refusal:
    """The candidate may be fine, only not here."""
    place = f" (line {line})" if line else ""
    return Refusal(Status.NOT_RUN, f"not run: {what} cannot run on the cpu device{place}")


def missing_header(name: str, line: int | None) -> Refusal:
    """Why ``#include <name>`` was not found."""
    place = f" (line {line})" if line else ""
    if name.split("/", maxsplit=1)[0].removesuffix(".h").removesuffix(".cuh").split("_")[0] in _LIBRARIES:
        return not_run(f"the header <{name}>", line)
    if _HOST_HEADER.fullmatch(name):
        return Refusal(Status.RULE_BROKEN, f"includes the host header <{name}>{place}: device code only")
    return Refusal(Status.COMPILE_FAILED, f"{CANDIDATE}:{line or 0}: the header <{name}> does not exist")
