"""Headers for device code: small stand-ins for host headers that NVRTC lacks, and where NVIDIA's lie."""

import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kernelwright.core.lexer import lex
from kernelwright.core.looking import is_file, is_folder

_INTEGERS = """#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef long long intptr_t;
typedef unsigned long long uintptr_t;
namespace std {
using ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t;
using ::int32_t; using ::uint32_t; using ::int64_t; using ::uint64_t;
}
#ifndef INT32_MAX
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 4294967295u
#endif
"""
_LIMITS = """#pragma once
#define CHAR_BIT 8
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1ll)
#define ULLONG_MAX 18446744073709551615ull
"""
_MATHS = """#pragma once
namespace std {
using ::sqrt; using ::cbrt; using ::exp; using ::exp2; using ::expm1; using ::log; using ::log2; using ::log10;
using ::log1p; using ::pow; using ::sin; using ::cos; using ::tan; using ::tanh; using ::sinh; using ::cosh;
using ::asin; using ::acos; using ::atan; using ::atan2; using ::erf; using ::erfc; using ::fabs; using ::floor;
using ::ceil; using ::round; using ::trunc; using ::fmod; using ::fma; using ::fmax; using ::fmin; using ::abs;
using ::isnan; using ::isinf; using ::isfinite;
}
"""
_COMMON = """#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
#ifndef INT_MAX
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#endif
"""
"""What nvcc's sources have without asking, since it includes cuda_runtime.h."""
_NOTHING = "#pragma once\n"
_TENSOR_MAP = "#pragma once\ntypedef struct alignas(128) CUtensorMap_st { unsigned long long opaque[16]; } CUtensorMap;\n"

STAND_INS: Final[Mapping[str, str]] = {
    "cstdint": _INTEGERS,
    "stdint.h": _INTEGERS,
    "inttypes.h": _INTEGERS,
    "climits": _LIMITS,
    "limits.h": _LIMITS,
    "cfloat": _NOTHING,
    "float.h": _NOTHING,
    "cmath": _MATHS,
    "math.h": _MATHS,
    "cstddef": _NOTHING,
    "stddef.h": _NOTHING,
    "cstdio": _NOTHING,
    "stdio.h": _NOTHING,
    "cstdlib": _NOTHING,
    "stdlib.h": _NOTHING,
    "cuda_runtime.h": _NOTHING,
    "cuda_runtime_api.h": _NOTHING,
    "device_launch_parameters.h": _NOTHING,
    "cuda.h": _TENSOR_MAP,
}
"""Host headers that models like to include; NVRTC has their functions built in or does not need them."""

_STANDARD: Final = re.compile(
    r"algorithm|any|array|assert\.h|atomic|bit|bitset|cassert|cctype|cerrno|cfenv|charconv|chrono|cinttypes|complex"
    r"|concepts|condition_variable|cstdarg|cstring|ctime|ctype\.h|deque|errno\.h|exception|fstream|functional|future"
    r"|initializer_list|iomanip|ios|iosfwd|iostream|istream|iterator|limits|list|map|memory|mutex|new|numeric|optional"
    r"|ostream|queue|random|ranges|ratio|set|span|sstream|stack|stdbool\.h|stdexcept|string|string\.h|string_view|thread"
    r"|time\.h|tuple|type_traits|typeindex|typeinfo|unordered_map|unordered_set|utility|valarray|variant|vector|version"
)


def standard(name: str) -> str | None:
    """What stands for a header of the standard library that NVRTC lacks: libcu++'s, or nothing; ``None`` for others.

    Many sources name such headers and use little of them. (libcu++: NVIDIA's C++ library for device code.)
    """
    if not _STANDARD.fullmatch(name):
        return None
    own = f"cuda/std/{name}"
    return f"#if __has_include(<{own}>)\n#include <{own}>\nnamespace std {{ using namespace cuda::std; }}\n#endif\n"


def included(source: str) -> tuple[str, ...]:
    """Names that the source includes, each once, in order; what looks like it in comments is none."""
    directives = lex(source).directives
    return tuple(
        dict.fromkeys(d.header[1:-1].strip() for d in directives if d.name == "include" and d.header)
    )


def stand_ins(source: str) -> dict[str, str]:
    """The stand-ins that this source asks for."""
    return {name: STAND_INS[name] for name in included(source) if name in STAND_INS}


PRELUDE: Final = "kernelwright_prelude.h"
_BEFORE_MACROS: Final = re.compile(r"(cuda|cooperative_groups|mma\.h|cub/|math_constants|vector_|sm_)[\w./]*")


def prelude(source: str, macros: Mapping[str, int]) -> str:
    """What is included before the source: its headers, the constants that nvcc knows, and the tunables' macros.

    Macros come after NVIDIA's headers, whose template parameters are called ``T`` and ``N`` like many a tunable.
    """
    headers = [name for name in included(source) if _BEFORE_MACROS.match(name)]
    lines = [f"#include <{name}>\n" for name in headers] + [_COMMON]
    return "".join([*lines, *(f"#define {name} {int(value)}\n" for name, value in macros.items())])


def toolkit_include_paths() -> tuple[str, ...]:
    """Include folders of an installed toolkit or of NVIDIA's wheels, those that exist."""
    roots = [Path(os.environ[key]) for key in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(key)]
    spec = importlib.util.find_spec("nvidia")
    wheels = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    folders = [root / "include" for root in [*roots, Path("/usr/local/cuda")]]
    for wheel in wheels:
        folders += [
            wheel / "cu13" / "include",
            wheel / "cuda_runtime" / "include",
            wheel / "cuda_cccl" / "include",
        ]
    found: list[str] = []
    for folder in folders:
        if is_file(folder / "cuda_fp16.h"):
            found.append(str(folder))
            if is_folder(folder / "cccl"):
                found.append(str(folder / "cccl"))
    return tuple(dict.fromkeys(found))
