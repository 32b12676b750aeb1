"""The same CUDA C++ kernel source, run on the CPU: a fast mode that is timed and a checked mode.

The checked mode finds data races, accesses out of bounds, misalignment, uninitialised shared memory, divergent
barriers and outputs that no thread wrote. Neither says anything about the speed on a GPU.
"""

from kernelwright.devices.cpu.compiler import CpuCompiler
from kernelwright.devices.cpu.runner import CpuRunner
from kernelwright.devices.cpu.toolchain import check_toolchain

__all__ = ["CpuCompiler", "CpuRunner", "check_toolchain"]
