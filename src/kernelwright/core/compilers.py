"""Names whose meaning depends on the compiler, and those of which it does not: for the rules and for exports."""

import re
from typing import Final

ALIKE: Final = frozenset(
    {"defined", "true", "false", "KERNELWRIGHT_CPU", "KERNELWRIGHT_CUDA", "__CUDA_ARCH__"}
)
"""What every compiler of ours answers alike in a condition."""
_GUARDS: Final = r"__(?:CUDACC|NVCC|GNUC|clang__|cplusplus|linux|x86_64|CUDA_ARCH_)\w*|_MSC_VER|_WIN32|NDEBUG"
GUARDS: Final = re.compile(_GUARDS)
"""Macros of compilers that honest texts ask for. A board gets no text with these; elsewhere they are harmless."""
COMPILERS: Final = re.compile(
    rf"{_GUARDS}|__(?:GNUG|clang|unix|amd64|aarch64|COUNTER|FILE|LINE|BASE_FILE|DATE|TIME|INCLUDE_LEVEL|OPTIMIZE"
    r"|STDC|has_|CUDA_API|CUDA_INCLUDE|NVRTC)\w*|_OPENMP"
)
"""All macros of compilers, :data:`GUARDS` among them."""
