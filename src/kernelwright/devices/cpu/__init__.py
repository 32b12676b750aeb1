"""The same CUDA C++ kernel source, run on the CPU: a fast mode that is timed and a checked mode.

The checked mode finds data races, accesses out of bounds, misalignment, uninitialised shared memory, divergent
barriers and outputs that no thread wrote. Neither says anything about the speed on a GPU.

Known limits: inline PTX, textures, TMA, clusters, grid-wide synchronisation and CUDA's C++ libraries are answered
with ``not_run``. A thread that spins on a flag of its own block never yields and times out; blocks start in order,
so waiting for an earlier block works. Relaxed memory order is not modelled: a missing __threadfence is not found,
and any __threadfence ends the race reports between blocks of that launch. ``#pragma unroll`` is ignored.
``clock64`` is no clock: each look is 64 ticks after the last one of the block, so that waiting for it ends.

A candidate's code may write anywhere in its process, so nothing that this process says of itself counts. Each run
has a process and a watcher of its own, forked from one that never runs candidate code nor hears of a run; it has no
other run's buffers or scratch, no open file and no system call but waiting and writing to its line. The time of a run
lies between two lines as the kernel stamped them; the process is ended at the second, and its CPU time must fit in
between.
"""

from kernelwright.devices.cpu.compiler import CpuCompiler
from kernelwright.devices.cpu.runner import CpuRunner
from kernelwright.devices.cpu.toolchain import check_toolchain

__all__ = ["CpuCompiler", "CpuRunner", "check_toolchain"]
