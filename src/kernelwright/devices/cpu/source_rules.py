"""What a candidate's source may contain, before anything is compiled.

Two looks: the raw text for directives that would reach outside of the file, and the preprocessed text (only
code that is active) for what the CPU cannot run.
"""

import re
from dataclasses import dataclass

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
_COMMENT_OR_STRING = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/|R\"([^()\\\s]{0,16})\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*(\w+)[ \t]*(.*)$", re.MULTILINE)
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"')
_FORBIDDEN_PRAGMA = re.compile(r"#\s*pragma\s+(GCC|push_macro|pop_macro|redefine_extname|weak|omp)\b")
# The start of a raw string comes first: text that spans rows would hide code from a look at single rows.
_TOKENS = re.compile(r"(?:u8|[uUL])?R\"|[A-Za-z_]\w*|<<<|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'")

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
    code = _COMMENT_OR_STRING.sub(_blank_comment, source)
    # Spliced lines are one line to the preprocessor: the places stay the same, the newline goes.
    for found in _DIRECTIVE.finditer(code.replace("\\\n", "  ")):
        line = code.count("\n", 0, found.start()) + 1
        word, rest = found[1], found[2].strip()
        if word in {"include", "include_next", "import", "embed"}:
            path = rest.strip('<>" \t')
            if path.startswith(("/", "~")) or ".." in path.split("/"):
                return Refusal(Status.RULE_BROKEN, f"includes the host path {path[:80]!r} (line {line})")
        if word == "line" or word.isdigit():
            return Refusal(Status.RULE_BROKEN, f"a #line directive hides where code stands (line {line})")
    return None


def _blank_comment(match: re.Match[str]) -> str:
    text = match.group()
    if text.startswith(("/", "R")):
        return re.sub(r"[^\n]", " ", text)
    return text


def check_preprocessed(text: str, stubs: str) -> Refusal | None:
    """Look at the active code: files it came from, and what cannot run on the CPU.

    ``stubs`` is the folder of the headers that may be included, as it is written in the line markers.
    """
    line, here = 0, False
    for row in text.split("\n"):
        marker = _MARKER.match(row)
        if marker is not None:
            line, name = int(marker[1]) - 1, marker[2]
            here = name == CANDIDATE
            if not (here or name.startswith((stubs, "<")) or name.endswith("macros.h")):
                return Refusal(Status.RULE_BROKEN, f"includes the file {name[:80]!r}")
            continue
        line += 1
        refusal = _check_row(row, line) if here else None
        if refusal is not None:
            return refusal
    return None


def _check_row(row: str, line: int) -> Refusal | None:
    if row.lstrip().startswith("#"):
        pragma = _FORBIDDEN_PRAGMA.search(row)
        if pragma is not None:
            return Refusal(Status.RULE_BROKEN, f"#pragma {pragma[1]} is not device code (line {line})")
        return None
    for token in _TOKENS.finditer(row):
        if token.group()[0] in "uULR" and token.group().endswith('"'):
            return Refusal(Status.RULE_BROKEN, f"a raw string literal is not device code (line {line})")
        if _TELLING.fullmatch(token.group()):
            return Refusal(
                Status.RULE_BROKEN, f"{token.group()!r} is a builtin of g++, no device code (line {line})"
            )
        what = _NOT_HERE.get(token.group())
        if what is None or (token.group() in _LIBRARIES and not row[token.end() :].lstrip().startswith("::")):
            continue
        return not_run(what, line)
    return None


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
